"""Run evaluators over built rows and gather every figure in one report."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import FiniteFloat

from benchmarks.caqa.controls import LIMIT, Controls, run_controls
from benchmarks.caqa.evaluators import (
    Evaluator,
    create_evaluator,
    in_pieces,
    item_of,
)
from benchmarks.caqa.metrics import (
    Agreement,
    FineGrained,
    Report,
    agreement,
    fine_grained,
    micro_f1,
    pearson,
    report,
)
from benchmarks.caqa.rows import CAQARow
from benchmarks.caqa.sources import read_json_lines
from benchmarks.caqa.transfer import SETS, TransferReport, transfer
from benchmarks.kept import kept_lines
from guardrail.commands.lines import Tell
from guardrail.core.errors import InputError
from guardrail.core.types import Category, Value

__all__ = [
    "EvaluatorRun",
    "HumanReport",
    "KeptRuns",
    "RunReport",
    "evaluate",
    "read_labels",
    "read_rows",
    "run",
    "thinned",
]

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


class HumanReport(Value):
    """The construction's labels against a person's (6.2, Figure 2).

    Attributes:
        agreement: Of the two labellings.
        built: Micro-F1 of each evaluator on these rows by the construction's labels.
        human: The same by the person's labels.
        correlation: Pearson's, of the two series; None for fewer than two evaluators.
    """

    agreement: Agreement
    built: Mapping[str, FiniteFloat]
    human: Mapping[str, FiniteFloat]
    correlation: FiniteFloat | None = None


class RunReport(Value):
    """A whole run.

    Attributes:
        evaluators: Figures of each evaluator, in the order given.
        controls: The three controls; None where they were not asked for.
        control_limit: What each control must stay below.
        human: Agreement with a person's labels, where they were given.
        training: Where the rows come from that the controls were trained on and few-shot prompts
            show; None where none were used.
    """

    evaluators: tuple[EvaluatorRun, ...]
    controls: Controls | None = None
    control_limit: float = LIMIT
    human: HumanReport | None = None
    training: str | None = None


class KeptRuns:
    """Evaluators that have run, on disk, so that a run that was stopped goes on.

    Args:
        path: JSON lines; made when the first evaluator is done.
        resume: Read what is there; False starts anew, as a judge may have changed since, and
            puts what is there aside under the name with ``.old``.

    Raises:
        InputError: The file holds something else.
    """

    def __init__(self, path: Path, *, resume: bool) -> None:
        self._path = path
        self._runs: dict[str, EvaluatorRun] = {}
        self.done: list[str] = []
        """The evaluators that were found or added."""
        if not path.exists():
            return
        if not resume:
            path.replace(path.with_name(f"{path.name}.old"))
            return
        try:
            for row in map(json.loads, kept_lines(path)):
                self._runs[row["key"]] = EvaluatorRun.model_validate(row["run"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} holds no finished evaluators: {error}") from error

    def find(
        self, name: str, splits: Mapping[str, Sequence[CAQARow]], sample: int | None, data: object
    ) -> EvaluatorRun | None:
        """The figures of an evaluator on these rows, where it has run on them."""
        found = self._runs.get(self._key(name, splits, sample, data))
        if found is not None:
            self.done.append(name)
        return found

    def add(
        self,
        name: str,
        splits: Mapping[str, Sequence[CAQARow]],
        sample: int | None,
        data: object,
        done: EvaluatorRun,
    ) -> None:
        """Keep an evaluator's figures, on disk before this returns."""
        key = self._key(name, splits, sample, data)
        self._runs[key] = done
        with self._path.open("a", encoding="utf-8") as file:
            row = {"key": key, "run": done.model_dump(mode="json")}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        self.done.append(name)

    @staticmethod
    def _key(
        name: str, splits: Mapping[str, Sequence[CAQARow]], sample: int | None, data: object
    ) -> str:
        texts = [
            [split, row.question, row.answer, row.evidence, row.category]
            for split, rows in splits.items()
            for row in rows
        ]
        digest = hashlib.sha256(json.dumps([texts, sample, data is None]).encode())
        return f"{name}:{digest.hexdigest()[:16]}"


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
    training: str | None = None,
    controls: bool = False,
    data: Path | None = None,
    labels: Mapping[str, Category] | None = None,
    sample: int | None = None,
    kept: KeptRuns | None = None,
    tell: Tell | None = None,
) -> RunReport:
    """Run evaluators by name.

    Args:
        names: Names for ``create_evaluator``; with ``@N`` at the end an evaluator gets about N
            rows of each set only (``chat-few:openai:NAME@50``).
        splits: Rows to evaluate on, by split; controls use the first.
        train: Training rows, for controls and demonstrations.
        training: Where they come from, for the report.
        controls: Whether to train and measure the three controls.
        data: Folder with the transfer sets; None leaves transfer out.
        labels: A person's categories by row id; rows without one are left out of this part.
        sample: Rows of each set for every evaluator; None takes all.
        kept: Evaluators that have run already; those that run now are added.
        tell: Called with evaluator, task, rows done and total rows.

    Raises:
        InputError: There are no rows, or a name's ``@N`` is not a number.
    """
    if not splits or not all(splits.values()):
        raise InputError("no rows to evaluate on")
    first = next(iter(splits.values()))
    marked = [row for rows in splits.values() for row in rows if row.id in (labels or {})]
    by_person = [labels[row.id] for row in marked] if labels else []
    built: dict[str, float] = {}
    human: dict[str, float] = {}
    asked: list[tuple[str, int | None, EvaluatorRun | Evaluator]] = []
    for name in names:  # all of them first, so that a wrong name costs no run
        plain, at, count = name.rpartition("@")
        if at and not count.isdigit():
            raise InputError(f"{name!r}: a number of rows must follow the @")
        few = int(count) if at else sample
        done = kept.find(name, splits, sample, data) if kept is not None and not marked else None
        asked.append((name, few, done or create_evaluator(plain if at else name, shots=train)))
    tell = tell or (lambda what, done, total: None)
    measured = None
    if controls:
        tell("controls", 0, 1)
        measured = run_controls(train, first)
        tell("controls", 1, 1)
    runs: list[EvaluatorRun] = []
    for name, few, evaluator in asked:
        if isinstance(evaluator, EvaluatorRun):
            runs.append(evaluator)
            continue
        runs.append(
            EvaluatorRun(
                name=evaluator.name,
                categories=evaluator.categories,
                splits={
                    split: evaluate(evaluator, thinned(rows, few), split=split, tell=tell)
                    for split, rows in splits.items()
                },
                fine_grained=_sub_facts(evaluator, first, few, tell),
                transfer=()
                if data is None
                else tuple(transfer(evaluator, item, data, sample=few, tell=tell) for item in SETS),
            )
        )
        if kept is not None:
            kept.add(name, splits, sample, data, runs[-1])
        if marked:
            said = evaluator.categorise([item_of(row) for row in marked])
            built[evaluator.name] = micro_f1([row.category for row in marked], said)
            human[evaluator.name] = micro_f1(by_person, said)
    compared = None
    if marked:
        several = len(built) > 1
        compared = HumanReport(
            agreement=agreement([row.category for row in marked], by_person),
            built=built,
            human=human,
            correlation=pearson([*built.values()], [*human.values()]) if several else None,
        )
    return RunReport(
        evaluators=tuple(runs),
        controls=measured,
        human=compared,
        training=training if train else None,
    )


def read_labels(path: Path) -> dict[str, Category]:
    """Read a person's labels: JSON lines with ``id`` and ``category``.

    Raises:
        InputError: A row lacks one of them, or the category is unknown.
    """
    try:
        return {str(row["id"]): Category(row["category"]) for row in read_json_lines(path)}
    except (KeyError, ValueError) as error:
        raise InputError(
            f"{path}: each line needs an id and one of four categories: {error}"
        ) from error


def evaluate(
    evaluator: Evaluator,
    rows: Sequence[CAQARow],
    *,
    split: str = "test",
    tell: Tell | None = None,
) -> Report:
    """Table 6's figures of one evaluator on rows; the name of their split goes to ``tell``."""
    said = in_pieces(
        evaluator.categorise,
        [item_of(row) for row in rows],
        evaluator.at_once or _CHUNK,
        lambda done, total: tell(f"{evaluator.name}, {split}", done, total) if tell else None,
    )
    return report(rows, said)


def _sub_facts(
    evaluator: Evaluator, rows: Sequence[CAQARow], sample: int | None, tell: Tell
) -> FineGrained | None:
    partial = [row for row in rows if row.category is Category.PARTIALLY_SUPPORTIVE]
    partial = thinned(partial, min(_FINE_GRAINED_ROWS, sample or _FINE_GRAINED_ROWS))
    if not partial:
        return None
    said = in_pieces(
        evaluator.supports,
        [(fact.text, row.evidence) for row in partial for fact in row.sub_facts],
        evaluator.at_once,
        lambda done, total: tell(f"{evaluator.name}, sub-facts", done, total),
    )
    flags = iter(said)
    return fine_grained(partial, [[next(flags) for _ in row.sub_facts] for row in partial])
