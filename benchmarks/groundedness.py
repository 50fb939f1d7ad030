"""How well a judge tells supported claims on public sets.

``python -m benchmarks.groundedness --data DIR`` prints
balanced accuracy at the fixed threshold of 0.5, at each set's own best threshold, and the area
under the curve, next to published results on LLM-AggreFact.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.classification import area, balanced_accuracy, best_balanced_accuracy
from benchmarks.data import exit_on_error
from benchmarks.groundedness_sets import SETS, ClaimRow, read_own, read_set
from guardrail.core.types import Grounding, Passage
from guardrail.evidence.prepared import prepare
from judges.base import GroundingItem, GroundingJudge
from judges.grounding import as_grounding
from judges.registry import create_nli

__all__ = ["Measured", "main", "measure"]

PUBLISHED = (
    ("SummaC-ZS", 67.7),
    ("HHEM-2.1", 71.8),
    ("MiniCheck-RoBERTa-L", 73.5),
    ("FactCG", 75.6),
    ("Bespoke-MiniCheck-7B", 77.4),
)
"""Mean balanced accuracy on LLM-AggreFact: Tang et al. 2024 (MiniCheck), Lei et al. 2025 (FactCG),
and the benchmark's public table. Other sets than here, for orientation only."""


class Measured(NamedTuple):
    """One judge on one set.

    Attributes:
        name: Name of the set.
        rows: Number of claims.
        balanced: Balanced accuracy at 0.5.
        tuned: Balanced accuracy at the threshold that is best for this set.
        auc: Area under the curve.
        per_second: Claims judged in a second.
    """

    name: str
    rows: int
    balanced: float
    tuned: float
    auc: float
    per_second: float


def measure(judge: GroundingJudge, name: str, rows: Sequence[ClaimRow]) -> Measured:
    """Measure a judge on a set; evidence is selected as the engine selects it."""
    items = [_item(row) for row in rows]
    started = time.perf_counter()
    groundings = judge.ground(items)
    seconds = time.perf_counter() - started
    scores = np.array([_support(grounding) for grounding in groundings])
    truth = np.array([row.supported for row in rows])
    return Measured(
        name,
        len(rows),
        balanced_accuracy(scores, truth),
        best_balanced_accuracy(scores, truth),
        area(scores, truth),
        len(rows) / max(seconds, 1e-9),
    )


def _item(row: ClaimRow) -> GroundingItem:
    evidence = prepare([Passage(text=text) for text in row.evidence if text.strip()])
    chosen = evidence.select(row.claim, row.question)
    return GroundingItem(
        statements=evidence.texts(chosen),
        sentence=" ".join(row.claim.split()),
        context=row.question,
        priority=chosen.priority,
        windows=chosen.windows,
    )


def _support(grounding: Grounding) -> float:
    """Probability of support, given that the claim is one."""
    return grounding.supported / max(1e-9, 1.0 - grounding.no_claim)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.groundedness", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="the data folder")
    parser.add_argument("--judge", default="onnx", help="a judge's name; %(default)s")
    parser.add_argument("--compare", action="append", default=[], help="other judges' names")
    parser.add_argument("--sets", nargs="*", help="names of sets; all by default")
    parser.add_argument("--own", type=Path, action="append", default=[], help="your own sets")
    parser.add_argument("--limit", type=int, help="most rows of a set, evenly spaced")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    names = options.sets or [
        name for name in SETS if (options.data / f"{SETS[name].file}.jsonl.gz").is_file()
    ]
    sets = {name: _some(list(read_set(options.data, name)), options.limit) for name in names}
    sets |= {path.name: _some(list(read_own(path)), options.limit) for path in options.own}
    found = {}
    for judge in (options.judge, *options.compare):
        made = as_grounding(create_nli(judge))
        made.warm_up()
        found[judge] = [measure(made, name, rows) for name, rows in sets.items()]
    if options.json:
        print(
            json.dumps({judge: [item._asdict() for item in some] for judge, some in found.items()})
        )
    else:
        print(_table(found))


def _some(rows: list[ClaimRow], limit: int | None) -> list[ClaimRow]:
    if limit is None or len(rows) <= limit:
        return rows
    return [rows[place * len(rows) // limit] for place in range(limit)]


def _table(found: dict[str, list[Measured]]) -> str:
    lines = []
    for judge, measured in found.items():
        lines += [
            f"### {judge}",
            "",
            "| set | rows | balanced at 0.5 | at its best | AUC | claims/s |",
        ]
        lines.append("|---|--:|--:|--:|--:|--:|")
        rows = [*measured, _mean(measured)]
        lines += [
            f"| {row.name} | {row.rows:,} | {row.balanced:.3f} | {row.tuned:.3f} | {row.auc:.3f} "
            f"| {row.per_second:.0f} |"
            for row in rows
        ]
        lines.append("")
    lines.append("Published by others, mean balanced accuracy on LLM-AggreFact (other sets):")
    lines += [f"{name} {value:.1f}" for name, value in PUBLISHED]
    return "\n".join(lines)


def _mean(measured: Sequence[Measured]) -> Measured:
    means = [float(np.mean([item[place] for item in measured])) for place in range(2, 5)]
    rows = sum(item.rows for item in measured)
    seconds = sum(item.rows / item.per_second for item in measured)
    return Measured("mean", rows, means[0], means[1], means[2], rows / max(seconds, 1e-9))


if __name__ == "__main__":
    with exit_on_error():
        main()
