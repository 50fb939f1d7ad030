"""Asking again: what a model is told of its failed answer, and what counts once it cannot be."""

from __future__ import annotations

from guardrail import Action, GuardedAnswer, Policy
from guardrail.policy import feedback
from guardrail.types import AttributedAnswer

__all__ = ["FEEDBACK", "retry_message", "settled"]

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


def settled(policy: Policy) -> Policy:
    """The policy for an answer that cannot be asked for again.

    Wherever it would regenerate, it does what it names for exhausted attempts; so its action is
    never ``regenerate``, whose text is the unfiltered answer.
    """
    instead = Action.ANNOTATE if policy.exhausted is Action.REGENERATE else policy.exhausted
    changes = {
        field: instead
        for field in ("contradicted", "unsupported", "below")
        if getattr(policy, field) is Action.REGENERATE
    }
    return policy.model_copy(update=changes)
