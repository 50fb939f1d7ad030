"""Settings of a second judge; apart from it, so that reading a configuration loads no judge."""

from __future__ import annotations

from guardrail.core.types.value import Probability, Seconds, Value

__all__ = ["SecondJudgeSettings"]


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
    """

    judge: str
    band: Probability = 0.3
    share: Probability = 0.25
    timeout_s: Seconds = 10.0
