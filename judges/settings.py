"""Settings of judges; separate, so that reading a configuration loads no judge."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, FiniteFloat

from guardrail.core.types.value import Probability, Seconds, Value
from judges.calibration import Calibration

__all__ = ["ChatSettings", "SecondJudgeSettings", "Spending"]


class Spending(Value):
    """Limits of what is spent; None for no limit.

    Attributes:
        calls: Requests.
        tokens: Tokens of prompts and replies.
        money: In the currency of ``price``.
    """

    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    money: FiniteFloat | None = Field(default=None, ge=0)

    def allows(self, calls: float, tokens: float, money: float) -> bool:
        """True if a sum of calls, tokens and money is within the limits."""
        spent = ((calls, self.calls), (tokens, self.tokens), (money, self.money))
        return all(limit is None or amount <= limit for amount, limit in spent)


class ChatSettings(Value):
    """How chat models judge, whether as the first judge or as the second.

    Attributes:
        base_url: The endpoint; None takes ``OPENAI_BASE_URL`` or OpenAI's own.
        api_key_env: Environment variable that holds its key.
        form: ``label`` asks one call a sentence for one letter; ``detail`` asks one call a
            sentence for the label, the numbers of the evidence and the words at fault; ``array``
            asks the same of up to 20 sentences in one call. None takes ``detail`` for the first
            judge and ``label`` for the second.
        concurrency: Requests in flight at once.
        calibration: Of the model's probabilities; ``guardrail tune --second`` fits it. By default
            the temperature 2.5, which Kadavath et al. (2022, arXiv 2207.05221) found for a model
            tuned on human feedback.
        per_minute: Limits of what all answers together spend in a minute.
        price: Money for a million tokens of prompts, and for a million tokens of replies.
    """

    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    form: Literal["label", "detail", "array"] | None = None
    concurrency: int = Field(default=8, ge=1)
    calibration: Calibration = Calibration(temperature=2.5)
    per_minute: Spending = Spending()
    price: tuple[FiniteFloat, FiniteFloat] = (0.0, 0.0)


class SecondJudgeSettings(Value):
    """A second judge, asked about the sentences that the first one is not sure of.

    Attributes:
        judge: Judge by name, as for the top-level ``judge``.
        band: A sentence is asked about where its probability of support, or that of
            contradiction, is no further than this from the threshold of its verdict.
        share: Greatest share of an answer's sentences that are asked about, rounded up; those
            nearest to the thresholds come first.
        timeout_s: Most seconds that one answer waits for it, within the policy's ``deadline_s``;
            answers of a batch wait together, their number times that at most.
        per_answer: Limits of what is spent on one answer; the sentences beyond keep the first
            verdict.
    """

    judge: str
    band: Probability = 0.3
    share: Probability = 0.25
    timeout_s: Seconds = 10.0
    per_answer: Spending = Spending()
