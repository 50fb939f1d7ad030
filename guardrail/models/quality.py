"""Text quality as a scorer of the guardrail: a chat model's ratings of an answer (KaLMA 4.1)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from guardrail.core.types import Passage, Score, linearise
from guardrail.models import DEFAULT_OPENAI_MODEL
from guardrail.scorers import ScoringRequest

if TYPE_CHECKING:
    from judges.text_quality import Quality, QualityRating, Rater


def quality_scorer() -> QualityScorer:
    """Ratings by the model of ``OPENAI_MODEL`` at ``OPENAI_BASE_URL``."""
    from judges.text_quality import OpenAIRater

    return QualityScorer(OpenAIRater(os.environ.get("OPENAI_MODEL", DEFAULT_OPENAI_MODEL)))


class QualityScorer:
    """Coherence, consistency, fluency and relevance, each from 1 to 5, and their mean."""

    name = "quality"

    def __init__(self, rater: Rater) -> None:
        self._rater = rater

    def score(self, batch: Sequence[ScoringRequest]) -> list[Mapping[str, Score]]:
        """Rate n answers by what they were judged against: four requests for each.

        Raises:
            JudgeError: The model could not be reached or refused.
        """
        from judges.text_quality import QualityItem, rate_quality

        items = [
            QualityItem(question=item.question, answer=item.answer.text, knowledge=_knowledge(item))
            for item in batch
        ]
        return [_scores(rating) for rating in rate_quality(items, self._rater)]


def _knowledge(request: ScoringRequest) -> str:
    passages = [item.text for item in request.evidence if isinstance(item, Passage)]
    triples = linearise(item for item in request.evidence if not isinstance(item, Passage))
    return "\n".join(filter(None, [triples, *passages]))


def _scores(ratings: Mapping[Quality, QualityRating]) -> dict[str, Score]:
    known = [rating.rating.value for rating in ratings.values() if rating.rating.value is not None]
    whole = Score(value=fmean(known)) if known else Score(reason="no rating could be read")
    return {"quality": whole} | {
        f"quality.{quality.value}": rating.rating for quality, rating in ratings.items()
    }
