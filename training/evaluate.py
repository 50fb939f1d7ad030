"""Measures a judge's folder on validation rows; as a command prints the table.

``python -m training.evaluate --data DIR [--judge DIR]``
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.classification import area
from judges.heads import HEADS, JudgeCard
from judges.onnx import SHIPPED
from judges.session import OnnxTextModel, Segments
from training.batches import EncodedRow, encode_rows, load_tokenizer
from training.calibrate import expected_calibration_error, softmax
from training.rows import NO_LABEL, NOT_ENTAILMENT, Row

__all__ = ["Measured", "breakdown", "logits", "main", "measure", "table"]

Logits = Mapping[str, NDArray[np.float32]]


class Measured(NamedTuple):
    """One head on one set of rows.

    Attributes:
        head: Name of the head.
        source: Name of the rows.
        rows: Number of rows.
        accuracy: Share judged right; with one label a row this is micro-F1 too.
        macro_f1: Mean F1 over the labels that occur.
        ece: Expected calibration error, on rows that no temperature was fitted on.
        auc: Of the NLI head, area under the curve of entailment against the other labels.
    """

    head: str
    source: str
    rows: int
    accuracy: float
    macro_f1: float
    ece: float
    auc: float | None = None


def logits(folder: Path, rows: Sequence[Row]) -> dict[str, NDArray[np.float32]]:
    """Run a judge's model over rows; logits by head of whole pairs, [n, labels].

    Args:
        folder: Holds ``model.onnx``, ``tokenizer.json`` and ``judge.json``.
        rows: The rows; cut to what the model reads.
    """
    card = JudgeCard.model_validate_json((folder / "judge.json").read_text("utf-8"))
    tokenizer = load_tokenizer(folder / "tokenizer.json")
    encoded = encode_rows(tokenizer, rows, card.max_length)
    return OnnxTextModel(folder).run([_segments(item) for item in encoded])


def _segments(encoded: EncodedRow) -> Segments:
    """A row's segments without their special tokens."""
    parts = [encoded.ids[encoded.types == number].tolist() for number in range(3)]
    return Segments(parts[0][1:-1], parts[1][:-1], parts[2][:-1] or None)


def measure(
    scores: Logits,
    rows: Sequence[Row],
    temperature: Mapping[str, float],
    *,
    unseen: Sequence[bool] | None = None,
) -> list[Measured]:
    """Measure every head on every source.

    Args:
        scores: Logits by head.
        rows: The rows they belong to.
        temperature: By head.
        unseen: True for rows that temperatures were fitted on; they do not count in the
            calibration error.
    """
    fitted = np.zeros(len(rows), bool) if unseen is None else np.array(unseen)
    results = []
    for head in scores:
        for source in dict.fromkeys(row.source for row in rows):
            picked = np.array(
                [i for i, row in enumerate(rows) if row.source == source and _taught(row, head)],
                int,
            )
            if len(picked):
                probabilities = softmax(scores[head][picked], temperature.get(head, 1.0))
                results.append(
                    _measured(
                        head, source, probabilities, [rows[i] for i in picked], fitted[picked]
                    )
                )
    return results


def _taught(row: Row, head: str) -> bool:
    """Whether a row has one known label for a head; NLI rows do not measure attribution."""
    if head == "nli":
        return row.nli >= 0 or row.nli == NOT_ENTAILMENT
    if head == "complexity":
        return row.complexity != NO_LABEL
    if head == "claim":
        return row.claim != NO_LABEL
    return head == "attribution" and len(row.attribution) == 1 and row.nli == NO_LABEL


def _measured(
    head: str,
    source: str,
    probabilities: NDArray[np.float64],
    rows: Sequence[Row],
    fitted: NDArray[np.bool_],
) -> Measured:
    labels = np.array(
        [r.attribution[0] if head == "attribution" else getattr(r, head) for r in rows]
    ).reshape(-1)  # fmt: skip
    guessed = probabilities.argmax(-1)
    right = np.where(labels == NOT_ENTAILMENT, guessed != 0, guessed == labels)
    known = labels >= 0
    scores = [_f1(guessed[known], labels[known], int(item)) for item in np.unique(labels[known])]
    rest = ~fitted & known if (~fitted & known).any() else known
    return Measured(
        head,
        source,
        len(rows),
        float(right.mean()),
        float(np.mean(scores)) if scores else 0.0,
        expected_calibration_error(probabilities[rest], labels[rest]) if rest.any() else 0.0,
        area(probabilities[:, 0], labels == 0) if head == "nli" else None,
    )


def table(measured: Sequence[Measured]) -> str:
    """The measurements as a Markdown table."""
    lines = [
        "| head | rows from | rows | accuracy | macro-F1 | ECE | AUC |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for item in measured:
        cells = [item.head, item.source, f"{item.rows:,}", f"{item.accuracy:.4f}"]
        cells += [f"{item.macro_f1:.4f}", f"{item.ece:.4f}"]
        cells.append("–" if item.auc is None else f"{item.auc:.4f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def breakdown(scores: Logits, rows: Sequence[Row]) -> str:
    """The attribution head on CAQA rows: F1 by category, micro-F1 by complexity (CAQA Table 6).

    Args:
        scores: Logits by head.
        rows: The rows they belong to.

    Returns:
        A Markdown table, one line for each source of CAQA rows.
    """
    categories, complexities = HEADS["attribution"], HEADS["complexity"]
    names = [name.replace("_", " ") for name in (*categories, *complexities)]
    lines = ["| rows from | " + " | ".join(names) + " |", "|---|" + "--:|" * len(names)]
    for source in dict.fromkeys(row.source for row in rows if row.complexity != NO_LABEL):
        picked = np.array([i for i, row in enumerate(rows) if row.source == source], int)
        guessed = scores["attribution"][picked].argmax(-1)
        labels = np.array([rows[i].attribution[0] for i in picked])
        shapes = np.array([rows[i].complexity for i in picked])
        cells = [f"{_f1(guessed, labels, k):.4f}" for k in range(len(categories))]
        for k in range(len(complexities)):
            right = (guessed == labels)[shapes == k]
            cells.append(f"{right.mean():.4f}" if len(right) else "-")
        lines.append(f"| {source} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _f1(guessed: NDArray[np.integer], labels: NDArray[np.integer], label: int) -> float:
    hits = float(((guessed == label) & (labels == label)).sum())
    total = float((guessed == label).sum() + (labels == label).sum())
    return 2 * hits / total if total else 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of a judge on the validation rows."""
    from training.artefact import calibration_rows
    from training.recipe import SEED, load_validation

    parser = argparse.ArgumentParser(prog="python -m training.evaluate")
    parser.add_argument("--data", type=Path, required=True, help="the data folder")
    parser.add_argument("--judge", type=Path, default=SHIPPED, help="folder of the judge")
    parser.add_argument("--most", type=int, help="most rows of a source")
    parser.add_argument("--seed", type=int, default=SEED, help="seed of the constructed rows")
    options = parser.parse_args(arguments)
    rows = load_validation(options.data, seed=options.seed, most=options.most)
    card = JudgeCard.model_validate_json((options.judge / "judge.json").read_text("utf-8"))
    scores = logits(options.judge, rows)
    measured = measure(scores, rows, card.temperature, unseen=calibration_rows(rows))
    print(table(measured), breakdown(scores, rows), sep="\n\n")


if __name__ == "__main__":
    main()
