"""A judge of another package: it compares words, and fails as the question asks it to."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import cast

from benchmarks.faults.facts import HANG_S, LATE_S, faults_in
from guardrail.core.types import Grounding, NLIScores, StatementScore, WordScore
from judges.base import GroundingItem, NLITraits, Pair

__all__ = ["FaultyJudge"]

_WORD = re.compile(r"\w+")
_SMALL = frozenset(["a", "an", "and", "in", "is", "it", "of", "on", "the", "was", "were", "who"])


class FaultyJudge:
    """Supports a sentence if the evidence contains all of its words.

    One with a figure or a *not* that the evidence lacks is contradicted. A question that names a
    fault, ``(judge hang)``, gets it.
    """

    name = "faulty-1"
    traits = NLITraits()

    def warm_up(self) -> None:
        """Nothing to load."""

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs of a sentence and one statement."""
        found = [_grounding(GroundingItem((pair.premise,), pair.hypothesis)) for pair in pairs]
        return [
            NLIScores(
                entailment=item.supported,
                neutral=item.unsupported + item.no_claim,
                contradiction=item.contradicted,
            )
            for item in found
        ]

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n sentences, or fail."""
        found = [_grounding(item) for item in items]
        fault = next(filter(None, (faults_in(item.context).get("judge") for item in items)), None)
        if fault == "late":
            time.sleep(LATE_S)
        elif fault == "hang":
            time.sleep(HANG_S)
        elif fault == "reset":
            raise ConnectionResetError("the judge's process is gone")
        elif fault == "full":
            raise MemoryError("no memory is left")
        elif fault == "half":
            return found[: len(found) // 2]
        elif fault == "garbage":
            return cast("list[Grounding]", [b"\xff\x00" for _ in items])
        return found


def _grounding(item: GroundingItem) -> Grounding:
    held = [{word.lower() for word in _WORD.findall(text)} for text in item.statements]
    known = set[str]().union(*held)
    words = [word for word in _WORD.finditer(item.sentence) if word[0].lower() not in _SMALL]
    missing = {word[0] for word in words if word[0].lower() not in known}
    against = any(word == "not" or word.isdigit() for word in missing)
    chosen = "contradicted" if against else "unsupported" if missing or not known else "supported"
    return Grounding(
        supported=0.97 if chosen == "supported" else 0.01,
        unsupported=0.97 if chosen == "unsupported" else 0.01,
        contradicted=0.97 if chosen == "contradicted" else 0.01,
        no_claim=0.01,
        words=tuple(
            WordScore(
                start=word.start(),
                end=word.end(),
                missing=0.9 if word[0] in missing else 0.1,
                contradicted=0.9 if against and word[0] in missing else 0.1,
            )
            for word in words
        ),
        statements=tuple(
            StatementScore(
                carries=0.9 if sum(word[0].lower() in entry for word in words) > 1 else 0.1,
                conflicts=0.1,
            )
            for entry in held
        ),
    )
