"""Tests for your chatbot: are its answers grounded, in pytest, in CI, and compared with last time.

>>> from guardrail.evaluation import assert_grounded
>>> assert_grounded(
...     "The range of the Fjell 3 is 110 km.", ["The range of the Fjell 3 is 110 km."]
... ).claims
1
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from guardrail.core.lazy import loaded_on_use

if TYPE_CHECKING:
    from guardrail.core.types import GuardedAnswer
    from guardrail.evaluation.assertion import (
        Assessment,
        Requirement,
        ajudge_answer,
        assert_grounded,
        assess,
        judge_answer,
    )

__all__ = [
    "Assessment", "Requirement", "ajudge_answer", "assert_grounded", "assess", "judge_answer",
]  # fmt: skip

observers: list[Callable[[GuardedAnswer, Assessment], None]] = []
"""The last one is called with each asserted answer. The pytest plugin adds one while a test runs;
it is no context variable, because a test may assert in a thread of its own."""

# Loaded on first use: pytest imports this package with the plugin at every start.
__getattr__, __dir__ = loaded_on_use(
    __name__, {"guardrail.evaluation.assertion": " ".join(__all__)}
)
