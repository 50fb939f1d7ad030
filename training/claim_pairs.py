"""Attribution rows in natural language: claims of VitaminC joined, or set against foreign evidence.

They teach the attribution head what templates cannot: prose evidence that says nothing on the
claim, and answers of two claims where the evidence covers one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from judges.folder import HEADS
from training.rows import Row, nli_row

__all__ = ["claim_rows"]

_ENTAILMENT, _NEUTRAL, _CONTRADICTION = range(len(HEADS["nli"]))


def claim_rows(rows: Sequence[Row], *, count: int, seed: int, source: str = "claims") -> list[Row]:
    """Make rows of claims and evidence of known category.

    Args:
        rows: NLI rows of prose evidence and short claims.
        count: Number of rows to make.
        seed: Seed of all choices.
        source: Name of the rows.
    """
    rng = random.Random(f"{seed}/claims")
    by_label = {label: [row for row in rows if row.nli == label] for label in range(3)}
    same: dict[str, list[Row]] = {}
    for row in rows:
        same.setdefault(row.premise, []).append(row)
    made: list[Row] = []
    while len(made) < count:
        kind = rng.random()
        one = rng.choice(by_label[_ENTAILMENT])
        if kind < 0.35:
            made.append(_irrelevant(rng.choice(rows), one, rng, source))
            continue
        other = rng.choice(same[one.premise])
        if other.nli == _ENTAILMENT and kind < 0.8:
            other = rng.choice(by_label[_ENTAILMENT])
        if other.hypothesis == one.hypothesis:
            continue
        made.append(_joined(one, other, rng, source))
    return made


def _irrelevant(row: Row, other: Row, rng: random.Random, source: str) -> Row:
    """A claim against the evidence of another."""
    claim = row.hypothesis
    if rng.random() < 0.3:
        claim = f"{claim} {other.hypothesis}"
        evidence = rng.choice((row, other))
        return nli_row(
            evidence.premise,
            claim,
            "neutral" if evidence.nli != _CONTRADICTION else "contradiction",
            source,
            neutral="partially_supportive" if evidence.nli == _ENTAILMENT else None,
        )
    return nli_row(other.premise, claim, "neutral", source, neutral="irrelevant")


def _joined(row: Row, other: Row, rng: random.Random, source: str) -> Row:
    """An entailed claim and another one, in either order, against the first one's evidence."""
    claims = [row.hypothesis, other.hypothesis]
    rng.shuffle(claims)
    text = " ".join(claims)
    if row.premise != other.premise:
        if rng.random() < 0.4:
            evidence = [row.premise, other.premise]
            rng.shuffle(evidence)
            return nli_row(" ".join(evidence), text, "entailment", source)
        return nli_row(row.premise, text, "neutral", source, neutral="partially_supportive")
    label = HEADS["nli"][other.nli]
    return nli_row(row.premise, text, label, source, neutral="partially_supportive")
