"""CAQA's tables as Markdown, our rows next to the paper's (Tables 6, 7, 8)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import TypedDict

from benchmarks.caqa.run import EvaluatorRun, HumanReport, RunReport
from guardrail.core.types import Category, Complexity

__all__ = ["markdown", "paper_tables"]

_CATEGORIES = tuple(str(category) for category in Category)
_COMPLEXITIES = tuple(
    str(c)
    for c in (
        Complexity.SINGLE,
        Complexity.CONCATENATION,
        Complexity.INTERSECTION,
        Complexity.UNION,
    )
)
_SHORT = {
    "supportive": "Sup.",
    "partially_supportive": "Par.",
    "contradictory": "Con.",
    "irrelevant": "Irr.",
    "single": "S.",
    "concatenation": "C.",
    "intersection": "I.",
    "union": "U.",
}


class PaperRow(TypedDict, total=False):
    """A row of one of the paper's tables."""

    setting: str
    evaluator: str
    overall: float
    category: dict[str, float | None]
    complexity: dict[str, float]
    factscore: float
    error_rate: float
    f1: dict[str, float]


@cache
def paper_tables() -> dict[str, list[PaperRow]]:
    """The paper's own numbers: ``table_6``, ``table_7`` and ``table_8``.

    In the text of the paper the labels of Table 8's lower half are shifted by a row; the row
    without a figure for partially supportive is AttrScore's, the only one with three categories.
    """
    text = files("benchmarks.caqa").joinpath("paper.json").read_text(encoding="utf-8")
    tables: dict[str, list[PaperRow]] = json.loads(text)
    return tables


def markdown(report: RunReport) -> str:
    """All tables of a run, for a person."""
    parts = ["# CAQA", ""]
    for name in dict.fromkeys(split for run in report.evaluators for split in run.splits):
        parts += _table_6(name, report.evaluators)
    if report.controls is not None:
        c = report.controls
        summary = (
            f"Trained on {c.train} rows{f' of {report.training}' if report.training else ''}, "
            f"measured on {c.test}; each must stay below "
            f"{report.control_limit:.2f} micro-F1, or the construction gives its labels away."
        )
        parts += [
            "## Controls",
            "",
            summary,
            "",
            *_grid(
                ("Control", "micro-F1"),
                [
                    ("evidence only", _figure(c.evidence_only)),
                    ("answer only", _figure(c.answer_only)),
                    ("lexical overlap", _figure(c.lexical_overlap)),
                    ("commonest category", _figure(c.majority)),
                ],
            ),
        ]
    parts += _table_7(report.evaluators)
    parts += _table_8(report.evaluators)
    if report.human is not None:
        parts += _human(report.human)
    parts += _confusions(report.evaluators)
    return "\n".join(parts)


def _table_6(split: str, runs: Sequence[EvaluatorRun]) -> list[str]:
    shorts = (*(_SHORT[c] for c in _CATEGORIES), "Overall", *(_SHORT[c] for c in _COMPLEXITIES))
    head = ("Evaluator", *shorts, "Rows")
    rows = []
    for run in runs:
        found = run.splits.get(split)
        if found is None:
            continue
        whole = len(run.categories) > 1
        rows.append(
            (
                f"**{run.name}**",
                *(_figure(found.category[c]) if c in run.categories else "-" for c in _CATEGORIES),
                _figure(found.overall) if whole else "-",
                *(_figure(found.complexity.get(c)) if whole else "-" for c in _COMPLEXITIES),
                str(found.n),
            )
        )
    paper = [
        (
            f"paper, {row['setting']}: {row['evaluator']}",
            *(_figure(row["category"][c]) for c in _CATEGORIES),
            _figure(row["overall"]),
            *(_figure(row["complexity"][c]) for c in _COMPLEXITIES),
            "23963",
        )
        for row in paper_tables()["table_6"]
    ]
    return [f"## Split `{split}` (Table 6)", "", *_grid(head, [*rows, *paper])]


def _table_7(runs: Sequence[EvaluatorRun]) -> list[str]:
    ours = [
        (
            f"**{run.name}**",
            _figure(run.fine_grained.factscore),
            _figure(run.fine_grained.error_rate),
            _figure(run.fine_grained.known),
            _figure(run.fine_grained.accuracy),
        )
        for run in runs
        if run.fine_grained is not None
    ]
    if not ours:
        return []
    paper = [
        (
            f"paper, {row['setting']}: {row['evaluator']}",
            _figure(row["factscore"]),
            _figure(row["error_rate"]),
            "-",
            "-",
        )
        for row in paper_tables()["table_7"]
    ]
    head = ("Evaluator", "FactScore", "Error rate", "Known share", "Sub-facts right")
    note = "Ours: error against the share the construction kept; the paper's: against people."
    return [
        "## Sub-facts of partially supportive rows (Table 7)",
        "",
        note,
        "",
        *_grid(head, [*ours, *paper]),
    ]


def _table_8(runs: Sequence[EvaluatorRun]) -> list[str]:
    ours = [
        (
            f"**{run.name}**",
            found.set,
            str(found.n),
            _figure(found.macro_f1),
            _figure(found.accuracy),
            ", ".join(f"{label} {_figure(value)}" for label, value in found.f1.items()),
        )
        for run in runs
        for found in run.transfer
    ]
    if not ours:
        return []
    paper = [
        (
            f"paper: {row['evaluator']}",
            "ALCE-FineGrained",
            "215",
            "-",
            _figure(row["overall"]),
            ", ".join(f"{label} {_figure(value)}" for label, value in row["f1"].items()),
        )
        for row in paper_tables()["table_8"]
    ]
    head = ("Evaluator", "Set", "Rows", "Macro-F1", "Overall", "F1 by label")
    return ["## Transfer to labels by people (Table 8)", "", *_grid(head, [*ours, *paper])]


def _human(found: HumanReport) -> list[str]:
    summary = (
        f"{found.agreement.n} rows; the construction agrees with the person on "
        f"{_figure(found.agreement.micro_f1)} (kappa {_figure(found.agreement.kappa)}). "
        f"Correlation of the evaluators' results: {_figure(found.correlation)} (paper: 0.97)."
    )
    rows = [(name, _figure(found.built[name]), _figure(found.human[name])) for name in found.built]
    head = ("Evaluator", "By construction", "By person")
    return ["## Agreement with a person (Figure 2)", "", summary, "", *_grid(head, rows)]


def _confusions(runs: Sequence[EvaluatorRun]) -> list[str]:
    parts: list[str] = []
    for run in runs:
        for split, found in run.splits.items():
            columns = list(next(iter(found.confusion.values())))
            rows = [
                (_SHORT[gold], *(str(counts[column]) for column in columns))
                for gold, counts in found.confusion.items()
            ]
            head = ("Gold \\ said", *(_SHORT.get(column, column) for column in columns))
            parts += [f"## Confusions: {run.name}, `{split}`", "", *_grid(head, rows)]
    return parts


def _grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
