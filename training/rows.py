"""Training rows: what the judge reads and which answers are right.

One row may teach several heads. The attribution target is a set of categories: a plain NLI pair
that is neutral may be partially supportive or irrelevant, and its loss is the negative logarithm
of the probability that the head gives to the whole set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from judges.folder import HEADS

__all__ = [
    "NOT_CONTRADICTION",
    "NOT_ENTAILMENT",
    "NO_LABEL",
    "Row",
    "nli_row",
    "without_overlap",
]

NO_LABEL = -1
"""Index that stands for "this row does not teach that head"."""

NOT_ENTAILMENT = -2
"""NLI target of a row that is neutral or a contradiction; its source does not tell which."""

NOT_CONTRADICTION = -3
"""NLI target of a row that is an entailment or neutral."""

_NLI = HEADS["nli"]
_SUPPORTIVE, _PARTIAL, _CONTRADICTORY, _IRRELEVANT = range(len(HEADS["attribution"]))


class Row(NamedTuple):
    """One pair of texts with its targets; a head that the row does not teach is left alone.

    Attributes:
        premise: First segment: a premise, or the evidence of an attribution row.
        hypothesis: Second segment: a hypothesis, a sentence, or question and answer.
        source: Name of the file or construction the row comes from.
        nli: Index into ``HEADS["nli"]``, ``NOT_ENTAILMENT``, ``NOT_CONTRADICTION`` or ``NO_LABEL``.
        attribution: Indices into ``HEADS["attribution"]`` that count as right; empty for none.
        complexity: Index into ``HEADS["complexity"]``, or ``NO_LABEL``.
        claim: Index into ``HEADS["claim"]``, or ``NO_LABEL``.
        statements: The evidence as numbered statements, each after a mark; takes the place of
            ``premise`` where it is not empty.
        context: Third segment: the question and the sentences before the hypothesis.
        span: Offsets in the hypothesis of the words that are missing from the evidence, or that it
            contradicts; empty where all words are carried, None where the row does not tell.
        cited: Places of the statements that carry the hypothesis or conflict with it; None where
            the row does not tell.
    """

    premise: str
    hypothesis: str
    source: str
    nli: int = NO_LABEL
    attribution: tuple[int, ...] = ()
    complexity: int = NO_LABEL
    claim: int = NO_LABEL
    statements: tuple[str, ...] = ()
    context: str = ""
    span: tuple[int, int] | tuple[()] | None = None
    cited: frozenset[int] | None = None


def nli_row(
    premise: str, hypothesis: str, label: str, source: str, *, neutral: str | None = None
) -> Row:
    """Make a row of an NLI pair; it teaches the attribution head as far as the label tells.

    Args:
        premise: The text taken as true.
        hypothesis: The text to judge.
        label: ``entailment``, ``neutral`` or ``contradiction``, ``not_entailment`` or
            ``not_contradiction``.
        source: Name of the data.
        neutral: For a neutral pair, ``partially_supportive`` or ``irrelevant`` where it is known.
    """
    if label == "not_entailment":
        return Row(
            premise, hypothesis, source, NOT_ENTAILMENT, (_PARTIAL, _CONTRADICTORY, _IRRELEVANT)
        )
    if label == "not_contradiction":
        return Row(premise, hypothesis, source, NOT_CONTRADICTION)
    index = _NLI.index(label)
    if label == "neutral":
        unknown = (_PARTIAL, _IRRELEVANT)
        category = unknown if neutral is None else (HEADS["attribution"].index(neutral),)
    else:
        category = (_SUPPORTIVE,) if label == "entailment" else (_CONTRADICTORY,)
    return Row(premise, hypothesis, source, index, category)


def without_overlap(
    rows: Iterable[Row],
    validation: Iterable[Row],
    *,
    texts: Callable[[Row], tuple[str, ...]] = lambda row: (row.premise, row.hypothesis),
) -> list[Row]:
    """Drop rows that share a text with validation, and exact repetitions.

    Args:
        rows: Training rows.
        validation: Rows that must stay unseen.
        texts: The texts of a row that must not recur.
    """
    seen = {_folded(text) for row in validation for text in texts(row)}
    kept: dict[tuple[str, ...], Row] = {}
    for row in rows:
        if not any(_folded(text) in seen for text in texts(row)):
            kept.setdefault((row.premise, row.hypothesis, row.context, *row.statements), row)
    return list(kept.values())


def _folded(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())
