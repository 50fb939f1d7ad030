"""CONNER's tables and figures from scored rows.

Tables 2 and 3 (means), 5, 6 and 15 (Somers' D of intrinsic and extrinsic perspectives), 7 and 8
(selection), 9, 10 and 18 (Somers' D with people's ratings), 16 and Figure 3 (models), Figure 2
(length and frequency), Figure 4 (reference knowledge).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.conner.generation import Scored, Setting
from benchmarks.provenance import Provenance, markdown
from guardrail.core.errors import InputError
from judges.conner import ConnerReport, Perspective

__all__ = ["PERSPECTIVES", "auc", "correlations", "figure_2", "human", "means", "somers_d"]

PERSPECTIVES: Mapping[str, Callable[[ConnerReport], float | None]] = {
    "fact-cons": lambda report: report.factuality.value,
    "non-verified": lambda report: report.non_verified.value,
    "fact-incons": lambda report: report.factual_inconsistent.value,
    "relevance": lambda report: report.relevance.value,
    "coh-sent": lambda report: report.coherence_sentence.value,
    "coh-para": lambda report: report.coherence_paragraph.value,
    "inform": lambda report: report.informativeness.value,
    "helpful": lambda report: report.helpfulness.value,
    "helpful, unclipped": lambda report: report.helpfulness_unclipped.value,
    "validity": lambda report: report.validity.value,
}
INTRINSIC = ("fact-cons", "relevance", "coh-sent", "coh-para", "inform")
EXTRINSIC = ("helpful", "validity")
CONTAINS = "has the answer"
"""The model-free measure: the knowledge contains the gold answer, case folded."""
SIGNIFICANT = 0.05
RATED: Mapping[str, tuple[str, ...]] = {
    "factuality": ("fact-cons",),
    "relevance": ("relevance",),
    "coherence": ("coh-sent", "coh-para"),
    "informativeness": ("inform",),
    "helpfulness": ("helpful",),
    "validity": ("validity",),
}
"""What people rate from 0 to 2 (Table 17), with the perspectives that should follow."""
_WORD = re.compile(r"\w+")


def means(rows: Sequence[Scored], origin: Provenance) -> list[str]:
    """Tables 2, 3, 7, 8 and 16: the mean of every perspective by data, model and setting."""
    tables = []
    paper = json.loads(files("benchmarks.conner").joinpath("paper.json").read_text("utf-8"))
    for data, number in (("nq", "2"), ("wow", "3")):
        groups: dict[tuple[str, Setting], list[Scored]] = defaultdict(list)
        for row in rows:
            if row.data == data:
                groups[row.model, row.setting].append(row)
        if not groups:
            continue
        lines: list[list[object]] = [
            [model, setting.value, len(group), *_columns(group)]
            for (model, setting), group in groups.items()
        ]
        lines += [
            [f"paper: {row['model']}", row["setting"], 500, *row["values"], None]
            for row in paper[f"table_{number}"]
        ]
        head = ["model", "knowledge", "rows", *PERSPECTIVES, CONTAINS]
        title = f"CONNER Table {number} ({data}), with the rows of Tables 7, 8 and 16"
        tables.append(markdown(origin, title, head, lines))
    return tables


def _columns(group: Sequence[Scored]) -> list[float | None]:
    found: list[float | None] = []
    for read in PERSPECTIVES.values():
        values = [value for row in group if (value := read(row.report)) is not None]
        found.append(fmean(values) if values else None)
    held = [row.reference.casefold().strip() in row.knowledge.casefold() for row in group]
    return [*found, fmean(held)]


def correlations(rows: Sequence[Scored], origin: Provenance) -> list[str]:
    """Tables 5, 6 and 15: Somers' D between intrinsic and extrinsic perspectives; † p < .05."""
    tables = []
    for data, number in (("nq", "5 and 15"), ("wow", "6")):
        groups: dict[str, list[Scored]] = defaultdict(list)
        for row in rows:
            if row.data == data:
                groups["data set" if row.setting is Setting.REFERENCE else row.model].append(row)
        lines: list[list[object]] = [
            [
                name,
                outer,
                len(group),
                *(_written(somers_d(group, inner, outer)) for inner in INTRINSIC),
            ]
            for name, group in groups.items()
            for outer in EXTRINSIC
        ]
        if lines:
            head = ["knowledge of", "extrinsic", "rows", *INTRINSIC]
            tables.append(markdown(origin, f"CONNER Table {number} ({data})", head, lines))
    return tables


def somers_d(rows: Sequence[Scored], inner: str, outer: str) -> tuple[float, float] | None:
    """Somers' D of an intrinsic perspective with respect to an extrinsic one, and its p value.

    None where fewer than three rows have both, or one of the two is constant.
    """
    pairs = [
        (one, two)
        for row in rows
        if (one := PERSPECTIVES[outer](row.report)) is not None
        and (two := PERSPECTIVES[inner](row.report)) is not None
    ]
    return _somers(pairs)


def human(rows: Sequence[Scored], ratings: Path, origin: Provenance) -> str:
    """Tables 9, 10 and 18: Somers' D of metrics with respect to people's ratings.

    The lexical baselines of Table 10 are compared as well: hallucinated entities (capitalised
    words that the reference knowledge lacks) and unigram F1 for knowledge, exact match and F1 for
    answers. Its four NLI baselines need models that do not ship and are left out.

    Args:
        rows: Scored rows.
        ratings: JSON lines of {model, setting, query, reference_knowledge?, factuality: 0 to 2,
            relevance, coherence, informativeness, helpfulness, validity}, each rating optional.
        origin: Provenance of the table.

    Raises:
        InputError: The file cannot be read, or no rating belongs to a row.
    """
    try:
        judged = [json.loads(line) for line in ratings.read_text("utf-8").splitlines() if line]
    except (OSError, ValueError) as error:
        raise InputError(f"{ratings}: {error}") from error
    known = {(row.model, row.setting.value, row.query): row for row in rows}
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for rating in judged:
        row = known.get((rating.get("model"), rating.get("setting"), rating.get("query")))
        if row is None:
            continue
        for aspect in RATED.keys() & rating.keys():
            for name, value in _metrics(row, aspect, rating).items():
                if value is not None:
                    pairs[aspect, name].append((float(rating[aspect]), value))
    if not pairs:
        raise InputError(f"no rating of {ratings} belongs to a scored row")
    lines: list[list[object]] = [
        [aspect, name, len(found), _written(_somers(found))]
        for (aspect, name), found in sorted(pairs.items())
    ]
    head = ["rated by people", "metric", "rows", "Somers' D"]
    return markdown(origin, "CONNER Tables 9, 10 and 18", head, lines)


def _metrics(row: Scored, aspect: str, rating: Mapping[str, Any]) -> dict[str, float | None]:
    found = {name: PERSPECTIVES[name](row.report) for name in RATED[aspect]}
    reference = rating.get("reference_knowledge")
    if aspect == "factuality" and reference:
        names = re.findall(r"\b[A-Z]\w+", row.knowledge)
        missing = sum(name.casefold() not in reference.casefold() for name in names)
        found["HE (negative)"] = -missing / len(names) if names else None
    if aspect == "relevance" and reference:
        found["F1 with the reference"] = unigram_f1(row.knowledge, reference)
    if aspect == "validity":
        found["EM"] = float(row.answer.casefold().strip() == row.reference.casefold().strip())
        found["F1 of the answer"] = unigram_f1(row.answer, row.reference)
    return found


def unigram_f1(text: str, reference: str) -> float:
    """F1 of the words of a text against those of a reference, case folded."""
    one, two = (Counter(_WORD.findall(each.casefold())) for each in (text, reference))
    shared = sum((one & two).values())
    return 2 * shared / (sum(one.values()) + sum(two.values())) if shared else 0.0


def figure_2(rows: Sequence[Scored], views: Path | None, origin: Provenance) -> list[str]:
    """Figure 2: factuality by number of sentences, and by the page views of the topic.

    Args:
        rows: Scored rows; those of the data set's own knowledge are left out.
        views: JSON lines of {topic, views}; None leaves out the first half of the figure.
        origin: Provenance of the tables.
    """
    own = [row for row in rows if row.setting is not Setting.REFERENCE]
    by_length: dict[str, list[ConnerReport]] = defaultdict(list)
    for row in own:
        by_length[str(min(5, len(row.report.sentences)))].append(row.report)
    tables = [_factual(by_length, "Figure 2(b): sentences, 5 or more as 5", origin)]
    if views is not None:
        known = {
            (row := json.loads(line))["topic"]: row["views"]
            for line in views.read_text("utf-8").splitlines()
        }
        by_views: dict[str, list[ConnerReport]] = defaultdict(list)
        for scored in own:
            if known.get(scored.topic, 0) > 0:
                by_views[f"10^{math.floor(math.log10(known[scored.topic]))}"].append(scored.report)
        tables.insert(0, _factual(by_views, "Figure 2(a): page views of the topic", origin))
    return tables


def _factual(groups: Mapping[str, Sequence[ConnerReport]], title: str, origin: Provenance) -> str:
    names = ("fact-cons", "non-verified", "fact-incons")
    lines: list[list[object]] = []
    for name in sorted(groups):
        scores = [[PERSPECTIVES[part](report) for part in names] for report in groups[name]]
        known = [[value for value in row if value is not None] for row in scores]
        whole = [row for row in known if len(row) == len(names)]
        if whole:
            lines.append(
                [name, len(whole), *(fmean(column) for column in zip(*whole, strict=True))]
            )
    return markdown(origin, f"CONNER {title}", ["group", "rows", *names], lines)


def auc(right: Sequence[float], wrong: Sequence[float]) -> float:
    """Probability that a right answer scores above a wrong one; ties count one half."""
    above = sum((one > two) + (one == two) / 2 for one in right for two in wrong)
    return above / (len(right) * len(wrong))


def _somers(pairs: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    if len(pairs) < 3 or any(len(set(column)) < 2 for column in zip(*pairs, strict=True)):
        return None
    stats: Any = import_module("scipy.stats")
    first, second = zip(*pairs, strict=True)
    found = stats.somersd(first, second)
    return float(found.statistic), float(found.pvalue)


def _written(found: tuple[float, float] | None) -> str | None:
    if found is None:
        return None
    value, p = found
    return f"{value:.2f}" + ("†" if p < SIGNIFICANT else "")


NEEDS_CAUSAL = (
    Perspective.COHERENCE_SENTENCE,
    Perspective.INFORMATIVENESS,
    Perspective.HELPFULNESS,
)
"""Perspectives without a value where no causal language model is given."""
