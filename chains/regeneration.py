"""Asking again: what a model is told of its failed answer."""

from __future__ import annotations

from guardrail import GuardedAnswer, feedback

__all__ = ["FEEDBACK", "retry_message"]

FEEDBACK = (
    "Some of your answer does not hold against the evidence:\n{problems}\n"
    "Answer the question again. Keep what is right, leave out or correct the rest."
)


def retry_message(answer: GuardedAnswer) -> str:
    """What the model is told before it tries again: the failed sentences, and why."""
    failed = feedback(answer.sentences)
    problems = "\n".join(f'- "{item.text}": {item.reason}' for item in failed)
    return FEEDBACK.format(problems=problems or "- it scored too low")
