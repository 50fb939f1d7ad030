"""Settings of judges; separate, so that reading a configuration loads no judge."""

from __future__ import annotations

from pydantic import Field

from guardrail.core.types.value import Probability, Seconds, Value
from judges.calibration import Calibration

__all__ = ["ChatSettings", "SecondJudgeSettings", "Spending"]


class Spending(Value):
    """Limits of what is spent; None for no limit.

    Attributes:
        calls: Requests.
        tokens: Tokens of prompts and replies.
    """

    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)

    def allows(self, calls: float, tokens: float) -> bool:
        """True if a sum of calls and tokens is within the limits."""
        spent = ((calls, self.calls), (tokens, self.tokens))
        return all(limit is None or amount <= limit for amount, limit in spent)


class ChatSettings(Value):
    """How chat models judge, whether as the first judge or as the second.

    Attributes:
        base_url: The endpoint; None uses ``OPENAI_BASE_URL`` or OpenAI.
        api_key_env: Environment variable of the key.
        concurrency: Concurrent requests.
        calibration: Calibration of the model's probabilities, fitted by ``guardrail tune
            --second``. Default: temperature 2.5 (arXiv 2207.05221).
        per_minute: Spending limits per minute.
    """

    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    concurrency: int = Field(default=8, ge=1)
    calibration: Calibration = Calibration(temperature=2.5)
    per_minute: Spending = Spending()


class SecondJudgeSettings(Value):
    """A second judge, asked about the sentences that the first one is not sure of.

    Attributes:
        judge: Judge by name, as for the top-level ``judge``.
        band: Ask about sentences with a probability within this distance of its threshold.
        share: Maximum share of an answer's sentences, rounded up, nearest first.
        timeout_s: Maximum seconds per answer, within the policy's ``deadline_s``; a batch has this
            times its number.
        per_answer: Spending limits per answer; further sentences keep the first verdict.
    """

    judge: str
    band: Probability = 0.3
    share: Probability = 0.25
    timeout_s: Seconds = 10.0
    per_answer: Spending = Spending()
