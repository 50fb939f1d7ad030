"""Calls of a language model, with tracing, a time limit and one type of error."""

from __future__ import annotations

import math

from guardrail.core.errors import ModelError
from guardrail.core.plugins import foreign
from guardrail.core.workers import time_left
from guardrail.log.tracing import model_call
from guardrail.models.base import Completion, LanguageModel, SampleRequest

__all__ = ["sampled"]

LATER_S = 1.0
"""Seconds that a call may exceed the deadline of its answer, so that the deadline is reported."""


async def sampled(model: LanguageModel, request: SampleRequest) -> list[Completion]:
    """Draw ``request.n`` samples within the deadline of the answer.

    Raises:
        ModelError: The model was unreachable, refused, failed, or timed out.
    """
    left = time_left() + LATER_S
    if left < (request.timeout_s or math.inf):
        request = request.model_copy(update={"timeout_s": left})
    with model_call(model, request.n), foreign(f"model {model.name!r}", ModelError):
        return await model.sample(request)
