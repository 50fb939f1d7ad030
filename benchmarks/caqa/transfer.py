"""Transfer: evaluators on data that people labelled and no row here was built from (6.4).

Each set has labels of its own; predictions are mapped onto them, and macro-F1 is taken over the
labels of the set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import FiniteFloat

from benchmarks.caqa.evaluators import Evaluator, in_pieces
from benchmarks.caqa.metrics import binary_f1
from benchmarks.caqa.sources import read_json_lines
from guardrail.commands.lines import Tell
from guardrail.core.errors import InputError
from guardrail.core.types import Category, Value
from judges.base import AttributionItem

__all__ = ["SETS", "TransferReport", "TransferRow", "read_set", "transfer"]


class TransferRow(NamedTuple):
    """An item with the label a person gave it."""

    item: AttributionItem
    label: str


class TransferReport(Value):
    """One evaluator on one set.

    Attributes:
        set: Name of the set.
        n: Number of rows.
        macro_f1: Mean F1 over the set's labels.
        accuracy: Share of right labels.
        f1: F1 of each label.
    """

    set: str
    n: int
    macro_f1: FiniteFloat
    accuracy: FiniteFloat
    f1: Mapping[str, FiniteFloat]


_FOUR = {category: str(category) for category in Category}
_THREE = {
    Category.SUPPORTIVE: "supported",
    Category.PARTIALLY_SUPPORTIVE: "partially_supported",
    Category.CONTRADICTORY: "not_supported",
    Category.IRRELEVANT: "not_supported",
}
_TWO = {
    category: "attributable" if category is Category.SUPPORTIVE else "not attributable"
    for category in Category
}
SETS: Mapping[str, tuple[str, Mapping[Category, str]]] = {
    "factcheck_stance": ("attribution/factcheck_stance.jsonl.gz", _FOUR),
    "wice_claim_dev": ("attribution/wice_claim_dev.jsonl.gz", _THREE),
    "attributionbench_dev": ("attribution/attributionbench_dev.jsonl.gz", _TWO),
}
"""Name, file and how the four categories map onto the labels of each set."""

_STANCES = {
    "completely-support": Category.SUPPORTIVE,
    "partially-support": Category.PARTIALLY_SUPPORTIVE,
    "refute": Category.CONTRADICTORY,
    "irrelevant": Category.IRRELEVANT,
}


def read_set(name: str, data: Path) -> list[TransferRow]:
    """Read a set.

    Args:
        name: One of ``SETS``.
        data: Folder with ``attribution/``.

    Raises:
        InputError: The set is unknown, its file missing, or a label unknown.
    """
    if name not in SETS:
        raise InputError(f"there is no transfer set {name!r}; known: {', '.join(SETS)}")
    file, mapping = SETS[name]
    rows = list(_rows(name, data / file))
    for row in rows:
        if row.label not in mapping.values():
            raise InputError(f"{file}: unknown label {row.label!r}")
    return rows


def transfer(
    evaluator: Evaluator,
    name: str,
    data: Path,
    *,
    sample: int | None = None,
    tell: Tell | None = None,
) -> TransferReport:
    """Run an evaluator on a set.

    Args:
        evaluator: The evaluator.
        name: One of ``SETS``.
        data: Folder with ``attribution/``.
        sample: Take every k-th row so that about this many remain; None takes all.
        tell: Called with the number of finished items.
    """
    rows = read_set(name, data)
    if sample is not None and sample < len(rows):
        rows = rows[:: len(rows) // sample][:sample]
    mapping = SETS[name][1]
    said: Sequence[str | None] = [
        None if label is None else mapping[label]
        for label in in_pieces(
            evaluator.categorise,
            [row.item for row in rows],
            evaluator.at_once,
            lambda done, total: tell(f"{evaluator.name}, {name}", done, total) if tell else None,
        )
    ]
    labels = list(dict.fromkeys(mapping.values()))
    scores = {
        label: binary_f1([row.label == label for row in rows], [item == label for item in said])
        for label in labels
    }
    return TransferReport(
        set=name,
        n=len(rows),
        macro_f1=sum(scores.values()) / len(scores),
        accuracy=sum(row.label == item for row, item in zip(rows, said, strict=True)) / len(rows),
        f1=scores,
    )


def _rows(name: str, path: Path) -> Iterator[TransferRow]:
    for row in read_json_lines(path):
        if name == "factcheck_stance":
            item = AttributionItem("", row["claim"], (row["evidence"],))
            yield TransferRow(item, str(_STANCES.get(row["stance"], row["stance"])))
        elif name == "wice_claim_dev":
            item = AttributionItem("", row["claim"], tuple(row["evidence"]))
            yield TransferRow(item, row["label"])
        else:
            # The claim is one sentence of a long answer, which need not answer the whole question:
            # the engine judges such a sentence without the question too.
            item = AttributionItem("", row["claim"], tuple(row["references"]))
            yield TransferRow(item, row["attribution_label"])
