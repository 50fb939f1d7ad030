"""What the checks find, both ways and by kind, without a judge: the rows of ``findings.txt``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from guardrail.core.types import Effect, Evidence, Passage, Triple
from guardrail.core.types.knowledge import TableRow
from guardrail.evidence.prepared import prepare
from guardrail.markers.grammar import ParsedText
from guardrail.verdict.claims import GroundingRequest
from guardrail.verdict.grounder import Grounder

EXPECTED = {
    "+": Effect.CARRIES,
    "-": Effect.CONTRADICTS,
    "?": Effect.MISSING,
    "=": None,
    "0": "silent",
}


def rows() -> Iterator[Any]:
    kind = ""
    evidence: list[Evidence] = []
    text = (Path(__file__).parent / "findings.txt").read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), start=1):
        mark, _, rest = line.partition(" ")
        if mark == "@":
            kind, evidence = rest, []
        elif mark == "E":
            evidence.append(Triple(*rest.split(" | ")))
        elif mark == "R":
            row = TableRow(table="places", number=1 + len(evidence))
            subject, column, cell = rest.split(" | ")
            evidence.append(Triple(subject, column, cell, row=row))
        elif mark == "P":
            evidence.append(Passage(rest.replace("\\n", "\n")))
        elif mark in EXPECTED:
            check, _, sentence = rest.replace("\\n", "\n").partition(" | ")
            yield pytest.param(
                tuple(evidence), sentence, check, EXPECTED[mark], id=f"{kind}-{number}"
            )


@pytest.mark.parametrize(("evidence", "sentence", "check", "expected"), list(rows()))
def test_what_a_check_finds(
    evidence: tuple[Evidence, ...], sentence: str, check: str, expected: Effect | str | None
) -> None:
    answer = ParsedText(clean=sentence, marked=sentence)
    request = GroundingRequest("", answer, prepare(evidence))
    (attributed,), _, _ = Grounder(None).ground([request])
    found = {(item.check, item.effect) for one in attributed.sentences for item in one.findings}
    names = {check, "stated", "copied"}
    against = {item for item in found if item[1] is Effect.CONTRADICTS}
    if expected is Effect.CONTRADICTS:
        assert any(name in names for name, _ in against)
        return
    assert not against
    if expected == EXPECTED["0"]:
        assert check not in {name for name, _ in found}
    elif expected is not None:
        assert any(name in names and effect is expected for name, effect in found)
