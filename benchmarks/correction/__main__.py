"""The command; see the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.correction.errors import chatbot_cases, domain_cases, generated, true_cases
from benchmarks.correction.measure import Came, came_of, table
from benchmarks.data import exit_on_error
from guardrail import Guardrail, GuardrailConfig

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Correct errors in texts, given their triples.")
    parser.add_argument("--data", type=Path, help="the folder of public data; none: own domains")
    parser.add_argument("--limit", type=int, default=400, help="texts read of each public set")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--judge", default="onnx")
    parser.add_argument("--show", type=int, default=0, help="cases to show of each kind of failure")
    options = parser.parse_args(arguments)
    own = list(domain_cases())
    cases = [case for case in own if case.kind]
    true = [case for case in own if not case.kind]
    if options.data is not None:
        cases += generated(options.data, options.limit, options.seed)
        true += true_cases(options.data, options.limit, options.seed)
    with Guardrail(GuardrailConfig(judge=options.judge)) as guard:
        errors, kept = came_of(guard, cases), came_of(guard, true)
        said = came_of(guard, list(chatbot_cases()))
    print(table(errors, kept))
    changed = sum(bool(item.changed) for item in said)
    print(f"True answers of chatbots changed: {changed} of {len(said)}.")
    _show("not carried", [item for item in errors if not item.carried], options.show)
    wrong = [item for item in errors if item.corrected and not item.right and item.carried]
    _show("not right", wrong, options.show)
    _show(
        "true and changed", [item for item in (*errors, *kept, *said) if item.changed], options.show
    )
    _show("not attempted", [item for item in errors if not item.corrected], options.show)
    return 0


def _show(title: str, items: Sequence[Came], most: int) -> None:
    for item in items[:most]:
        case = item.case
        print(f"\n{title} ({case.set}, {case.kind or 'true'}): {case.text}")
        if case.broken is not None:
            print(f"  broken: {case.broken.text}")
        for sentence in (*item.corrected, *item.changed):
            print(f"  released: {sentence.text}")


if __name__ == "__main__":
    with exit_on_error():
        sys.exit(main())
