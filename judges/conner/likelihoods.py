"""The perspectives computed from token likelihoods: eq. 3, 5 and 6 of CONNER."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from guardrail.core.types import Score
from judges.base import TokenLikelihoods
from judges.conner.report import ConnerInput, ConnerSettings, Perspective

NOT_REQUESTED = "this perspective was not requested"

LIKELIHOOD = (
    "coherence_sentence", "coherence_sentence_uncapped", "informativeness", "helpfulness",
    "helpfulness_unclipped",
)  # fmt: skip
"""Fields of a report without a value if there are no likelihoods."""

Prompt = tuple[str, str]


class LikelihoodPlan(NamedTuple):
    """The likelihoods that one row needs, as (prefix, continuation) pairs.

    Attributes:
        settings: The scorer's settings.
        sentences: The sentences, without a prefix.
        knowledge: The knowledge after its question.
        helped: The answer after the row's knowledge, then after each irrelevant text.
    """

    settings: ConnerSettings
    sentences: tuple[Prompt, ...]
    knowledge: tuple[Prompt, ...]
    helped: tuple[Prompt, ...]

    @classmethod
    def of(cls, row: ConnerInput, settings: ConnerSettings, pool: Sequence[str]) -> LikelihoodPlan:
        """Plan a row.

        Args:
            row: The row.
            settings: Which perspectives are wanted, and how.
            pool: Texts from which irrelevant knowledge is sampled. The sample depends on the query,
                so that candidates for one query share their baseline.
        """
        wanted = settings.perspectives
        informative = _first_words(row.knowledge, settings.informativeness_words)
        answer = row.reference if (row.reference or "").strip() else row.answer
        helped: list[Prompt] = []
        if Perspective.HELPFULNESS in wanted and answer and answer.strip():
            others = [text for text in pool if text != row.knowledge]
            sample = min(settings.irrelevant_samples, len(others))
            chosen = random.Random(f"{settings.seed}:{row.query}").sample(others, sample)
            for text in (row.knowledge, *chosen):
                start = _first_words(text, settings.helpfulness_words)
                helped.append((f"{start}\n\nQuestion: {row.query}\n\nAnswer:", f" {answer}"))
        return cls(
            settings,
            tuple(("", sentence) for sentence in row.sentences)
            if Perspective.COHERENCE_SENTENCE in wanted
            else (),
            ((f"{settings.informativeness_prompt}\n\n{row.query}\n\n", informative),)
            if Perspective.INFORMATIVENESS in wanted
            else (),
            tuple(helped),
        )

    @property
    def pairs(self) -> tuple[Prompt, ...]:
        """All pairs."""
        return (*self.sentences, *self.knowledge, *self.helped)

    def scores(self, found: Mapping[Prompt, TokenLikelihoods]) -> dict[str, object]:
        """The fields of the row's report."""
        sentences, knowledge, helped = (
            [found[pair] for pair in pairs]
            for pairs in (self.sentences, self.knowledge, self.helped)
        )
        present = [sentence.logprobs for sentence in sentences if sentence.logprobs]
        # The cap is applied to the exponent, which would overflow on a very unlikely sentence.
        cap = math.log(self.settings.perplexity_cap)
        capped = tuple(math.exp(min(-fmean(values), cap)) for values in present)
        informed = knowledge[0].logprobs if knowledge else ()
        helps, missing = None, "no answer"
        if helped:
            helps = _helpfulness(helped[0], helped[1:])
            missing = "the answer has no likelihood to improve"
        if len(helped) == 1:
            missing = "no pool of irrelevant knowledge"

        def score(value: float | None, perspective: Perspective, reason: str) -> Score:
            if value is not None:
                return Score(value=value)
            asked = perspective in self.settings.perspectives
            return Score(reason=reason if asked else NOT_REQUESTED)

        by_sentence, helpful = Perspective.COHERENCE_SENTENCE, Perspective.HELPFULNESS
        coherence = fmean(1 / value for value in capped) if capped else None
        # 1/PPL is the geometric mean of a sentence's token likelihoods.
        uncapped = fmean(math.exp(fmean(values)) for values in present) if present else None
        information = 1.0 - math.exp(min(0.0, fmean(informed))) if informed else None
        clipped = None if helps is None else max(0.0, helps)
        return {
            "coherence_sentence": score(coherence, by_sentence, "no sentences"),
            "coherence_sentence_uncapped": score(uncapped, by_sentence, "no sentences"),
            "perplexities": capped,
            "informativeness": score(information, Perspective.INFORMATIVENESS, "no text"),
            "helpfulness": score(clipped, helpful, missing),
            "helpfulness_unclipped": score(helps, helpful, missing),
        }


def _helpfulness(
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


def _first_words(text: str, count: int) -> str:
    """The first ``count`` words of a text; a shorter one as it is."""
    words = text.split()
    return text if len(words) <= count else " ".join(words[:count])
