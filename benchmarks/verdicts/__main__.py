"""The command; see the package."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence

from benchmarks.data import exit_on_error
from benchmarks.verdicts.cases import Case
from benchmarks.verdicts.judging import Opened, add_options, judge_cases, opened
from benchmarks.verdicts.measure import Row, summed
from benchmarks.verdicts.sets import read_set
from guardrail.verdict.checks import all_checks

__all__ = ["main"]

SHIPPED = "engine"
BARE = "bare judge"
TIMED = 20
"""Cases that are timed, one after the other, before any verdict is remembered."""

COLUMNS = {
    "cases": "cases", "true_passed": "true", "false_passed": "false", "balanced": "balanced",
    "contradictions_found": "contr. found", "contradictions_right": "right",
    "true_contradicted": "true contr.", "true_removed": "removed",
    "small_talk": "talk", "citation_precision": "cited P", "citation_recall": "cited R",
    "stated_recall": "stated R", "span_f1": "span F1", "milliseconds": "ms",
}  # fmt: skip


def _rows(
    harness: Opened,
    cases: Sequence[Case],
    checks: Sequence[str],
    *,
    ablate: bool,
) -> dict[str, Row]:
    """Rows by name: the engine, the bare judge, and the engine without each check."""
    grounder, remembered = harness.grounder, harness.remembered
    timed = cases[:TIMED]
    begin = time.perf_counter()
    for case in timed:
        judge_cases(grounder(harness.judge), [case])
    spent = (time.perf_counter() - begin) * 1000.0 / max(1, len(timed))
    rows = {SHIPPED: summed(cases, judge_cases(grounder(remembered), cases), spent)}
    rows[BARE] = summed(cases, judge_cases(grounder(remembered, off=checks), cases))
    for name in checks if ablate else ():
        off = judge_cases(grounder(remembered, off=(name,)), cases)
        rows[f"without {name}"] = summed(cases, off)
    return rows


def _cell(value: float | None) -> str:
    if value is None:
        return "–"
    return (
        str(value) if isinstance(value, int) else f"{value:.3f}" if value <= 1 else f"{value:.1f}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="How good verdicts are, over every set.")
    add_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object in place of tables")
    parser.add_argument("--no-checks", action="store_true", help="leave the ablation out")
    options = parser.parse_args(arguments)
    names, harness = opened(options)
    checks = [check.name for check in all_checks()]
    table: dict[str, dict[str, Row]] = {}
    for name in names:
        cases = read_set(name, options.data, options.limit or None, seed=options.seed)
        ablate = not options.no_checks
        table[name] = _rows(harness, cases, checks, ablate=ablate)
        if not options.json:
            _print(name, table[name])
    if options.json:
        plain = {
            name: {row: item.model_dump() for row, item in rows.items()}
            for name, rows in table.items()
        }
        print(json.dumps({"judge": harness.judge.name, "sets": plain}))
    return 0


def _print(name: str, rows: dict[str, Row]) -> None:
    print(f"\n| {name} | {' | '.join(COLUMNS.values())} |")
    print("|---|" + "--:|" * len(COLUMNS))
    for row, item in rows.items():
        cells = [_cell(getattr(item, column)) for column in COLUMNS]
        print(f"| {row} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    with exit_on_error():
        sys.exit(main())
