"""Documents as evidence: what is kept of them, and what is said of those that cannot be read."""

import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from guardrail import Guardrail, GuardrailConfig, InputError, Passage
from guardrail.core.documents import reading
from tests.clock import PATIENCE_S
from tests.growth import is_linear
from tests.guardrail.core.documents import made

TABLE = (
    "| Bike | Price | Range |\n| --- | --- | --- |\n| Fjell 3 | 2,490 euros | 110 km |\n"
    "| Fjell Cargo | 3,890 euros | 90 km |"
)


@pytest.mark.parametrize(
    ("name", "data", "sign", "pages"),
    [
        ("handbook.pdf", made.pdf(), "##", (", p. 1", ", p. 2")),
        ("handbook.docx", made.word(), "#", ("", "")),
        ("handbook.html", made.html().encode(), "#", ("", "")),
    ],
    ids=["pdf", "docx", "html"],
)
def test_headings_tables_and_pages_are_kept(tmp_path, name, data, sign, pages):
    (tmp_path / name).write_bytes(data)
    first, last = pages
    assert Passage.from_file(tmp_path / name) == (
        Passage(f"{sign} Prices\n\n{TABLE}", id=f"{name}{first}, Prices"),
        Passage(f"{sign} Returns\n\n{made.RETURNS}", id=f"{name}{last}, Returns"),
        Passage(f"{sign} Warranty\n\n{made.WARRANTY}", id=f"{name}{last}, Warranty"),
    )


def test_an_answer_is_judged_by_a_document_and_cites_its_page(tmp_path):
    (tmp_path / "handbook.pdf").write_bytes(made.pdf())
    evidence = Passage.from_file(tmp_path / "handbook.pdf")
    with Guardrail(GuardrailConfig(graph="none")) as guard:
        answer = guard.check(
            "What does it cost, and how long is the warranty?",
            "The Fjell Cargo costs 3,490 euros. The frame has a warranty of five years.",
            evidence=evidence,
        )
    wrong, right = answer.sentences
    assert wrong.category == "contradictory"
    assert [citation.entity for citation in right.citations] == ["handbook.pdf, p. 2, Warranty"]


def test_a_heading_stands_above_each_paragraph_below_it():
    text = (
        "Intro.\n\n# Rules\n\nBring:\n\n- a light\n\nThe last one.\n\n## Empty\n\n### Fees\nNone."
    )
    assert [(p.id, p.text) for p in Passage.from_bytes(text.encode(), "a.md")] == [
        ("a.md 1", "Intro."),
        ("a.md, Rules", "# Rules\n\nBring:\n\n- a light"),
        ("a.md, Rules", "# Rules\n\nThe last one."),
        ("a.md, Fees", "### Fees\n\nNone."),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Prices\n===\n\nA: 990.\n\nUsed\n---\nB: 890.",
         ["# Prices\n\nA: 990.", "## Used\n\nB: 890."]),
        ("# A\n\n```sh\n\n# install\n<!-- x -->\n```\n\nOf A.",
         ["# A\n\n```sh\n\n# install\n<!-- x -->\n```", "# A\n\nOf A."]),
        ("# A\n\n    # a comment of code\n\nOf A.",
         ["# A\n\n    # a comment of code", "# A\n\nOf A."]),
        ("990 <!-- 890 --> euros.\n\n<!--\nB: 890.\n\nC\n-->\nWrite `<!--` first.",
         ["990  euros.", "Write `<!--` first."]),
        ("One. <!-- never ended\n\nTwo.", ["One. <!-- never ended", "Two."]),
        ("# A\r\rOf A.\r\rMore.", ["# A\n\nOf A.", "# A\n\nMore."]),
        ("---\ntitle: A\n---\n\n| A | B |\n| --- | --- |\n| 1 | 2 |\n\n---\n\nEnd.",
         ["---\ntitle: A\n---", "| A | B |\n| --- | --- |\n| 1 | 2 |", "---", "End."]),
    ],
    ids=["underlined", "fence", "indented", "comments", "no end", "returns", "rules"],
)  # fmt: skip
def test_markdown_is_read_as_it_is_shown(text, expected):
    assert [item.text for item in Passage.from_bytes(text.encode(), "a.md")] == expected


def test_a_comment_is_text_of_a_file_that_is_no_markdown():
    assert (
        Passage.from_bytes(b"Write <!-- so --> here.", "a.txt")[0].text == "Write <!-- so --> here."
    )


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.pdf", made.pdf(password="secret"), "a.pdf is no PDF that can be read: it is locked"),
        ("a.pdf", made.pdf(empty=True), "a.pdf has no text; of a scan make one by OCR first"),
        ("a.pdf", b"%PDF-1.7 and nothing", "a.pdf is no PDF that can be read"),
        ("a.docx", b"PK and nothing", "a.docx is no Word document that can be read"),
        ("a.html", b"<div>" * 100_000, "a.html has elements that are nested too deep"),
        ("a.html", b"<script>only()</script>", "a.html holds no text"),
        ("a.txt", b"\xff\xfe", "a.txt is not UTF-8 text"),
        ("a.txt", b" \n\n ", "a.txt is empty"),
    ],
)
def test_unreadable_files_raise_input_errors(name, data, message):
    with pytest.raises(InputError, match=message):
        Passage.from_bytes(data, name)


def test_headings_without_end_take_linear_time():
    def read(text):
        found = Passage.from_bytes(text.encode(), "a.md")
        assert [passage.text for passage in found] == ["# a\n\nThe frame."]

    assert is_linear(read, lambda count: "# a\n" * count + "The frame.", 30_000)


def test_what_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MAX_BYTES", 8)
    (tmp_path / "a.txt").write_text("nine signs")
    with pytest.raises(InputError, match="larger than"):
        Passage.from_file(tmp_path / "a.txt")
    with pytest.raises(InputError, match="cannot read"):
        Passage.from_file(tmp_path / "b.txt")


def test_a_word_file_that_unpacks_to_too_much_is_refused(monkeypatch):
    from guardrail.core.documents import markup

    monkeypatch.setattr(markup, "MAX_UNPACKED", 100)
    with pytest.raises(InputError, match="unpacks to more than"):
        markup.docx_pages(made.word())


def test_a_file_that_takes_its_reader_for_ever_is_given_up(monkeypatch):
    html = reading.ENDINGS[".html"]._replace(seconds=1)
    monkeypatch.setitem(reading.ENDINGS, ".html", html)
    page = b"<!--" * 200_000  # minutes of Python's reader, which nothing stops in a thread
    before = time.monotonic()
    with pytest.raises(InputError, match=r"a.html takes more than 1 s to read; split it"):
        Passage.from_bytes(page, "a.html")
    assert time.monotonic() - before < PATIENCE_S


def test_a_file_that_unpacks_to_any_size_is_bounded():
    # One stream of 3 GB of zeros, packed twice: what 16 MB of them pack to repeats.
    packer = zlib.compressobj(1)
    packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)
    part = packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)
    once = b"\x78\x01" + 192 * part + b"\x03\x00"
    packed = zlib.compress(once, 9)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>",
        b"<</Filter[/FlateDecode/FlateDecode]/Length %d>>stream\n%s\nendstream"
        % (len(packed), packed),
    ]
    file, places = b"%PDF-1.4\n", []
    for number, item in enumerate(objects, start=1):
        places.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, item)
    lines = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer\n<</Root 1 0 R/Size 5>>\nstartxref\n%d\n%%%%EOF" % len(file)
    file += b"xref\n0 5\n0000000000 65535 f \n" + lines + end
    with pytest.raises(InputError, match=r"Unable to allocate|2 GB of memory"):
        Passage.from_bytes(file, "a.pdf")


@pytest.mark.parametrize(("library", "ending"), [("pdfplumber", "pdf"), ("markdownify", "html")])
def test_a_missing_extra_is_named(library, ending):
    code = (
        f"import sys; sys.modules['{library}'] = None\n"
        f"from guardrail import MissingExtraError, Passage\n"
        f"try: Passage.from_bytes(b'<p>x</p>', 'a.{ending}')\n"
        "except MissingExtraError as error: print(error.extra)"
    )
    root = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
    )
    assert done.stdout == "documents\n"
