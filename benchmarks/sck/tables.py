"""SCK's tables: 2 (features by intent), 3 (weights by intent) and 5 (average score by intent)."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from benchmarks.conner.tables import auc
from benchmarks.provenance import Provenance, markdown
from guardrail.core.types import Evidence, Passage, Triple
from judges.sck import Intent, SCKInput, SCKReport
from judges.sck.report import TABLE_3
from judges.sck.structure import ENOUGH_KEYWORDS, EXPECTATIONS

__all__ = ["LabelledAnswer", "labelled_answers", "table_2", "table_3", "table_5"]

PAPER_5 = {
    Intent.COMPARISON: 0.39,
    Intent.DEBATE: 0.31,
    Intent.EVIDENCE: 0.24,
    Intent.EXPERIENCE: 0.20,
    Intent.FACTOID: 0.29,
    Intent.INSTRUCTION: 0.33,
    Intent.REASON: 0.33,
}
"""Table 5 of the paper, on 1,000 pairs of YahooQA."""


class LabelledAnswer(NamedTuple):
    """An answer and whether a person found every sentence of it supported."""

    row: SCKInput
    right: bool


def table_2(origin: Provenance) -> str:
    """The features that the structure score expects of an answer, by intent."""
    lines: list[list[object]] = [
        [
            intent.value,
            "{} to {} words".format(*expected.length),
            "; ".join(expected.tenses),
            f"{ENOUGH_KEYWORDS} of: {', '.join(expected.keywords)}" if expected.keywords else "–",
            ", ".join(expected.persons),
            expected.format_name,
        ]
        for intent, expected in EXPECTATIONS.items()
    ]
    head = ["intent", "length", "tense", "keywords", "pronoun", "format"]
    return markdown(origin, "SCK Table 2", head, lines)


def table_3(origin: Provenance) -> str:
    """The weights of S, C and K by intent, with the paper's reasons."""
    lines: list[list[object]] = [
        [intent.value, row.structure, row.content, row.knowledge, row.reason]
        for intent, row in TABLE_3.items()
    ]
    head = ["intent", "α (S)", "β (C)", "γ (K)", "reason"]
    return markdown(origin, "SCK Table 3", head, lines)


def table_5(
    answers: Sequence[LabelledAnswer], reports: Sequence[SCKReport], origin: Provenance
) -> str:
    """The average SCK by intent, ours and the paper's formula, and how well each ranks.

    The last columns are model-free: the probability that an answer for which a person found every
    sentence supported scores above another one.
    """
    groups: dict[Intent, list[int]] = defaultdict(list)
    for place, report in enumerate(reports):
        groups[report.structure.intent].append(place)
    lines = [
        _line(intent.value, groups[intent], answers, reports, PAPER_5.get(intent))
        for intent in Intent
        if groups[intent]
    ]
    lines.append(_line("all", range(len(reports)), answers, reports, None))
    head = ["intent", "answers", "SCK", "SCK, paper's formula", "paper, YahooQA"]
    head += ["AUC, SCK", "AUC, paper's formula"]
    return markdown(origin, "SCK Table 5", head, lines)


def _line(
    name: str,
    places: Sequence[int],
    answers: Sequence[LabelledAnswer],
    reports: Sequence[SCKReport],
    paper: float | None,
) -> list[object]:
    columns = []
    areas = []
    for read in ("score", "paper"):
        values = {place: getattr(reports[place], read).value or 0.0 for place in places}
        columns.append(fmean(values.values()))
        right, wrong = (
            [value for place, value in values.items() if answers[place].right is side]
            for side in (True, False)
        )
        areas.append(auc(right, wrong) if right and wrong else None)
    return [name, len(places), *columns, paper, *areas]


def labelled_answers(data: Path, rows: int | None = None) -> list[LabelledAnswer]:
    """The sentences of ``statements/valid`` as answers to the question asked before them.

    Rows without a question or without a claim are left out.

    Args:
        data: Folder that holds ``statements/valid.jsonl.gz``.
        rows: Most answers.
    """
    with gzip.open(data / "statements" / "valid.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [
            LabelledAnswer(
                SCKInput(
                    question=row["question"],
                    answer=row["sentence"],
                    evidence=tuple(map(_item, row["evidence"])),
                ),
                row["label"] == "supported",
            )
            for row in map(json.loads, lines)
            if row.get("question") and row["label"] != "no_claim"
        ]
    return found[:rows]


def _item(item: dict[str, object]) -> Evidence:
    if "triple" in item:
        subject, name, value = map(str, item["triple"])  # type: ignore[call-overload]
        return Triple(subject=subject, property=name, value=value)
    return Passage(text=str(item["passage"]))
