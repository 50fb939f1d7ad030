"""The command; see the package."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.outcomes import Outcome, checked, outcome
from guardrail import Guardrail, GuardrailConfig
from guardrail.core.types import Evidence, Passage, Triple
from guardrail.core.types.answers import CheckRequest

__all__ = ["Written", "main", "read_written"]

AS_HELD = "as the evidence writes it"

SUBJECTS = Path(__file__).parent / "subjects.json"


class Written(NamedTuple):
    """A claim whose value is written otherwise than in its evidence.

    Attributes:
        groups: What it is counted under: what is measured, and what the evidence is.
        request: The claim and its evidence.
        true: Whether it holds.
    """

    groups: tuple[str, ...]
    request: CheckRequest
    true: bool


def read_written(path: Path = SUBJECTS) -> Iterator[Written]:
    """All rows of the benchmark: each notation of each fact, against triples and against prose.

    What the evidence itself writes comes last of each, and shows what is lost to the judge.
    """
    for row in json.loads(path.read_text(encoding="utf-8")):
        subject, facts = row["subject"], row["facts"]
        triples = tuple(
            Triple(subject, fact["property"], fact.get("cell", fact["held"])) for fact in facts
        )
        text = " ".join(fact["prose"].format(fact["held"]) for fact in facts)
        bases: dict[str, tuple[Evidence, ...]] = {
            "triples": triples,
            "prose": (Passage(text=text, title=subject),),
        }
        for fact in facts:
            ways = [(value, True, fact["kind"]) for value in fact["same"]]
            ways += [(value, False, fact["kind"]) for value in fact["other"]]
            ways.append((fact["held"], True, AS_HELD))
            for value, true, kind in ways:
                for basis, evidence in bases.items():
                    request = CheckRequest(
                        question=f"What do you know about {subject}?",
                        answer=fact["answer"].format(value),
                        evidence=evidence,
                    )
                    groups = (kind,) if kind == AS_HELD else (kind, basis, "all")
                    yield Written(groups, request, true)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Values in another notation.")
    parser.add_argument("--policy", default="strict")
    parser.add_argument("--judge", default="onnx")
    parser.add_argument("--json", action="store_true", help="one JSON object in place of a table")
    options = parser.parse_args(arguments)
    rows = list(read_written())
    with Guardrail(GuardrailConfig(policy=options.policy, judge=options.judge)) as guard:
        answers = checked(guard, [row.request for row in rows])
    groups: dict[str, dict[bool, list[Outcome]]] = defaultdict(lambda: {True: [], False: []})
    for row, answer in zip(rows, answers, strict=True):
        found = outcome(answer, row.request.answer, 0, len(row.request.answer))
        for group in row.groups:
            groups[group][row.true].append(found)
    last = ("triples", "prose", "all", AS_HELD)
    order = [*(group for group in groups if group not in last), *last]
    counted = {
        group: {
            "true_contradicted": _count([item.contradicted for item in groups[group][True]]),
            "true_removed": _count([item.removed for item in groups[group][True]]),
            "true_supported": _count([item.supported for item in groups[group][True]]),
            "false_unmarked": _count([item.unmarked for item in groups[group][False]]),
        }
        for group in order
    }
    if options.json:
        print(json.dumps(counted))
        return 0
    print("| values | true called contradicted | removed | supported | false delivered unmarked |")
    print("|---|--:|--:|--:|--:|")
    for group, cells in counted.items():
        print(f"| {group} | {' | '.join(f'{a} of {b}' for a, b in cells.values())} |")
    return 0


def _count(held: Sequence[bool]) -> tuple[int, int]:
    return sum(held), len(held)


if __name__ == "__main__":
    sys.exit(main())
