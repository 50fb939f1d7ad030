"""Asking again: what a model is told of its failed answer."""

from __future__ import annotations

from guardrail import GuardedAnswer
from guardrail.policy import feedback
from guardrail.types import AttributedAnswer

__all__ = ["FEEDBACK", "retry_message"]

FEEDBACK = (
    "Some of your answer does not hold against the evidence:\n{problems}\n"
    "Answer the question again. Keep what is right, leave out or correct the rest."
)


def retry_message(answer: GuardedAnswer) -> str:
    """What the model is told before it tries again: the failed sentences, and why."""
    attributed = AttributedAnswer(
        text=answer.text, marked=answer.marked, sentences=answer.sentences
    )
    problems = "\n".join(f'- "{failed.text}": {failed.reason}' for failed in feedback(attributed))
    return FEEDBACK.format(problems=problems or "- it scored too low")
