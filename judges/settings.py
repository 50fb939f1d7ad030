"""Settings, calibration and budgets of judges; separate, so that a configuration loads no judge."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import Field, FiniteFloat

from guardrail.core.types.value import Probability, Seconds, Value

LEAST = 1e-6
"""Least probability whose logarithm is taken."""

SPENT = "the budget of this answer is spent"
"""Why a sentence was not asked about."""


class Calibration(Value):
    """Calibration of a verdict's probabilities: softmax((logits + bias) / T).

    Attributes:
        temperature: T.
        bias: Added to the logits of supported, unsupported and contradicted, in this order.
    """

    temperature: FiniteFloat = Field(default=1.0, gt=0)
    bias: tuple[FiniteFloat, FiniteFloat, FiniteFloat] = (0.0, 0.0, 0.0)

    def shares(self, of: Sequence[float]) -> tuple[float, float, float]:
        """Calibrated probabilities of supported, unsupported and contradicted."""
        logits = [
            (math.log(max(LEAST, share)) + bias) / self.temperature
            for share, bias in zip(of, self.bias, strict=True)
        ]
        a, b, c = (math.exp(logit - max(logits)) for logit in logits)
        return a / (a + b + c), b / (a + b + c), c / (a + b + c)


class Cost(NamedTuple):
    """Cost of calls: their number, and the tokens of prompts and replies."""

    calls: float
    tokens: float


class Spending(Value):
    """Spending limits; None for no limit.

    Attributes:
        calls: Requests.
        tokens: Tokens of prompts and replies.
    """

    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)

    def allows(self, costs: Sequence[Cost]) -> bool:
        """True if a sum of costs is within the limits."""
        spent = (
            (sum(cost.calls for cost in costs), self.calls),
            (sum(cost.tokens for cost in costs), self.tokens),
        )
        return all(limit is None or amount <= limit for amount, limit in spent)


class Account:
    """What one answer may still spend, its corrections included; for several threads.

    Args:
        limit: What its calls may cost together.
        seconds: How long they may take together.

    Attributes:
        seconds: What is left of them.
        failures: Why there is no answer, by call, so that the same is not asked again.
    """

    def __init__(self, limit: Spending, seconds: float = math.inf) -> None:
        self.seconds = seconds
        self.failures: dict[object, str] = {}
        self._limit = limit
        self._paid: dict[object, Cost] = {}
        self._lock = threading.Lock()

    def pays(self, costs: Mapping[object, Cost]) -> bool:
        """Charge calls, each key once; False, and none is charged, if the limit is too low."""
        with self._lock:
            after = self._paid | dict(costs)
            if self._limit.allows([*after.values()]):
                self._paid = after
                return True
            return False


class ChatSettings(Value):
    """How chat models judge, whether as the first judge or as the second.

    Attributes:
        base_url: The endpoint; None uses ``OPENAI_BASE_URL`` or OpenAI.
        api_key_env: Environment variable of the key.
        concurrency: Concurrent requests; 1 for a server that answers one at a time.
        timeout_s: Maximum seconds per reply, retries included.
        calibration: Calibration of the model's probabilities, fitted by ``guardrail tune
            --second``. Default: temperature 2.5 (arXiv 2207.05221).
        per_minute: Spending limits per minute.
    """

    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    concurrency: int = Field(default=8, ge=1)
    timeout_s: Seconds = 60.0
    calibration: Calibration = Calibration(temperature=2.5)
    per_minute: Spending = Spending()


class SecondJudgeSettings(Value):
    """A second judge for the sentences that the first one is unsure of.

    Attributes:
        judge: Judge by name, as for the top-level ``judge``.
        band: Judge sentences with a probability within this distance of its threshold.
        share: Maximum share of an answer's sentences, rounded up, nearest first.
        timeout_s: Maximum seconds per answer, corrections and stream included, within the policy's
            ``deadline_s``; a batch of n gets n times this.
        per_answer: Spending limits per answer; further sentences keep the first verdict.
    """

    judge: str
    band: Probability = 0.3
    share: Probability = 0.25
    timeout_s: Seconds = 10.0
    per_answer: Spending = Spending()

    def account(self) -> Account:
        """What one answer may spend."""
        return Account(self.per_answer, self.timeout_s)


def fit(probabilities: Sequence[Sequence[float]], labels: Sequence[int]) -> Calibration:
    """Temperature and bias of least cross-entropy, by gradient descent.

    Args:
        probabilities: Of supported, unsupported and contradicted, [n, 3].
        labels: Which of the three is right, [n].
    """
    import numpy as np

    logs = np.log(np.maximum(LEAST, np.asarray(probabilities, np.float64).reshape(-1, 3)))
    right = np.eye(3)[np.asarray(labels, np.int64)]
    slope, bias, rate = 1.0, np.zeros(3), 0.5
    prior = 20.0  # rows that pull towards slope 1 and no bias: few labels teach little
    total = len(right) + prior
    scale = max(1.0, float(np.square(logs).sum() / max(1, logs.size)))
    for _ in range(500):
        logits = slope * logs + bias
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        off = weights / weights.sum(axis=1, keepdims=True) - right
        slope -= rate * ((off * logs).sum() + prior * (slope - 1.0)) / total / scale
        slope = float(np.clip(slope, 0.02, 5.0))
        bias -= rate * (off.sum(axis=0) + prior * bias) / total
    bias -= bias.mean()
    return Calibration(
        temperature=round(1.0 / slope, 3),
        bias=tuple(round(float(value) / slope, 3) for value in bias),  # type: ignore[arg-type]
    )
