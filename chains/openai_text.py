"""One text of a model's reply under the guardrail, whole or as it streams in."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from chains.caller import CallerRights
from chains.evidence.base import Case, EvidenceSettings
from chains.evidence.earlier import EarlierAnswers
from chains.openai_parts import text_of
from chains.rendition import MarkerStyle, PlacedCitation
from chains.streaming import Release, SentenceGate, StreamMode
from guardrail import ANNOTATE, STRICT, Action, GuardedAnswer, Guardrail, Policy
from guardrail.core.errors import ModelError
from guardrail.core.types import Passage

__all__ = [
    "JSON",
    "Guarding",
    "StreamedText",
    "UnreadableReplyError",
    "cited",
    "guard_refusal",
    "is_json_document",
    "text_of",
]

JSON = dict[str, Any]
"""An object of the OpenAI protocol, as it stands on the wire."""


class UnreadableReplyError(ModelError):
    """The model's server answered with something that is not of the OpenAI protocol."""


@dataclass(frozen=True, kw_only=True)
class Guarding:
    """How replies are guarded.

    Attributes:
        guard: The guardrail.
        policy: ``candidates`` are sampled and ranked, ``attempts`` bounds the rounds.
        checks_policy: Of texts that a caller has already, and asks a verdict on.
        style: How markers look in the returned text.
        mode: When streamed text is released.
        evidence: Where evidence is looked for in requests.
        reasons: Whether refused and filtered answers carry their reasons (field ``guardrail``).
        rights: What is taken from a request beside what it asks.
        owner: Whose ids a request names, such as those of LiteLLM's calls; no other owner's
            request reads what they stand for.
        earlier: What earlier answers rest on, for the turns that refer to them.
    """

    guard: Guardrail
    policy: Policy = STRICT
    checks_policy: Policy = ANNOTATE
    style: MarkerStyle = MarkerStyle.KALMA
    mode: StreamMode = StreamMode.SENTENCE
    evidence: EvidenceSettings = field(default_factory=EvidenceSettings)
    reasons: bool = True
    rights: CallerRights = field(default_factory=CallerRights)
    owner: str = ""
    earlier: EarlierAnswers = field(default_factory=EarlierAnswers)

    @property
    def whole_only(self) -> bool:
        """Whether a stream must wait for the whole reply.

        It must where answers are ranked or asked for again, and where JSON is judged.
        """
        if self.policy.dry_run:
            return self.policy.structured
        return (
            self.mode is StreamMode.BUFFER
            or self.policy.candidates > 1
            or self.policy.attempts > 1
            or self.policy.structured
        )


class StreamedText:
    """A text that is streamed in, held back until it has been judged.

    Args:
        guarding: How it is judged.
        case: Gives what it answers and is judged against, once the first text is there.
        data: Whether a JSON document was asked for. One that is complete is data, not an
            answer, and leaves as it is; anything else that came in its place is judged.
    """

    def __init__(
        self, guarding: Guarding, case: Callable[[], Awaitable[Case]], *, data: bool
    ) -> None:
        self._data = data
        self._ended = False
        self._dry_run = guarding.policy.dry_run
        self._raw = ""
        self._gate = SentenceGate(
            guarding.guard,
            case,
            policy=guarding.policy.settled(),
            mode=StreamMode.BUFFER if data else guarding.mode,
            style=guarding.style,
        )

    async def feed(self, piece: str) -> Release:
        """Take text; release what is judged.

        Raises:
            UnreadableReplyError: The text had ended, and its verdict was told.
        """
        if self._ended and piece.strip():
            raise UnreadableReplyError("the model's server sent text behind the end of its answer")
        if self._data:
            self._raw += piece
            return Release(piece if self._dry_run else "")
        return await self._gate.feed(piece)

    async def finish(self) -> Release:
        """Release what is left, with the verdict."""
        if self._data:
            if is_json_document(self._raw):
                self._ended = True
                return Release("" if self._dry_run else self._raw)
            await self._gate.feed(self._raw)
        release = await self._gate.finish()
        self._ended = True  # not before: what ran out of time is still to be judged
        return release


async def guard_refusal(guarding: Guarding, case: Case, text: str) -> str:
    """A model's refusal, without what the policy removes from it."""
    answer = await case.check(guarding.guard, text, guarding.policy.settled(), record=False)
    return text if answer.dry_run else answer.text


def is_json_document(text: str) -> bool:
    """Whether a text as a whole is a JSON object or array, without what is none (``NaN``)."""
    try:
        return isinstance(json.loads(text, parse_constant=_no_json), dict | list)
    except (ValueError, RecursionError):
        return False


def _no_json(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def shown(text: str, answer: GuardedAnswer | None, *, calls_tools: bool) -> str | None:
    """The text to return; None for words beside a tool call that were refused.

    A refusal belongs where an answer is expected; beside a tool call there is none yet.
    """
    if calls_tools and answer is not None and answer.action is Action.REFUSE:
        return None
    return text


def cited(citation: PlacedCitation) -> JSON:
    """What an annotation says beside the protocol's fields: the triple, or the passage's id."""
    if isinstance(citation.evidence, Passage):
        note: JSON = {"passage": {"id": citation.evidence.id, "title": citation.evidence.title}}
        return note | ({"note": citation.note} if citation.note else {})
    return {"triple": citation.citation.model_dump()}
