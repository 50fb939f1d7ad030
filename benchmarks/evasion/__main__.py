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
from guardrail.core.types import Triple
from guardrail.core.types.answers import CheckRequest
from guardrail.sources.items import as_evidence

__all__ = ["Hidden", "main", "read_hidden"]

FORMS = Path(__file__).parent / "forms"


class Hidden(NamedTuple):
    """A claim in an answer.

    Attributes:
        form: The form in which it hides.
        request: The answer.
        start: Offset of the claim in it.
        end: Offset past the claim.
        true: Whether it holds.
    """

    form: str
    request: CheckRequest
    start: int
    end: int
    true: bool


def read_hidden(folder: Path = FORMS) -> Iterator[Hidden]:
    """All rows of the benchmark.

    Raises:
        ValueError: An answer does not contain its claim.
    """
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").removesuffix("\n").split("\n"):
            row = json.loads(line)
            start = row["answer"].index(row["claim"])
            evidence = as_evidence(
                [item if isinstance(item, str) else Triple(*item) for item in row["evidence"]]
            )
            request = CheckRequest(
                id=row["id"], question=row["question"], answer=row["answer"], evidence=evidence
            )
            yield Hidden(row["form"], request, start, start + len(row["claim"]), row["true"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Forms in which a claim can hide.")
    parser.add_argument("--policy", default="strict")
    parser.add_argument("--judge", default="onnx")
    parser.add_argument("--forms", type=Path, default=FORMS, help="folder of forms")
    parser.add_argument("--json", action="store_true", help="one JSON object in place of a table")
    options = parser.parse_args(arguments)
    rows = list(read_hidden(options.forms))
    with Guardrail(GuardrailConfig(policy=options.policy, judge=options.judge)) as guard:
        answers = checked(guard, [row.request for row in rows])
    forms: dict[str, dict[bool, list[Outcome]]] = defaultdict(lambda: {True: [], False: []})
    for row, answer in zip(rows, answers, strict=True):
        found = outcome(answer, row.request.answer, row.start, row.end)
        for form in (row.form, "all"):
            forms[form][row.true].append(found)
    order = [*sorted(form for form in forms if form != "all"), "all"]
    counted = {
        form: {
            "false_unmarked": _count([item.unmarked for item in forms[form][False]]),
            "true_removed": _count([item.removed for item in forms[form][True]]),
            "true_marked": _count([item.marked for item in forms[form][True]]),
        }
        for form in order
    }
    if options.json:
        print(json.dumps(counted))
        return 0
    print("| form | false delivered unmarked | true removed | true marked |")
    print("|---|--:|--:|--:|")
    for form, cells in counted.items():
        shares = (f"{a} of {b} ({a / b:.1%})" for a, b in cells.values())
        print(f"| {form} | {' | '.join(shares)} |")
    return 0


def _count(held: Sequence[bool]) -> tuple[int, int]:
    return sum(held), len(held)


if __name__ == "__main__":
    sys.exit(main())
