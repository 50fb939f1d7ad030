"""What the tool ``check_answer`` of the MCP server replies."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from chains.rendering import details, render
from chains.styles import MarkerStyle
from guardrail.core.types import (
    Action,
    Category,
    Correction,
    GuardedAnswer,
    Sentence,
    Span,
    SpanKind,
    Value,
)

__all__ = ["CheckReply"]


class ToldSpan(Value):
    """A phrase, and what the evidence says of it."""

    text: str
    start: int
    end: int
    kind: SpanKind
    triple: tuple[str, str, str] | None
    instead_of: str | None

    @classmethod
    def of(cls, span: Span) -> Self:
        """What is told of a span."""
        fact = span.triple
        return cls(
            text=span.text,
            start=span.start,
            end=span.end,
            kind=span.kind,
            triple=(fact.subject, fact.property, fact.value) if fact else None,
            instead_of=span.instead_of,
        )


class ToldSentence(Value):
    """A sentence of the text, and its verdict."""

    text: str
    start: int
    end: int
    category: Category | None
    supported: bool
    note: str | None
    spans: tuple[ToldSpan, ...]
    correction: Correction | None

    @classmethod
    def of(cls, sentence: Sentence) -> Self:
        """What is told of a sentence."""
        return cls(
            text=sentence.text,
            start=sentence.start,
            end=sentence.end,
            category=sentence.category,
            supported=sentence.category is Category.SUPPORTIVE and not sentence.na,
            note=sentence.note,
            spans=tuple(map(ToldSpan.of, sentence.spans)),
            correction=sentence.correction,
        )


class RemovedSentence(Value):
    """Where a sentence stood that was taken out, and why; what it said is not told again."""

    start: int = Field(description="Offset in the answer as it was given, without its markers.")
    end: int
    category: Category | None
    note: str | None
    against: tuple[str, ...]


class ToldCitation(Value):
    """A note, and where it stands in ``text``."""

    title: str
    url: str | None
    start: int
    end: int


class CheckReply(Value):
    """The verdict on an answer."""

    action: Action
    would: Action | None = Field(description="What a dry run would have done.")
    text: str = Field(description="The answer to give, with its notes.")
    clean: str = Field(description="The same without notes; sentences and spans are places in it.")
    sentences: tuple[ToldSentence, ...]
    removed: tuple[RemovedSentence, ...]
    citations: tuple[ToldCitation, ...]
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, checked: GuardedAnswer) -> Self:
        """The reply to a check."""
        rendition = render(checked, MarkerStyle.FOOTNOTES)
        reasons = details(checked).get("reasons", ())
        return cls(
            action=checked.action,
            would=checked.would,
            text=rendition.text,
            clean=checked.text,
            sentences=tuple(map(ToldSentence.of, checked.sentences)),
            removed=tuple(
                RemovedSentence(
                    start=item.start,
                    end=item.end,
                    category=item.category,
                    note=item.note,
                    against=item.against,
                )
                for item in checked.removed
            ),
            citations=tuple(
                ToldCitation(title=item.title, url=item.url, start=item.start, end=item.end)
                for item in rendition.citations
            ),
            reasons=tuple(reasons) if isinstance(reasons, list) else (),
        )
