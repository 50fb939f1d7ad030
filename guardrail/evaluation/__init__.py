"""Tests of one's own chatbot: is an answer grounded, in pytest, in CI and since the last run.

>>> from guardrail.evaluation import assert_grounded
>>> assert_grounded(
...     "The range of the Fjell 3 is 110 km.", ["The range of the Fjell 3 is 110 km."]
... ).claims
1
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

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
_HOME = {
    "Assessment": "guardrail.evaluation.assessment",
    "Requirement": "guardrail.evaluation.assessment",
    "ajudge_answer": "guardrail.evaluation.assertion",
    "assert_grounded": "guardrail.evaluation.assertion",
    "assess": "guardrail.evaluation.assessment",
    "judge_answer": "guardrail.evaluation.assertion",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
