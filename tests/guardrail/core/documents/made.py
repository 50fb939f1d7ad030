"""Documents as their programs write them: a handbook as PDF, DOCX and HTML."""

from __future__ import annotations

import io

import docx
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Table, TableStyle

PRICES = [["Bike", "Price", "Range"], ["Fjell 3", "2,490 euros", "110 km"],
          ["Fjell Cargo", "3,890 euros", "90 km"]]  # fmt: skip
RETURNS = (
    "A bicycle can be sent back within 30 days of delivery. The refund is paid within 10 working "
    "days to the account that the order was paid from, and the costs of the transport are ours."
)
WARRANTY = "The frame has a warranty of five years."


def pdf(*, password: str | None = None, empty: bool = False) -> bytes:
    """A handbook of two pages: prices in a table, then rules under headings."""
    file = io.BytesIO()
    style = getSampleStyleSheet()
    table = Table(PRICES)
    table.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black)]))
    story = [
        Paragraph("Prices", style["Heading1"]),
        table,
        PageBreak(),
        Paragraph("Returns", style["Heading1"]),
        Paragraph(RETURNS, style["BodyText"]),
        Paragraph("Warranty", style["Heading1"]),
        Paragraph(WARRANTY, style["BodyText"]),
    ]
    document = SimpleDocTemplate(file, pagesize=A4, encrypt=password)
    document.build([PageBreak()] if empty else story)
    return file.getvalue()


def word() -> bytes:
    """The same as a Word document."""
    document = docx.Document()
    document.add_heading("Prices", 1)
    table = document.add_table(rows=0, cols=3)
    for row in PRICES:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    document.add_heading("Returns", 1)
    document.add_paragraph(RETURNS)
    document.add_heading("Warranty", 1)
    document.add_paragraph(WARRANTY)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def html() -> str:
    """The same as a page of a site, with the frame of one."""
    rows = "".join(
        f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in row)}</tr>"
        for tag, row in zip(["th", "td", "td"], PRICES, strict=True)
    )
    return f"""<!doctype html><html><head><title>Shop</title><script>track("2,490");</script></head>
<body><nav><a href="/">Home</a></nav><main><h1>Prices</h1><table>{rows}</table><h1>Returns</h1>
<p>{RETURNS}</p><h1>Warranty</h1><p>{WARRANTY}</p></main><footer>© 2026</footer></body></html>"""
