"""What the handlers of other gateways' protocols share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from chains.openai_wire import JSON
from chains.rendering import safe_reasons
from guardrail import GuardedAnswer, Policy

if TYPE_CHECKING:
    from chains.openai_request import GuardSettings

__all__ = ["Protocol", "ProtocolReply", "refusal_text"]

ProtocolReply = tuple[object, tuple[GuardedAnswer, ...]]
"""The reply as JSON, and the verdicts behind it."""


class Protocol(ABC):
    """Answers the calls of another gateway."""

    def policy_of(self, guarding: GuardSettings) -> Policy:
        """The policy that judges and counts the calls."""
        return guarding.policy

    async def model_of(self, body: JSON, owner: str) -> object:
        """The model that a call names, for routes by model; None if it names none.

        Args:
            body: Of the call.
            owner: Owner of the ids in it, as ``GuardSettings.owner``.
        """
        return body.get("model")

    @abstractmethod
    async def __call__(self, body: JSON, guarding: GuardSettings) -> ProtocolReply:
        """Answer a call.

        Raises:
            InputError: It is not a call of the protocol.
        """


def refusal_text(answer: GuardedAnswer, guarding: GuardSettings) -> str:
    """The policy's text for a refused answer, with reasons if ``guarding`` gives them."""
    reasons = "; ".join(safe_reasons(answer)) if guarding.reasons else ""
    return f"{answer.text} ({reasons})" if reasons else answer.text
