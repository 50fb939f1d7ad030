"""Text quality by a chat model: coherence, consistency, fluency, relevance (KaLMA 4.1).

Each is an integer from 1 to 5, given after the instructions of KaLMA's Tables 11–14, which
follow G-Eval. Where the endpoint returns token likelihoods, the mean of the ratings weighted by
their likelihood is reported as well.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.errors import JudgeError
from guardrail.core.http_clients import open_client, openai_errors
from guardrail.core.types import Score

if TYPE_CHECKING:
    from openai import OpenAI


class Quality(StrEnum):
    """What is rated."""

    COHERENCE = "coherence"
    CONSISTENCY = "consistency"
    FLUENCY = "fluency"
    RELEVANCE = "relevance"


class QualityItem(NamedTuple):
    """What the rater reads: the knowledge matters for consistency only."""

    question: str
    answer: str
    knowledge: str = ""


class RatingReply(NamedTuple):
    """A rater's reply.

    Attributes:
        text: What it wrote.
        likelihoods: Log likelihood of each possible first token; empty if the endpoint has none.
    """

    text: str
    likelihoods: Mapping[str, float] = MappingProxyType({})


class QualityRating(NamedTuple):
    """One rating.

    Attributes:
        rating: The integer the model wrote, 1 to 5.
        weighted: Mean of 1 to 5 weighted by likelihood, where the endpoint returns likelihoods.
    """

    rating: Score
    weighted: Score


Rater = Callable[[Sequence[str]], Sequence[RatingReply]]
"""A chat model that answers n prompts in order; raises ``JudgeError``."""


_INSTRUCTIONS = {
    Quality.COHERENCE: (
        "the collective quality of all sentences. We align this dimension with the DUC quality "
        "question of structure and coherence whereby the answer should be well-structured and "
        "well-organized. The answer should not just be a heap of related information, but should "
        "build from sentence to sentence to a coherent body of information about a topic.\n\n"
        "Evaluation Steps:\n"
        "1. Read the question carefully and identify the main topic and key points.\n"
        "2. Read the answer and compare it to the question. Check if the answer covers the main "
        "topic and key points of the question, and if it presents them in a clear and logical "
        "order."
    ),
    Quality.CONSISTENCY: (
        "the answer should be consistent with the given knowledge. The answer should also be "
        "self-consistent, without any contradiction to itself.\n\n"
        "Evaluation Steps:\n1. Read the question and knowledge carefully.\n"
        "2. Read the answer and compare it to the knowledge. Check if the answer is consistent "
        "with the given knowledge."
    ),
    Quality.FLUENCY: (
        "the answer should be written in fluent language. The answer should use appropriate "
        "vocabulary, grammar, and sentence structures that enable readers or listeners to "
        "comprehend the content effortlessly.\n\n"
        "Evaluation Steps:\n1. Read the question carefully.\n"
        "2. Read the answer and check if the language in the answer is fluent."
    ),
    Quality.RELEVANCE: (
        "the answer should be relevant to the question. The answer should directly answer the "
        "question, without providing any irrelevant information.\n\n"
        "Evaluation Steps:\n1. Read the question carefully.\n"
        "2. Read the answer and compare it with the question to check if it fully answers the "
        "question and has no redundancies."
    ),
}
"""Criterion and steps of each quality (KaLMA, Tables 11–14)."""


def quality_prompt(quality: Quality, item: QualityItem) -> str:
    """The instruction of Tables 11–14 for one quality, with the item to rate."""
    last = (
        f"3. Assign a score for {quality} on a scale of 1 to 5, where 1 is the lowest and 5 is the "
        "highest based on the Evaluation Criteria."
    )
    knowledge = f"Knowledge: {item.knowledge}\n" if quality is Quality.CONSISTENCY else ""
    return (
        "Instruction: You will be given one question and answer. Your task is to rate the answer "
        "on one metric. Please make sure you read and understand these instructions carefully. "
        "Please keep this document open while reviewing, and refer to it as needed.\n\n"
        f"Evaluation Criteria:\n{quality.capitalize()} (1-5) - {_INSTRUCTIONS[quality]}\n{last}\n\n"
        f"{knowledge}Question: {item.question}\nAnswer: {item.answer}\n\n"
        f"{quality.capitalize()} score, one digit:"
    )


def rate_quality(items: Sequence[QualityItem], rater: Rater) -> list[dict[Quality, QualityRating]]:
    """Rate n answers on all four qualities.

    Raises:
        JudgeError: The rater could not be reached or refused.
    """
    prompts = [quality_prompt(quality, item) for item in items for quality in Quality]
    ratings = [_rating(reply) for reply in rater(prompts)]
    width = len(Quality)
    return [
        dict(zip(Quality, ratings[start : start + width], strict=True))
        for start in range(0, len(ratings), width)
    ]


@dataclass(frozen=True)
class OpenAIRater:
    """A chat model behind an OpenAI-compatible endpoint; temperature 0 (appendix A.2).

    Attributes:
        model: Name the endpoint knows the model by.
        base_url: The endpoint; None takes ``OPENAI_BASE_URL`` or OpenAI's own.
        api_key: The key; None takes ``OPENAI_API_KEY``.
        timeout_s: Maximum seconds per rating.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = None
    timeout_s: float = 60.0

    def __call__(self, prompts: Sequence[str]) -> list[RatingReply]:
        """Answer n prompts; raises ``JudgeError`` if the endpoint fails."""
        with (
            openai_errors(f"rating model {self.model!r}", JudgeError),
            open_client(self.base_url, self.api_key, timeout_s=self.timeout_s) as client,
            ThreadPoolExecutor(4) as pool,
        ):
            return list(pool.map(lambda prompt: self._rate(client, prompt), prompts))

    def _rate(self, client: OpenAI, prompt: str) -> RatingReply:
        reply = client.chat.completions.create(
            model=self.model,
            messages=[{"role": "user", "content": prompt}],
            temperature=0.0,
            max_tokens=4,
            logprobs=True,
            top_logprobs=20,
        )
        choice = reply.choices[0]
        tokens = getattr(choice.logprobs, "content", None) or []
        first = next((token for token in tokens if token.token.strip()), None)
        likelihoods = {top.token: top.logprob for top in first.top_logprobs} if first else {}
        return RatingReply(text=choice.message.content or "", likelihoods=likelihoods)


def _rating(reply: RatingReply) -> QualityRating:
    digit = re.search(r"(?<!\d)[1-5](?!\d)", reply.text)
    weights = dict.fromkeys(map(str, range(1, 6)), 0.0)
    for token, logprob in reply.likelihoods.items():
        if token.strip() in weights:
            weights[token.strip()] += math.exp(logprob)
    total = sum(weights.values())
    weighted = sum(int(digit) * weight for digit, weight in weights.items())
    return QualityRating(
        rating=Score(value=float(digit.group()))
        if digit
        else Score(reason=f"no rating in the reply {reply.text[:40]!r}"),
        weighted=Score(value=weighted / total)
        if total
        else Score(reason="the endpoint returns no token likelihoods of ratings"),
    )
