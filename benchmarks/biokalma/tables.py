"""Our rows in the form of KaLMA's Table 3, with the paper's rows below."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from statistics import fmean, stdev

from pydantic import BaseModel

from benchmarks.biokalma.metrics import KalmaScores, NotAvailableScores
from guardrail.core.types import Score
from judges.text_quality import Quality, QualityRating

__all__ = [
    "COLUMNS",
    "Cell",
    "TableRow",
    "figure_5",
    "markdown",
    "na_markdown",
    "paper_tables",
    "quality_cells",
    "quality_markdown",
    "quality_means",
    "table_row",
]

COLUMNS = {
    "alignment_containment": "Align. (sentence contains value, as written)",
    "alignment_written": "Align. (value in any written form)",
    "alignment_released": "Align. (as written, else NLI)",
    "alignment": "Align. (NLI)",
    "correctness": "Corr.",
    "precision": "Prec.",
    "recall": "Rec.",
    "f1": "F1",
    "macro_precision": "Macro P.",
    "macro_recall": "Macro R.",
    "macro_f1": "Macro F1",
}

BY_NLI = ("alignment_released", "alignment")
"""Columns that an NLI judge decides, in whole or in part."""


class Cell(BaseModel):
    """Percent, mean over runs; null where no run could tell."""

    mean: float | None
    deviation: float | None = None


class TableRow(BaseModel):
    """One setting.

    Attributes:
        row: Its name.
        cells: By column.
        citations: Number of citations per cell, mean over runs.
        answers: How many answers there are.
        circular: Whether the NLI judge that measured alignment also filtered the answers.
        quality: Ratings from 1 to 5 by a chat model, where one was asked (4.1).
    """

    row: str
    cells: dict[str, Cell]
    citations: float
    answers: int
    circular: bool = False
    quality: dict[str, Cell] = {}


@cache
def paper_tables() -> dict[str, list[dict[str, object]]]:
    """The paper's own numbers, in percent: ``table_3``, ``table_4``, ``table_5``."""
    text = files("benchmarks.biokalma").joinpath("paper.json").read_text("utf-8")
    tables: dict[str, list[dict[str, object]]] = json.loads(text)
    return tables


def table_row(
    title: str,
    runs: Sequence[KalmaScores],
    na: Sequence[NotAvailableScores] = (),
    na_nli: Sequence[NotAvailableScores] = (),
    *,
    circular: bool = False,
) -> TableRow:
    """One row from the scores of one or more runs with different seeds.

    Args:
        title: The row's name.
        runs: Scores of each run.
        na: Scores of ``[NA]`` of each run by containment, where triples were removed.
        na_nli: The same by NLI, as in the paper (4.4); empty without a grader.
        circular: The NLI judge that measured alignment also filtered the answers.
    """
    columns: dict[str, list[Score]] = {name: [] for name in COLUMNS}
    for run in runs:
        columns["alignment_containment"].append(run.alignment_containment)
        columns["alignment_written"].append(run.alignment_written)
        columns["alignment_released"].append(run.alignment_released)
        columns["alignment"].append(run.alignment)
        for name in ("correctness", "precision", "recall", "f1"):
            columns[name].append(getattr(run.micro, name))
        for name in ("precision", "recall", "f1"):
            columns[f"macro_{name}"].append(getattr(run.macro, name))
    for prefix, found in (("na_containment", na), ("na", na_nli)):
        for scores in found:
            for name in ("precision", "recall", "f1"):
                columns.setdefault(f"{prefix}_{name}", []).append(getattr(scores, name))
    return TableRow(
        row=title,
        cells={name: _cell(scores) for name, scores in columns.items()},
        citations=fmean(run.citations for run in runs),
        answers=runs[0].answers,
        circular=circular,
    )


def markdown(rows: Sequence[TableRow], *, notes: Sequence[str] = ()) -> str:
    """The table for a person, the paper's Table 3 below ours, with notes under it."""
    lines = [
        "| Model | " + " | ".join(COLUMNS.values()) + " | Citations |",
        "|---" * (len(COLUMNS) + 2) + "|",
    ]
    for row in rows:
        cells = (
            _written(row.cells[name]) + ("*" if row.circular and name in BY_NLI else "")
            for name in COLUMNS
        )
        lines.append(f"| {row.row} | {' | '.join(cells)} | {row.citations:.0f} |")
    for paper in paper_tables()["table_3"]:
        cells = (f"{paper[name]:.1f}" if name in paper else "" for name in COLUMNS)
        lines.append(f"| paper: {paper['row']} | {' | '.join(cells)} | |")
    return "\n".join([*lines, "", *notes])


def na_markdown(rows: Sequence[TableRow], removed: int) -> str:
    """``[NA]`` precision, recall and F1 where triples were removed.

    By NLI as in the paper (4.4), and by containment, which needs no model.
    """
    named = ("precision", "recall", "f1")
    columns = [f"{prefix}_{name}" for prefix in ("na", "na_containment") for name in named]
    head = f"| Model, {removed} removed | [NA] prec. | [NA] rec. | [NA] F1 "
    head += "| by containment: prec. | rec. | F1 |"
    lines = [head, "|---" * (len(columns) + 1) + "|"]
    for row in rows:
        cells = (_written(row.cells.get(name, Cell(mean=None))) for name in columns)
        lines.append(f"| {row.row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def figure_5(rows: Mapping[int, Sequence[TableRow]]) -> str:
    """KaLMA's Figure 5: micro citation scores by retrieval accuracy in percent."""
    columns = ("correctness", "precision", "recall", "f1")
    lines = [f"| Model | Retrieval accuracy | {' | '.join(COLUMNS[name] for name in columns)} |"]
    lines.append("|---" * (len(columns) + 2) + "|")
    lines += [
        f"| {row.row} | {accuracy} | {' | '.join(_written(row.cells[c]) for c in columns)} |"
        for accuracy, found in rows.items()
        for row in found
    ]
    return "\n".join(lines)


def quality_cells(runs: Sequence[Mapping[str, Score]]) -> dict[str, Cell]:
    """The means of each run's ratings, by quality and ``…_weighted`` quality."""
    return {name: _cell([run[name] for run in runs], scale=1) for name in (runs[0] if runs else ())}


def quality_means(ratings: Sequence[Mapping[Quality, QualityRating]]) -> dict[str, Score]:
    """Means over answers, as KaLMA's Table 4: each quality and ``…_weighted`` quality."""
    means: dict[str, Score] = {}
    for quality in Quality:
        rows = [row[quality] for row in ratings]
        means[quality.value] = _mean([row.rating.value for row in rows])
        means[f"{quality.value}_weighted"] = _mean([row.weighted.value for row in rows])
    return means


def quality_markdown(rows: Sequence[TableRow], rater: str) -> str:
    """Ratings in the form of KaLMA's Table 4, the paper's rows below."""
    names = [quality.value for quality in Quality]
    lines = [
        f"| Model, rated by {rater} | " + " | ".join(name.capitalize() for name in names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for row in rows:
        cells = (_written(row.quality[name], digits=2) for name in names)
        lines.append(f"| {row.row} | {' | '.join(cells)} |")
    for paper in paper_tables()["table_4"]:
        cells = (f"{paper[name]:.2f}" for name in names)
        lines.append(f"| paper: {paper['row']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(values: Sequence[float | None]) -> Score:
    known = [value for value in values if value is not None]
    if not known:
        return Score(reason="no ratings")
    return Score(value=sum(known) / len(known), evidence=(f"{len(known)} of {len(values)} rated",))


def _cell(scores: Sequence[Score], *, scale: float = 100) -> Cell:
    values = [scale * score.value for score in scores if score.value is not None]
    if not values:
        return Cell(mean=None)
    return Cell(mean=fmean(values), deviation=stdev(values) if len(values) > 1 else None)


def _written(cell: Cell, *, digits: int = 1) -> str:
    if cell.mean is None:
        return "–"
    deviation = "" if cell.deviation is None else f" ({cell.deviation:.{digits}f})"
    return f"{cell.mean:.{digits}f}{deviation}"
