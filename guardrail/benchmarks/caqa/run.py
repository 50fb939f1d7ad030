"""Run evaluators over built rows and gather every figure in one report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from guardrail.benchmarks.caqa.controls import LIMIT, Controls, run_controls
from guardrail.benchmarks.caqa.evaluators import Evaluator, create_evaluator, item_of
from guardrail.benchmarks.caqa.metrics import FineGrained, Report, fine_grained, report
from guardrail.benchmarks.caqa.rows import CAQARow
from guardrail.benchmarks.caqa.transfer import SETS, TransferReport, transfer
from guardrail.errors import InputError
from guardrail.types import Category, Value

__all__ = ["EvaluatorRun", "RunReport", "evaluate", "read_rows", "run", "thinned"]

_CHUNK = 256
_FINE_GRAINED_ROWS = 200
"""Partially supportive rows whose sub-facts are judged, as in Table 7."""


class EvaluatorRun(Value):
    """One evaluator's figures.

    Attributes:
        name: The evaluator.
        categories: The categories it can tell.
        splits: Table 6's figures by split.
        fine_grained: Table 7's figures on partially supportive rows of the first split.
        transfer: Figures on sets labelled by people.
    """

    name: str
    categories: tuple[Category, ...]
    splits: Mapping[str, Report]
    fine_grained: FineGrained | None = None
    transfer: tuple[TransferReport, ...] = ()


class RunReport(Value):
    """A whole run.

    Attributes:
        evaluators: Figures of each evaluator, in the order given.
        controls: The three controls; None where they were not asked for.
        control_limit: What each control must stay below.
    """

    evaluators: tuple[EvaluatorRun, ...]
    controls: Controls | None = None
    control_limit: float = LIMIT


def read_rows(path: Path) -> list[CAQARow]:
    """Read built rows from a JSON-lines file (``-`` is stdin).

    Raises:
        InputError: The file is missing or a line is not a row.
    """
    try:
        if str(path) == "-":
            return [CAQARow.model_validate_json(line) for line in sys.stdin if line.strip()]
        with path.open(encoding="utf-8") as lines:
            return [CAQARow.model_validate_json(line) for line in lines if line.strip()]
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error}; build it with: guardrail bench caqa build"
        ) from error
    except ValueError as error:
        raise InputError(f"{path} holds a line that is not a CAQA row: {error}") from error


def thinned(rows: Sequence[CAQARow], sample: int | None) -> list[CAQARow]:
    """About ``sample`` rows spread evenly over all; all of them for None."""
    if sample is None or sample >= len(rows):
        return list(rows)
    if sample < 1:
        raise InputError("a sample needs at least one row")
    return [rows[place * len(rows) // sample] for place in range(sample)]


def run(
    names: Sequence[str],
    splits: Mapping[str, Sequence[CAQARow]],
    *,
    train: Sequence[CAQARow] = (),
    controls: bool = False,
    data: Path | None = None,
    sample: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> RunReport:
    """Run evaluators by name.

    Args:
        names: Names for ``create_evaluator``; with ``@N`` at the end an evaluator gets about N
            rows of each set only (``chat-few:local@50``).
        splits: Rows to evaluate on, by split; controls use the first.
        train: Training rows, for controls and demonstrations.
        controls: Whether to train and measure the three controls.
        data: Folder with the transfer sets; None leaves transfer out.
        sample: Rows of each set for every evaluator; None takes all.
        progress: Called with evaluator, rows done and rows in all.

    Raises:
        InputError: There are no rows, or a name's ``@N`` is not a number.
    """
    if not splits or not all(splits.values()):
        raise InputError("no rows to evaluate on")
    first = next(iter(splits.values()))
    measured = run_controls(train, first) if controls else None
    runs = []
    for name in names:
        plain, at, count = name.rpartition("@")
        if at and not count.isdigit():
            raise InputError(f"{name!r}: a number of rows must follow the @")
        few = int(count) if at else sample
        evaluator = create_evaluator(plain if at else name, shots=train)
        runs.append(
            EvaluatorRun(
                name=evaluator.name,
                categories=evaluator.categories,
                splits={
                    split: evaluate(evaluator, thinned(rows, few), progress)
                    for split, rows in splits.items()
                },
                fine_grained=_sub_facts(evaluator, first, few),
                transfer=()
                if data is None
                else tuple(transfer(evaluator, one, data, sample=few) for one in SETS),
            )
        )
    return RunReport(evaluators=tuple(runs), controls=measured)


def evaluate(
    evaluator: Evaluator,
    rows: Sequence[CAQARow],
    progress: Callable[[str, int, int], None] | None = None,
) -> Report:
    """Table 6's figures of one evaluator on rows."""
    said: list[Category | None] = []
    source = iter(rows)
    while chunk := list(islice(source, _CHUNK)):
        said += evaluator.categorise([item_of(row) for row in chunk])
        if progress is not None:
            progress(evaluator.name, len(said), len(rows))
    return report(rows, said)


def _sub_facts(
    evaluator: Evaluator, rows: Sequence[CAQARow], sample: int | None
) -> FineGrained | None:
    partial = [row for row in rows if row.category is Category.PARTIALLY_SUPPORTIVE]
    partial = thinned(partial, min(_FINE_GRAINED_ROWS, sample or _FINE_GRAINED_ROWS))
    if not partial:
        return None
    flags = iter(
        evaluator.supports([(fact.text, row.evidence) for row in partial for fact in row.sub_facts])
    )
    return fine_grained(partial, [[next(flags) for _ in row.sub_facts] for row in partial])
