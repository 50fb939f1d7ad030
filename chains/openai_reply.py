"""What is returned of a judged reply: its texts, their citations, and the verdicts behind it."""

from __future__ import annotations

from typing import NamedTuple

from chains.openai_wire import JSON
from chains.rendering import PlacedCitation, cited
from guardrail import GuardedAnswer
from guardrail.core.types import Action

__all__ = ["Outcome", "flat_annotation", "nested_annotation", "shown"]


class Outcome(NamedTuple):
    """A guarded reply.

    Attributes:
        body: The reply to return.
        answers: The verdicts behind it, best first; empty where nothing in it is an answer.
    """

    body: JSON
    answers: tuple[GuardedAnswer, ...]


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
