"""Documents of Word: what is seen of them is read, what is hidden or struck out is not."""

from __future__ import annotations

import io

import docx
import pytest
from docx.oxml import parse_xml

from guardrail import Passage

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'


def read(document: docx.document.Document) -> list[str]:
    file = io.BytesIO()
    document.save(file)
    return [passage.text for passage in Passage.from_bytes(file.getvalue(), "a.docx")]


def run(text: str, marks: str = "") -> str:
    return f"<w:r><w:rPr>{marks}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>"


def fraction(above: str, below: str) -> str:
    parts = (("num", above), ("den", below))
    return f"<m:f>{''.join(f'<m:{n}><m:r><m:t>{t}</m:t></m:r></m:{n}>' for n, t in parts)}</m:f>"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (f"<w:fldSimple w:instr='REF x'>{run('990')}</w:fldSimple>", "Costs 990 euros."),
        (f"<m:oMath>{fraction('1', '2')}</m:oMath>", "Costs (1)/(2) euros."),
        (("<m:oMath><m:sSup><m:e><m:r><m:t>10</m:t></m:r></m:e><m:sup><m:r><m:t>6</m:t></m:r>"
         "</m:sup></m:sSup></m:oMath>"), "Costs 10^6 euros."),
        (run("890", "<w:vanish/>") + run("990"), "Costs 990 euros."),
        (run("990", "<w:vanish w:val='0'/>"), "Costs 990 euros."),
        (run("890", "<w:strike/>") + run("990"), "Costs 990 euros."),
        ((f"<w:del w:id='1'><w:r><w:delText>890</w:delText></w:r></w:del><w:ins w:id='2'>"
         f"{run('990')}</w:ins>"), "Costs 990 euros."),
        (run("10") + run("6", "<w:vertAlign w:val='superscript'/>"), "Costs 10⁶ euros."),
        (("<w:sdt xmlns:w14='http://schemas.microsoft.com/office/word/2010/wordml'><w:sdtPr>"
         "<w14:checkbox><w14:checked w14:val='1'/></w14:checkbox></w:sdtPr><w:sdtContent>"
         f"{run('☒')}</w:sdtContent></w:sdt>"), "Costs [x]  euros."),
    ],
    ids=["field", "fraction", "power", "hidden", "not hidden", "struck out", "tracked", "raised",
         "box"],
)  # fmt: skip
def test_what_is_seen_of_a_paragraph(content: str, expected: str) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("Costs ")
    for element in parse_xml(f"<w:p {W} {M}>{content}</w:p>"):
        paragraph._p.append(element)
    paragraph.add_run(" euros.")
    assert read(document) == [expected]


def test_titles_and_deep_headings_stand_above_their_text() -> None:
    document = docx.Document()
    document.add_paragraph("Alba", style="Title")
    document.add_paragraph("A bicycle.")
    document.add_heading("Weight", 8)
    document.add_paragraph("12 kg.")
    assert read(document) == ["# Alba\n\nA bicycle.", "###### Weight\n\n12 kg."]


def test_a_table_of_properties_has_no_head() -> None:
    document = docx.Document()
    table = document.add_table(2, 2)
    for place, text in enumerate(["Price", "990 euros", "Weight", "12 kg"]):
        table.cell(place // 2, place % 2).text = text
    assert read(document) == ["Price, 990 euros\nWeight, 12 kg"]
