"""What every text of a model's reply needs: how it is guarded, what is JSON, how it is cited."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from chains.caller import CallerRights
from chains.evidence.base import Case, EvidenceSettings
from chains.evidence.earlier import EarlierAnswers
from chains.rendition import MarkerStyle, PlacedCitation, cited
from chains.streaming import StreamMode
from guardrail import ANNOTATE, STRICT, Action, GuardedAnswer, Guardrail, Policy
from guardrail.core.errors import ModelError

__all__ = [
    "JSON",
    "Guarding",
    "UnreadableReplyError",
    "flat_annotation",
    "guard_refusal",
    "is_json_document",
    "nested_annotation",
    "shown",
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


def flat_annotation(citation: PlacedCitation) -> JSON:
    """A citation as responses write it; offsets index the returned text."""
    return {"type": "url_citation", **_place(citation), **cited(citation)}


def nested_annotation(citation: PlacedCitation) -> JSON:
    """A citation as chat completions write it; see ``flat_annotation``."""
    return {"type": "url_citation", "url_citation": _place(citation), **cited(citation)}


def _place(citation: PlacedCitation) -> JSON:
    """Where there is no page to open the address is empty: the title says what is cited."""
    return {
        "start_index": citation.start,
        "end_index": citation.end,
        "title": citation.title,
        "url": citation.url or "",
    }
