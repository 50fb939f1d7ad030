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

    def __init__(self, guarding: Guarding) -> None:
        self._guarding = guarding

    @abstractmethod
    async def __call__(self, body: JSON, guarding: Guarding | None = None) -> ProtocolReply:
        """Take a call's body, and how its caller is guarded where that differs.

        Raises:
            InputError: It is no call of the protocol.
        """
