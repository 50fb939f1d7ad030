"""A marked stretch of a system or user message, as ``<context>…</context>``."""

from __future__ import annotations

from collections.abc import Iterable

from chains.evidence.base import EvidenceSettings, Found, Source
from guardrail.core.types import Passage
from guardrail.sources.tables import few_enough

__all__ = ["marked_evidence", "without_marked"]


def marked_evidence(texts: Iterable[str], settings: EvidenceSettings) -> Found:
    """The marked stretches of texts, each a passage; nothing where none is looked for."""
    if settings.marks is None:
        return Found()
    stretches = [stretch for text in texts for stretch in _split(text, settings.marks)[1]]
    if not stretches:
        return Found()
    few_enough(len(stretches), "the marked text")
    passages = [Passage(text=item.strip()) for item in stretches if item.strip()]
    return Found.of(Source.MARKED, passages)


def without_marked(text: str, settings: EvidenceSettings) -> str:
    """A text without its marked stretches, for reading the question in it."""
    return text if settings.marks is None else _split(text, settings.marks)[0]


def _split(text: str, marks: tuple[str, str]) -> tuple[str, list[str]]:
    """What stands outside the marks, and the stretches within; one that is not closed is none."""
    opening, closing = marks
    outside, inside = [], []
    position = 0
    while (start := text.find(opening, position)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        outside.append(text[position:start])
        inside.append(text[start + len(opening) : end])
        position = end + len(closing)
    return "".join([*outside, text[position:]]), inside
