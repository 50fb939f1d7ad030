"""Verdicts that hold whatever the judge says: the rows of ``guarantees.txt``.

``+`` is supported, ``-`` contradicted, ``?`` unsupported; ``!`` is settled by no check as
supported. Each row is judged by nobody, by a judge that supports everything, and by one that
contradicts everything. The last sentence counts.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from guardrail.core.types import Category, Evidence, Grounding, Passage, StatementScore, Triple
from guardrail.evidence.prepared import prepare
from guardrail.markers.grammar import ParsedText
from guardrail.verdict.claims import GroundingRequest
from guardrail.verdict.grounder import Grounder
from judges.base import GroundingItem

MARKS = {
    "+": {Category.SUPPORTIVE},
    "-": {Category.CONTRADICTORY},
    "?": {Category.IRRELEVANT, Category.PARTIALLY_SUPPORTIVE},
}


class Biased:
    """A judge that says one thing of every sentence."""

    def __init__(self, *, supports: bool) -> None:
        self.name = f"biased-{supports}"
        self.supports = supports

    def warm_up(self) -> None:
        """Nothing to load."""

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        good, bad = (0.98, 0.01) if self.supports else (0.01, 0.98)
        return [
            Grounding(
                supported=good,
                unsupported=0.01,
                contradicted=bad,
                no_claim=0.0,
                statements=tuple(
                    StatementScore(carries=good, conflicts=bad) for _ in item.statements
                ),
            )
            for item in items
        ]


def rows() -> Iterator[Any]:
    kind = question = ""
    evidence: list[Evidence] = []
    text = (Path(__file__).parent / "guarantees.txt").read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), start=1):
        mark, _, rest = line.partition(" ")
        if mark == "@":
            kind, question, evidence = rest, "", []
        elif mark == "E":
            evidence.append(Triple(*rest.split(" | ")))
        elif mark == "P":
            evidence.append(Passage(rest.replace("\\n", "\n")))
        elif mark == "T":
            title, _, body = rest.partition(" | ")
            evidence.append(Passage(body, title=title))
        elif mark == "Q":
            question = rest
        else:
            answer = rest.replace("\\n", "\n")
            yield pytest.param(tuple(evidence), question, answer, mark, id=f"{kind}-{number}")


@pytest.mark.parametrize(("evidence", "question", "answer", "mark"), list(rows()))
def test_a_verdict_that_holds_for_every_judge(
    evidence: tuple[Evidence, ...], question: str, answer: str, mark: str
) -> None:
    for judge in (None, Biased(supports=True), Biased(supports=False)):
        parsed = ParsedText(clean=answer, marked=answer)
        request = GroundingRequest(question, parsed, prepare(evidence))
        (found,), _, problems = Grounder(judge).ground([request])
        assert problems == []
        last = found.sentences[-1]
        if mark in MARKS:
            assert last.category in MARKS[mark]
        else:
            assert not [f for f in last.findings if f.decides and f.effect == "carries"]
        if last.category is Category.CONTRADICTORY:
            assert last.against  # a contradiction names what it conflicts with


@pytest.mark.parametrize(
    ("answer", "named", "borrowed"),
    [
        ("The price of the Fjell 3 is 300 euros.", "Tarn City", True),
        ("The Fjell 3 is made in Lund.", "Tarn City", True),
        ("The Fjell 3 is one of the bikes.", "", False),
        ("The price of the Tarn City is 300 euros.", "", False),
    ],
)
def test_a_row_that_only_has_a_name_borrows_no_cell(
    answer: str, named: str, borrowed: bool
) -> None:
    """The judge finds each sentence in the name of its subject."""
    evidence = [
        Triple("Fjell 3", "name", "Fjell 3"),
        Triple("Tarn City", "price", "300 euros"),
        Triple("Tarn City", "made in", "Lund"),
    ]
    parsed = ParsedText(clean=answer, marked=answer)
    request = GroundingRequest("", parsed, prepare(evidence))
    (found,), _, _ = Grounder(Biased(supports=True)).ground([request])
    (sentence,) = found.sentences
    because = [item.because for item in sentence.findings if item.check == "known_subject"]
    assert (sentence.category is not Category.SUPPORTIVE) is borrowed
    assert bool(because) is borrowed
    assert named in "".join(because)


DELIVERY = (
    "Up to 10 miles delivery costs £35 each way; from 10 to 25 miles it costs £55 each way; beyond "
    "that £2.40 per mile each way."
)
VISITORS = "In 2019 the museum had 12,000 visitors and in 2020 it had 4,000 visitors."
GEMS = "500 gems cost €4.99 and 1,200 gems cost €9.99."


@pytest.mark.parametrize(
    ("passage", "answer", "contradicted"),
    [
        (GEMS, "500 gems cost €4.99.", False),
        (GEMS, "1,200 gems cost €9.99.", False),
        (GEMS, "500 gems cost €4.99, 1,200 cost €9.99.", False),
        (GEMS, "It is €4.99 or €9.99, for 500 or 1,200 gems.", False),
        (GEMS, "Besides 500 gems there is a bigger pack for €9.99.", False),
        (VISITORS, "Compared with 2019, only 4,000 visitors came.", False),
        (GEMS, "500 gems cost €9.99.", True),
        (GEMS, "1,200 gems cost €4.99.", True),
        (DELIVERY, "Up to 10 miles delivery costs £35 each way.", False),
        (DELIVERY, "From 10 to 25 miles it costs £55 each way.", False),
        (DELIVERY, "Up to 10 miles delivery costs £55 each way.", True),
        (DELIVERY, "From 10 to 25 miles it costs £35 each way.", True),
    ],
)
def test_a_value_belongs_to_its_part_of_a_sentence(
    passage: str, answer: str, contradicted: bool
) -> None:
    parsed = ParsedText(clean=answer, marked=answer)
    request = GroundingRequest("", parsed, prepare([Passage(passage)]))
    (found,), _, _ = Grounder(Biased(supports=True)).ground([request])
    effects = [item.effect for item in found.sentences[0].findings]
    assert ("contradicts" in effects) is contradicted
