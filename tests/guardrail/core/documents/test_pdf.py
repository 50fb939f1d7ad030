"""Tables of a PDF: a head stands above the rows, also on the next page, and is never made up."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, PageBreak, Paragraph, SimpleDocTemplate, Table, TableStyle

from guardrail import Guardrail, GuardrailConfig, Passage
from guardrail.core.documents.pdf import pages_of

PRICES = [["Bike", "Price"], ["Alba", "990 euros"], ["Bora", "890 euros"]]
MORE = [["Cima", "790 euros"], ["Dora", "690 euros"]]
HEAD = "| Bike | Price |\n| --- | --- |\n"
ROWS = "| Cima | 790 euros |\n| Dora | 690 euros |"
LINES = "Cima, 790 euros\nDora, 690 euros"


def grid(rows: Sequence[Sequence[str]], *, bold: bool = False, wide: int = 90, **how: int) -> Table:
    styles: list[tuple[object, ...]] = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)]
    styles += [("FONTNAME", (0, 0), (-1, 0), "Helvetica-Bold")] if bold else []
    return Table(rows, colWidths=wide, style=TableStyle(styles), **how)


def text(words: str, style: str = "BodyText") -> Paragraph:
    return Paragraph(words, getSampleStyleSheet()[style])


def pdf(*story: Flowable, frame: bool = False) -> bytes:
    def draw(canvas: Canvas, document: SimpleDocTemplate) -> None:
        if frame:
            canvas.drawString(72, 810, "Catalogue of 2026")
            canvas.drawString(72, 30, f"Page {document.page} of 2")

    file = io.BytesIO()
    SimpleDocTemplate(file, pagesize=A4).build(list(story), onFirstPage=draw, onLaterPages=draw)
    return file.getvalue()


@pytest.mark.parametrize("frame", [False, True])
def test_a_table_that_goes_on_has_its_head_on_the_next_page(frame: bool) -> None:
    page = pages_of(pdf(grid(PRICES), PageBreak(), grid(MORE), frame=frame))[1]
    assert HEAD + ROWS in page
    long = [["Bike", "Price"], *([f"Bike{n}", f"{900 + n} euros"] for n in range(110))]
    for repeat in (0, 1):
        pages = pages_of(pdf(grid(long, repeatRows=repeat), frame=frame))
        assert len(pages) == 3
        assert [page.count(HEAD) for page in pages] == [1, 1, 1]
        assert sum(page.count(" euros |") for page in pages) == 110


@pytest.mark.parametrize(
    ("between", "more", "expected"),
    [
        ([PageBreak()], grid(MORE, wide=70), LINES),
        ([text("All in Oslo."), PageBreak()], grid(MORE), LINES),
        ([PageBreak(), text("Used", "Heading1")], grid(MORE), f"## Used\n\n{LINES}"),
        ([PageBreak()], grid([["Bike", "Weight"], ["Alba", "12 kg"]]), "Bike, Weight\nAlba, 12 kg"),
        ([PageBreak()], grid([["Bike", "Hue"], ["Alba", "red"]], bold=True),
         "| Bike | Hue |\n| --- | --- |\n| Alba | red |"),
    ],
    ids=["other columns", "text between", "a heading", "two readings", "bold"],
)  # fmt: skip
def test_another_table_does_not_take_the_head(
    between: list[Flowable], more: Table, expected: str
) -> None:
    assert pages_of(pdf(grid(PRICES), *between, more))[1] == expected


def test_a_table_without_a_head_gets_none() -> None:
    assert pages_of(pdf(grid(MORE))) == [LINES]
    assert pages_of(pdf(grid(MORE[:1]))) == ["Cima, 790 euros"]
    assert pages_of(pdf(grid([["Bike", "2024"], ["Alba", "10"]])))[0].startswith("| Bike | 2024 |")


def test_answers_are_judged_by_the_rows_of_the_next_page() -> None:
    evidence = Passage.from_bytes(pdf(grid(PRICES), PageBreak(), grid(MORE)), "a.pdf")
    with Guardrail(GuardrailConfig(graph="none")) as guard:
        answer = guard.check(
            "", "The Cima costs 790 euros. The Dora costs 790 euros.", evidence=evidence
        )
    assert [sentence.category for sentence in answer.sentences] == ["supportive", "contradictory"]
