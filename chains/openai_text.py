"""One text of a model's reply under the guardrail, whole or as it streams in."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from chains.rendition import MarkerStyle
from chains.streaming import Release, SentenceGate, StreamMode
from guardrail import STRICT, Action, GuardedAnswer, Guardrail, Policy
from guardrail.errors import ModelError

__all__ = [
    "JSON",
    "Guarding",
    "StreamedText",
    "UnreadableReplyError",
    "guard_refusal",
    "is_json_document",
    "text_of",
]

JSON = dict[str, Any]
"""An object of the OpenAI protocol, as it stands on the wire."""

JSON_FORMATS = frozenset({"json_object", "json_schema"})


class UnreadableReplyError(ModelError):
    """The model's server answered with something that is not of the OpenAI protocol."""


@dataclass(frozen=True, kw_only=True)
class Guarding:
    """How replies are guarded.

    Attributes:
        guard: The guardrail.
        policy: ``candidates`` are sampled and ranked, ``attempts`` bounds the rounds.
        style: How markers look in the returned text.
        mode: When streamed text is released.
    """

    guard: Guardrail
    policy: Policy = STRICT
    style: MarkerStyle = MarkerStyle.KALMA
    mode: StreamMode = StreamMode.SENTENCE

    @property
    def whole_only(self) -> bool:
        """Whether a stream must wait for the whole answer: to be ranked or asked for again."""
        return (
            self.mode is StreamMode.BUFFER or self.policy.candidates > 1 or self.policy.attempts > 1
        )


class StreamedText:
    """A text that is streamed in, held back until it has been judged.

    Args:
        guarding: How it is judged.
        question: What it answers.
        data: Whether a JSON document was asked for. One that is complete is data, not an
            answer, and leaves as it is; anything else that came in its place is judged.
    """

    def __init__(self, guarding: Guarding, question: str, *, data: bool) -> None:
        self._data = data
        self._raw = ""
        self._gate = SentenceGate(
            guarding.guard,
            question,
            policy=guarding.policy.settled(),
            mode=StreamMode.BUFFER if data else guarding.mode,
            style=guarding.style,
        )

    async def feed(self, piece: str) -> Release:
        """Take text; release what is judged."""
        if self._data:
            self._raw += piece
            return Release("")
        return await self._gate.feed(piece)

    async def finish(self) -> Release:
        """Release what is left, with the verdict."""
        if self._data:
            if is_json_document(self._raw):
                return Release(self._raw)
            await self._gate.feed(self._raw)
        return await self._gate.finish()


async def guard_refusal(guarding: Guarding, question: str, text: str) -> str:
    """A model's refusal, without what the policy removes from it."""
    answer = await guarding.guard.acheck(
        question=question, answer=text, policy=guarding.policy.settled(), record=False
    )
    return answer.text


def is_json_document(text: str) -> bool:
    """Whether a text as a whole is a JSON object or array."""
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


def wants_json(response_format: Any) -> bool:
    """Whether a request's format asks for JSON."""
    return isinstance(response_format, dict) and response_format.get("type") in JSON_FORMATS


def text_of(content: Any) -> str:
    """The text of a message's content: a string, or parts of which those with text count."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [
        part if isinstance(part, str) else part.get("text")
        for part in content
        if isinstance(part, str | dict)
    ]
    return " ".join(text for text in texts if isinstance(text, str) and text)


def shown(text: str, answer: GuardedAnswer | None, *, calls_tools: bool) -> str | None:
    """The text to return; None for words beside a tool call that were refused.

    A refusal belongs where an answer is expected; beside a tool call there is none yet.
    """
    if calls_tools and answer is not None and answer.action is Action.REFUSE:
        return None
    return text
