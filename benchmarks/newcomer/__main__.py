"""The command; see the package."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from benchmarks.newcomer.domains import DOMAINS, Domain
from benchmarks.newcomer.measure import Table, table_of, together
from benchmarks.newcomer.tuned import tuned
from benchmarks.outcomes import checked
from guardrail import Guardrail, GuardrailConfig

__all__ = ["main"]

ROWS = {
    "claims": "claims, true / false",
    "balanced": "balanced accuracy, supported or not",
    "true_contradicted": "true sentences called contradicted",
    "true_removed": "true sentences removed",
    "named": "contradictions named",
    "precision": "contradicted verdicts that are right",
    "whole": "fully true answers untouched",
    "auc": "AUC of the support score",
    "false_unmarked": "false sentences delivered unmarked",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Three companies that nothing was fitted on.")
    names = sorted(path.name for path in DOMAINS.iterdir() if path.is_dir())
    parser.add_argument("--domains", default=",".join(names), help=f"of {', '.join(names)}")
    parser.add_argument("--policy", default="strict")
    parser.add_argument("--judge", default="onnx")
    parser.add_argument(
        "--tune",
        action="store_true",
        help="learn thresholds from every third answer, and measure the others before and after",
    )
    parser.add_argument(
        "--confirm",
        action="store_true",
        help="ask each answer to be confirmed in place of its own question",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object in place of a table")
    options = parser.parse_args(arguments)
    tables: dict[str, Table] = {}
    with Guardrail(GuardrailConfig(policy=options.policy, judge=options.judge)) as guard:
        if options.tune:
            tables = tuned(guard, {name: Domain(name) for name in options.domains.split(",")})
            return _print(tables, as_json=options.json)
        for name in options.domains.split(","):
            answers = Domain(name).answers
            if options.confirm:
                answers = [item.confirming() for item in answers]
            found = checked(guard, [item.request for item in answers])
            tables[name] = table_of(list(zip(answers, found, strict=True)))
    tables["all"] = together(list(tables.values()))
    return _print(tables, as_json=options.json)


def _print(tables: dict[str, Table], *, as_json: bool) -> int:
    if as_json:
        print(json.dumps({name: table.shares() for name, table in tables.items()}))
        return 0
    print(f"| | {' | '.join(tables)} |")
    print(f"|---|{'--:|' * len(tables)}")
    for key, title in ROWS.items():
        print(f"| {title} | {' | '.join(table.cell(key) for table in tables.values())} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
