"""What the handlers of other gateways' protocols share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from chains.openai_wire import JSON
from chains.rendering import safe_reasons
from guardrail import GuardedAnswer, Policy

if TYPE_CHECKING:
    from chains.openai_text import Guarding

__all__ = ["Protocol", "ProtocolReply", "refusal_text"]

ProtocolReply = tuple[object, tuple[GuardedAnswer, ...]]
"""What is returned as JSON, and the verdicts behind it."""


class Protocol(ABC):
    """Answers the calls of another gateway."""

    def policy_of(self, guarding: Guarding) -> Policy:
        """Give the policy by which the calls of the protocol are judged, and counted.

        Args:
            guarding: How the caller is guarded.
        """
        return guarding.policy

    async def model_of(self, body: JSON, owner: str) -> object:
        """Tell what a call names as the model, for routes by model; None where it names none.

        Args:
            body: Of the call.
            owner: Whose call it is, as ``Guarding.owner``.
        """
        return body.get("model")

    @abstractmethod
    async def __call__(self, body: JSON, guarding: Guarding) -> ProtocolReply:
        """Take a call's body, and how the call is guarded.

        Raises:
            InputError: It is no call of the protocol.
        """


def refusal_text(answer: GuardedAnswer, guarding: Guarding) -> str:
    """What may be told of an answer that was refused: the policy's words, and why where it may.

    Args:
        answer: An answer that was refused.
        guarding: How the caller is guarded; its ``reasons`` says whether they are told.
    """
    reasons = "; ".join(safe_reasons(answer)) if guarding.reasons else ""
    return f"{answer.text} ({reasons})" if reasons else answer.text
