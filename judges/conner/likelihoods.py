"""The perspectives computed from token likelihoods: eq. 3, 5 and 6 of CONNER."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import fmean

from judges.base import TokenLikelihoods
from judges.conner.report import ConnerSettings

__all__ = [
    "first_words",
    "helpfulness",
    "informativeness",
    "informativeness_pair",
    "irrelevant_knowledge",
    "perplexity",
    "sentence_coherence",
    "uncapped_coherence",
]


def perplexity(likelihoods: TokenLikelihoods, cap: float) -> float | None:
    """Perplexity exp(−mean log-likelihood), at most ``cap``; None for no tokens."""
    if not likelihoods.logprobs:
        return None
    # The cap is applied to the exponent, which would overflow on a very unlikely sentence.
    return math.exp(min(-fmean(likelihoods.logprobs), math.log(cap)))


def sentence_coherence(perplexities: Sequence[float]) -> float:
    """Mean of 1/PPL over m >= 1 sentences (eq. 3)."""
    return fmean(1 / value for value in perplexities)


def uncapped_coherence(sentences: Sequence[TokenLikelihoods]) -> float | None:
    """Mean of 1/PPL over sentences (eq. 3), whatever their perplexity; None without tokens.

    1/PPL is the geometric mean of a sentence's token likelihoods.
    """
    means = [math.exp(fmean(sentence.logprobs)) for sentence in sentences if sentence.logprobs]
    return fmean(means) if means else None


def informativeness_pair(query: str, knowledge: str, settings: ConnerSettings) -> tuple[str, str]:
    """Prefix and continuation of eq. 5."""
    knowledge = first_words(knowledge, settings.informativeness_words)
    return f"{settings.informativeness_prompt}\n\n{query}\n\n", knowledge


def first_words(text: str, count: int) -> str:
    """The first ``count`` words of a text; a shorter one as it is."""
    words = text.split()
    return text if len(words) <= count else " ".join(words[:count])


def informativeness(likelihoods: TokenLikelihoods) -> float | None:
    """1 − exp(mean log-likelihood of the knowledge given the query) (eq. 5)."""
    if not likelihoods.logprobs:
        return None
    return 1.0 - math.exp(min(0.0, fmean(likelihoods.logprobs)))


def irrelevant_knowledge(
    pool: Sequence[str], query: str, knowledge: str, settings: ConnerSettings
) -> tuple[str, ...]:
    """Sample u texts of the pool other than the knowledge itself.

    The sample depends on the query, so that candidates for one query share their baseline.
    """
    others = [text for text in pool if text != knowledge]
    generator = random.Random(f"{settings.seed}:{query}")
    return tuple(generator.sample(others, min(settings.irrelevant_samples, len(others))))


def helpfulness(
    with_knowledge: TokenLikelihoods, without: Sequence[TokenLikelihoods]
) -> float | None:
    """1 − L(q, k, a) / mean L(q, k⁻, a), before the maximum with 0 (eq. 6).

    L is the summed cross entropy of the answer. None when a likelihood is missing, or when the
    answer is certain even with irrelevant knowledge, so that nothing can help.
    """
    baseline = [-sum(item.logprobs) for item in without if item.logprobs]
    if not with_knowledge.logprobs or not baseline or fmean(baseline) <= 0.0:
        return None
    return 1.0 - (-sum(with_knowledge.logprobs)) / fmean(baseline)
