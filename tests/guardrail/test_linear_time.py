"""Whoever wrote a text does not choose how long it is read: twice the text takes twice the time."""

import asyncio

import pytest

from guardrail.core.documents.markdown import Page, sections_of
from guardrail.core.text.sentences import laid_out
from guardrail.core.text.units import unit_of_label
from guardrail.core.text.values import find_values
from guardrail.correction.edits import QUALIFIER
from guardrail.evidence.prepared import prepare
from guardrail.markers.grammar import parse
from guardrail.markers.rendering import DOTTED
from guardrail.models.base import Completion, SampleRequest
from guardrail.models.generation import generate
from guardrail.verdict.claims import PLAIN_WORDS, GroundingRequest, claims_of
from judges.lifting import sub_facts
from judges.sck.structure import detect
from tests.growth import is_linear
from tests.guardrail.scripted import Ready

LINES = {
    "a rule that is none": lambda n: "a | b\n" + " " * n + "x",
    "a line of sentences": lambda n: "The depot is open. " * n,
    "a row of sentences": lambda n: "a | b\n-|-\n" + "The depot is open. | " * n,
    "heads of tables": lambda n: "a | b\n-|-\n" * n,
    "a long head": lambda n: "a. | " * n + "\n" + "-|" * n + "\nb|c",
}


@pytest.mark.parametrize("text", LINES.values(), ids=LINES)
def test_the_layout_of_evidence_is_found_in_linear_time(text) -> None:
    assert is_linear(lambda made: list(laid_out(made)), text, 3_000)


@pytest.mark.parametrize("text", LINES.values(), ids=LINES)
def test_the_claims_of_an_answer_are_found_in_linear_time(text) -> None:
    def claims(made: str) -> None:
        claims_of(GroundingRequest("", parse(made), prepare([])))

    assert is_linear(claims, text, 2_000)


def test_a_tables_statements_are_no_longer_than_its_rows_and_columns() -> None:
    label = "a|" * 20_000 + "\n-|-\n" + "a" * 100_000 + "|b" * 20_000
    column = "a|" + "b" * 100_000 + "\n-|-\n" + "a|c\n" * 20_000
    for text in (label, column):
        assert sum(len(piece.text) for piece in laid_out(text)) < 100 * len(text)


@pytest.mark.parametrize("sign", [" ", "#", "\t"])
def test_headings_are_read_in_linear_time(sign) -> None:
    def sections(made: str) -> None:
        list(sections_of([Page(made)]))

    assert is_linear(sections, lambda n: "# a" + sign * n + "x", 3_000)


@pytest.mark.parametrize("end", ["", " ", " #", " ## \t"])
def test_a_heading_ends_before_its_closing_marks(end) -> None:
    [section] = sections_of([Page(f"## C# and *D*{end}\n\nText.")])
    assert section.heading == "C# and *D"


@pytest.mark.parametrize("unit", ["\n", "```a\n", "~~~\n\n", " \n"])
def test_code_in_answers_is_found_in_linear_time(unit) -> None:
    assert is_linear(detect, lambda n: unit * n + "x", 3_000)


def test_layout_is_detected_without_code_blocks() -> None:
    for code in (
        "```python\n- a\n- b\n```",
        "  ~~~\n1. a\n  ~~~  ",
        "\n\n```\n\n- a\n- b\n\n```\n",
    ):
        assert detect(f"One.\n{code}\nTwo.").format == "paragraphs"
        assert detect(code).format == "code"
    assert detect("One.\n```\n- a\n- b").format == "sentences"


class Fixed(Ready):
    """A model with one reply, cut off at its limit."""

    name = "fixed"

    def __init__(self, text: str) -> None:
        self.text = text

    def close(self) -> None: ...

    async def sample(self, request: SampleRequest) -> list[Completion]:
        return [Completion(text=self.text, finish_reason="length")]


def reply(text: str) -> str:
    return asyncio.run(generate("Where?", (), Fixed(text)))[0]


def test_a_reply_is_read_in_linear_time() -> None:
    assert is_linear(reply, lambda n: "a" + " " * n + "x", 3_000)
    assert is_linear(reply, lambda n: "a " + "[" * n + "\n", 3_000)


@pytest.mark.parametrize("text", ["She lived. \n [Q1, place", "She lived. [", "She lived.[a, b: c"])
def test_an_open_marker_goes_with_the_gap_before_it(text) -> None:
    assert reply(text) == "She lived."


VALUES = {
    "a gap behind a day": lambda n: "May 5" + " " * n + "x",
    "a gap before a comma": lambda n: "May 5" + "\t" * n + ",",
    "a version": lambda n: "1.2.3" + ".4" * n + "..5",
    "zeros": lambda n: "0" * n,
    "thousands": lambda n: "0" + ",000" * n,
}


@pytest.mark.parametrize("text", VALUES.values(), ids=VALUES)
def test_values_are_found_in_linear_time(text) -> None:
    assert is_linear(find_values, text, 3_000)


def test_a_day_and_its_year_may_stand_apart() -> None:
    for gap in (", ", " ", " , ", "\n", ",  \n"):
        assert [item.kind for item in find_values(f"May 5{gap}2019")] == ["date"]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (unit_of_label, lambda n: "a" + " " * n + "%"),
        (unit_of_label, lambda n: "_" * n + "%"),
        (lambda text: QUALIFIER.sub("", text), lambda n: "a" + " " * n + "x"),
        (DOTTED.search, lambda n: "a." * n + "!"),
        (PLAIN_WORDS.search, lambda n: "0" * n),
        (PLAIN_WORDS.search, lambda n: "a-" * n),
        (sub_facts, lambda n: "a" + " " * n + "b"),
    ],
)
def test_what_short_texts_are_searched_for_is_found_in_long_ones(read, text) -> None:
    assert is_linear(read, text, 3_000)
