"""What the handlers of other gateways' protocols share."""

from __future__ import annotations

from abc import ABC, abstractmethod

from chains.openai_text import JSON, Guarding
from guardrail import GuardedAnswer

__all__ = ["Protocol", "ProtocolReply"]

ProtocolReply = tuple[object, tuple[GuardedAnswer, ...]]
"""What is returned as JSON, and the verdicts behind it."""


class Protocol(ABC):
    """Answers the calls of another gateway."""

    @abstractmethod
    async def __call__(self, body: JSON, guarding: Guarding) -> ProtocolReply:
        """Take a call's body, and how the call is guarded.

        Raises:
            InputError: It is no call of the protocol.
        """
