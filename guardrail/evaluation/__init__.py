"""Tests of one's own chatbot: is an answer grounded, in pytest, in CI and since the last run.

>>> from guardrail.evaluation import assert_grounded
>>> assert_grounded(
...     "The range of the Fjell 3 is 110 km.", ["The range of the Fjell 3 is 110 km."]
... ).claims
1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.core.lazy import loaded_on_use

if TYPE_CHECKING:
    from guardrail.evaluation.assertion import ajudge_answer, assert_grounded, judge_answer
    from guardrail.evaluation.assessment import Assessment, Requirement, assess

__all__ = [
    "Assessment",
    "Requirement",
    "ajudge_answer",
    "assert_grounded",
    "assess",
    "judge_answer",
]

# Loaded on first use: pytest imports this package at every start, with the plugin in it.
_HOMES = {
    "guardrail.evaluation.assessment": "Assessment Requirement assess",
    "guardrail.evaluation.assertion": "ajudge_answer assert_grounded judge_answer",
}

__getattr__, __dir__ = loaded_on_use(__name__, _HOMES)
