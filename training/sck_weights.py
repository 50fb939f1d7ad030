"""Learns the weights of S, C and K by intent from rated answers (SCK 2.4).

    python -m training.sck_weights ROWS.jsonl [--out weights.json]

reads one JSON object per line: ``{question, answer, rating, triples?, passages?, reference?}``,
with ratings on any scale. For each intent the weights minimise the squared error against the
ratings plus a penalty on the distance to Table 3, whose strength is cross-validated.
``guardrail score --sck-weights weights.json`` uses the learned weights.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from guardrail.core.errors import InputError
from guardrail.core.types import Passage, Triple, Value
from judges.sck.report import TABLE_3, Intent, PartWeights, SCKInput, SCKReport

__all__ = ["Learned", "RatedAnswer", "learn_weights", "main", "read_rated", "table"]

Floats = NDArray[np.float64]

PULLS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Strengths of the penalty that cross-validation chooses from."""

STEPS = 500
"""Steps of exponentiated gradient descent over three unknowns."""

RATE = 0.5
PARTS = ("structure", "content", "knowledge")


class RatedAnswer(Value):
    """One labelled row; triples and passages are its evidence."""

    question: str
    answer: str
    rating: float
    triples: tuple[tuple[str, str, str], ...] = ()
    passages: tuple[str, ...] = ()
    reference: str | None = None

    @property
    def input(self) -> SCKInput:
        """The row as input of the scorer."""
        triples = [Triple(subject=s, property=p, value=v) for s, p, v in self.triples]
        passages = [Passage(text=text) for text in self.passages]
        return SCKInput(
            question=self.question,
            answer=self.answer,
            evidence=(*triples, *passages),
            reference=self.reference,
        )


class Learned(NamedTuple):
    """Weights learned from rated answers.

    Attributes:
        weights: Weights by intent; Table 3's where no row has the intent.
        rows: Number of rows by intent.
        pull: The chosen strength of the penalty.
        error: Root mean squared error of the learned weights in cross-validation, with ratings
            on [0, 1].
        error_before: The same for Table 3.
    """

    weights: Mapping[Intent, PartWeights]
    rows: Mapping[Intent, int]
    pull: float
    error: float
    error_before: float


class _Rows(NamedTuple):
    """Rated answers: intents [n]; S, C and K [n, 3], NaN where one is missing; ratings [n]."""

    intents: NDArray[np.str_]
    parts: Floats
    ratings: Floats

    def at(self, chosen: NDArray[np.bool_]) -> _Rows:
        return _Rows(self.intents[chosen], self.parts[chosen], self.ratings[chosen])

    def of(self, intent: Intent) -> _Rows:
        return self.at(self.intents == intent.value)

    def predicted(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Scores [n], total weight of the parts with a value [n], a mask of these [n, 3]."""
        present = (~np.isnan(self.parts)).astype(np.float64)
        mass = np.maximum(present @ weights, 1e-9)
        return (np.nan_to_num(self.parts) @ weights) / mass, mass, present


def learn_weights(
    reports: Sequence[SCKReport], ratings: Sequence[float], *, folds: int = 5, seed: int = 0
) -> Learned:
    """Learn weights from reports and their ratings.

    Args:
        reports: Reports of n answers; reports without any part are left out.
        ratings: n ratings, higher is better, on any scale.
        folds: Parts of the cross-validation.
        seed: Seed of the split.

    Raises:
        InputError: There are fewer rows than folds, or all ratings are equal.
    """
    usable = [row for row, report in enumerate(reports) if report.score.value is not None]
    if len(usable) < max(2, folds):
        raise InputError(f"{len(usable)} rated answers are too few for {folds} folds")
    low, high = min(ratings), max(ratings)
    if low == high:
        raise InputError("all ratings are equal; there is nothing to learn from")
    kept = [reports[row] for row in usable]
    rows = _Rows(
        np.array([report.structure.intent.value for report in kept]),
        np.array([[part.score.value for part in report.parts] for report in kept], np.float64),
        np.array([(ratings[row] - low) / (high - low) for row in usable]),
    )
    fold = np.random.default_rng(seed).permutation(len(kept)) % folds
    errors = {pull: _validate(rows, fold, pull) for pull in PULLS}
    pull = min(PULLS, key=errors.__getitem__)
    counts = {intent: len(rows.of(intent).ratings) for intent in Intent}
    before = np.sqrt(_squares(rows, TABLE_3) / len(kept))
    return Learned(_fit(rows, pull), counts, pull, errors[pull], float(before))


def _validate(rows: _Rows, fold: NDArray[np.int64], pull: float) -> float:
    """Root mean squared error over rows that the weights were not learned from."""
    squares = sum(
        _squares(rows.at(fold == number), _fit(rows.at(fold != number), pull))
        for number in np.unique(fold)
    )
    return float(np.sqrt(squares / len(rows.ratings)))


def _squares(rows: _Rows, weights: Mapping[Intent, PartWeights]) -> float:
    """Sum of squared errors."""
    groups = ((rows.of(intent), _as_array(weights[intent])) for intent in Intent)
    errors = [group.predicted(own)[0] - group.ratings for group, own in groups]
    return float(sum((error**2).sum() for error in errors))


def _fit(rows: _Rows, pull: float) -> dict[Intent, PartWeights]:
    fitted = dict(TABLE_3)
    for intent in Intent:
        group = rows.of(intent)
        if count := len(group.ratings):
            found = _descend(group, _as_array(TABLE_3[intent]), pull)
            reason = f"learned from {count} rated answers"
            named = dict(zip(PARTS, found.tolist(), strict=True))
            fitted[intent] = PartWeights(**named, reason=reason)
    return fitted


def _descend(group: _Rows, prior: Floats, pull: float) -> Floats:
    """Weights on the simplex: mean squared error, and pull / n times the distance to the prior."""
    prior = prior / prior.sum()
    weights, count = prior.copy(), len(group.ratings)
    values = np.nan_to_num(group.parts)
    for _ in range(STEPS):
        predicted, mass, present = group.predicted(weights)
        slope = (values - predicted[:, None] * present) / mass[:, None]
        gradient = 2 * ((predicted - group.ratings) @ slope) / count
        gradient += 2 * pull / count * (weights - prior)
        weights = weights * np.exp(-RATE * (gradient - gradient @ weights))
        weights /= weights.sum()
    return weights


def _as_array(weights: PartWeights) -> Floats:
    return np.array([getattr(weights, part) for part in PARTS])


def table(learned: Learned) -> str:
    """The learned weights next to those of Table 3, as text."""
    lines = [f"{'intent':16} {'rows':>5}   learned S, C, K       Table 3 S, C, K"]
    for intent, weights in learned.weights.items():
        new, old = ("  ".join(f"{w:.2f}" for w in _as_array(o)) for o in (weights, TABLE_3[intent]))
        lines.append(f"{intent:16} {learned.rows[intent]:>5}   {new}      {old}")
    lines.append(
        f"error on held-out rows {learned.error:.4f}, of Table 3 {learned.error_before:.4f} "
        f"(root mean square, ratings on [0, 1]; pull {learned.pull})"
    )
    return "\n".join(lines)


def read_rated(path: Path) -> list[RatedAnswer]:
    """Read JSON lines of rated answers.

    Raises:
        InputError: A line is not a rated answer; the message has its number.
    """
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line.strip():
            try:
                rows.append(RatedAnswer.model_validate_json(line))
            except ValidationError as error:
                raise InputError(f"{path}, line {number}: {error}") from error
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line with the shipped encoder and judge."""
    parser = argparse.ArgumentParser(prog="training.sck_weights", description=__doc__)
    parser.add_argument("rows", type=Path, help="JSON lines of rated answers")
    parser.add_argument("--out", type=Path, help="file for the weights as JSON")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--judge", default="onnx", help="name of the NLI judge")
    options = parser.parse_args(arguments)
    from benchmarks.sck.judged import JudgedScorer
    from judges.encoder import create_encoder
    from judges.registry import create_nli

    rows = read_rated(options.rows)
    scorer = JudgedScorer(create_encoder(), create_nli(options.judge))
    reports = scorer.score([row.input for row in rows])
    learned = learn_weights(reports, [row.rating for row in rows], folds=options.folds)
    print(table(learned))
    if options.out:
        weights = {intent.value: row.model_dump() for intent, row in learned.weights.items()}
        options.out.write_text(json.dumps(weights, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
