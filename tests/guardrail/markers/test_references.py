"""References to sources, and markers that cannot be read."""

from __future__ import annotations

import pytest

from guardrail import Guardrail, GuardrailConfig, Passage
from guardrail.markers.grammar import (
    parse,
    render,
    source_numbers,
    without_references,
    without_ruins,
)
from tests.growth import is_linear

SOURCES = 3


@pytest.mark.parametrize(
    ("text", "judged"),
    [
        ("It costs 90 euros [1].", "It costs 90 euros    ."),
        ("It costs 90 euros[1].", "It costs 90 euros   ."),
        ("It costs 90 euros. [1]", "It costs 90 euros.    "),
        (
            "It costs 90 euros [1][2], and it is red [1, 3].",
            "It costs 90 euros       , and it is red       .",
        ),
        ("It costs 90 euros [1-3].", "It costs 90 euros      ."),
        ("It costs **90 euros** [^2].", "It costs **90 euros**     ."),
        ("It costs 90 euros【4:0†source】.", "It costs 90 euros            ."),
        ("[1] It costs 90 euros.", "    It costs 90 euros."),
        ("[2]", "   "),
        ('It is called "the red fox" [2].', 'It is called "the red fox"    .'),
    ],
)
def test_references_are_blank(text: str, judged: str) -> None:
    assert without_references(text, SOURCES) == judged


@pytest.mark.parametrize(
    "text",
    [
        "It lasts for [2].",
        "Years of warranty: [2].",
        "Years of warranty = [2]",
        "It has [2] gears.",
        "It costs 90 euros [4].",
        "It costs 90 euros [0].",
        "It costs 90 euros [1, 9].",
        "It costs 90 euros [1](https://a.example).",
        "It costs 90 euros [NA].",
        "It costs 90 euros 【1†nine years of warranty】.",
        "a[1] = 2",
    ],
)
def test_what_a_sentence_lacks_without_it_stays(text: str) -> None:
    assert without_references(text, SOURCES) == text


@pytest.mark.parametrize("unit", ["[1]", "[1] ", "a [1]", "[1, ", "【1†", " "])
def test_references_are_found_in_linear_time(unit: str) -> None:
    assert is_linear(lambda text: without_references(text, SOURCES), lambda n: unit * n, 3_000)


@pytest.fixture(scope="module")
def guard():
    with Guardrail(GuardrailConfig(graph={"location": "none"}, policy="strict")) as guard:
        yield guard


EVIDENCE = [
    Passage("The Velora 7 is an electric bicycle made in Gdansk. It costs 2,490 euros."),
    Passage("The warranty of the Velora 7 is five years."),
]


@pytest.mark.parametrize(
    ("place", "left"),
    [
        (" [1].", "."),
        ("[1].", "."),
        (" [1][2].", "."),
        (". [1]", "."),
        (".[1]", "."),
        (".[1] [2]", "."),
        (" 【1:0†source】.", " 【1:0†source】."),
    ],
)
def test_a_true_sentence_stays_true_with_its_reference(guard, place, left) -> None:
    text = f"The Velora 7 costs 2,490 euros{place} The warranty is five years [2]."
    answer = guard.check("", text, evidence=EVIDENCE)
    assert answer.text == f"The Velora 7 costs 2,490 euros{left} The warranty is five years."
    assert not any(sentence.na for sentence in answer.sentences)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It costs 60 euros [2]. It is green [1, 3].", {18: (2,), 35: (1, 3)}),
        ("It costs 60 euros[1][2].", {17: (1,), 20: (2,)}),
        ("It costs 60 euros [^2]\nIt is green [1-3].", {18: (2,), 35: (1, 2, 3)}),
        ("It costs 60 euros.[2] It is green. [1][3] It is new.", {18: (2,), 35: (1,), 38: (3,)}),
        ('It says "old."[2] It is green.', {14: (2,)}),
        ("[2] It costs 60 euros. [1] It is green.", {}),
        ("It costs 60 euros [4].", {}),
        ("It lasts for [2].", {}),
        ("Take `rows[2]`, the third row.", {}),
    ],
)
def test_numbers_at_the_end_of_a_phrase_cite_sources(text, numbers) -> None:
    assert source_numbers(text, SOURCES) == numbers
    parsed = parse(text, sources=SOURCES)
    assert [marker.sources for marker in parsed.markers] == list(numbers.values())
    assert render(parsed) == text


def test_a_number_of_a_source_that_says_something_else_is_an_error(guard) -> None:
    text = "The Velora 7 costs 2,490 euros [2]. The warranty is five years [2]."
    first, second = guard.check("", text, evidence=EVIDENCE).sentences
    assert len(first.citation_errors) == 1
    assert first.citation_errors[0].startswith("[2]:")
    assert second.citation_errors == ()
    behind = "The Velora 7 costs 2,490 euros.[2] The warranty is five years.[2]"
    found = guard.check("", behind, evidence=EVIDENCE).sentences
    assert [len(sentence.citation_errors) for sentence in found] == [1, 0]


def test_a_false_one_stays_false(guard) -> None:
    answer = guard.check("", "The Velora 7 costs 2,190 euros [1].", evidence=EVIDENCE)
    assert "2,190" not in answer.text


BORN = "[Ada Lovelace, place of birth: London"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"She wrote {BORN} and", ["She", "wrote"]),
        (f"She wrote {BORN}] on.", ["She", "wrote", "on."]),
        (f"{BORN} [x]] was there.", ["was", "there."]),
        ("So [Q7259, born: London] it is.", ["So", "it", "is."]),
    ],
)
def test_a_marker_is_blanked_to_its_end_and_offsets_stay(text, left):
    blanked = without_ruins(text, {"Ada Lovelace"})
    assert len(blanked) == len(text)
    assert blanked.split() == left


@pytest.mark.parametrize("text", ["See [Smith, page: 3] there.", "An [aside, no colon] here.", ""])
def test_brackets_of_prose_stay(text):
    assert without_ruins(text, {"Ada Lovelace"}) == text
