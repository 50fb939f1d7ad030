"""What each strictness passes: true texts and false ones, over every set.

    python -m benchmarks.verdicts.presets --data DIR [--sets dart,people,…] [--limit N]
        [--scores FILE] [--write docs/policies.md]

``--write`` puts the rows into a page, between the comments that mark their place.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.data import exit_on_error
from benchmarks.verdicts.judging import add_options, judge_cases, opened
from benchmarks.verdicts.measure import Row, summed
from benchmarks.verdicts.sets import read_set
from guardrail.core.types import Strictness

__all__ = ["main", "preset_table", "write_table"]

BEGIN = "<!-- strictness: filled by python -m benchmarks.verdicts.presets --write -->"
END = "<!-- end of strictness -->"

COLUMNS = {
    "true_passed": "true passed",
    "false_passed": "false passed",
    "contradictions_found": "contradictions found",
    "contradictions_right": "of these, right",
    "true_contradicted": "true called contradicted",
    "true_removed": "true removed",
}


def preset_table(measured: dict[Strictness, list[Row]]) -> str:
    """The presets' rows in Markdown; a share is the mean over the sets that tell it."""
    head = ("strictness", "support from", "contradicted from", "acted on from", *COLUMNS.values())
    lines = [f"| {' | '.join(head)} |", "|---|" + "--:|" * (len(head) - 1)]
    for preset, rows in measured.items():
        bounds = preset.thresholds
        cells = [f"{bound:.2f}" for _, bound in bounds]
        cells += [_mean([getattr(row, column) for row in rows]) for column in COLUMNS]
        lines.append(f"| `{preset}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(shares: Sequence[float | None]) -> str:
    known = [share for share in shares if share is not None]
    return f"{sum(known) / len(known):.1%}" if known else "–"


def write_table(page: Path, text: str) -> None:
    """Put a text between the comments of a page that mark its place.

    Raises:
        SystemExit: The page has no such comments.
    """
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page} has no place for the table; it needs the lines\n{BEGIN}\n{END}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="What each strictness passes, over every set.")
    add_options(parser)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="a page to put the rows into")
    options = parser.parse_args(arguments)
    names, harness = opened(options)
    grounder = harness.grounder(harness.remembered)
    measured: dict[Strictness, list[Row]] = {preset: [] for preset in Strictness}
    for name in names:
        cases = read_set(name, options.data, options.limit or None, seed=options.seed)
        for preset, rows in measured.items():
            rows.append(summed(cases, judge_cases(grounder, cases, preset.thresholds)))
        print(f"{name}: {len(cases)} cases", file=sys.stderr, flush=True)
    total = sum(row.cases for row in measured[Strictness.BALANCED])
    table = (
        f"{preset_table(measured)}\n\nMeans over {len(names)} sets ({', '.join(names)}), "
        f"{total:,} texts in all, judge `{harness.judge.name}`."
    )
    print(table)
    if options.write:
        write_table(options.write, table)
    return 0


if __name__ == "__main__":
    with exit_on_error():
        sys.exit(main())
