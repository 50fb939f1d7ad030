"""The report's page: one HTML file that loads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from guardrail.core.types import Passage, Sentence, Span, SpanKind, Triple
from guardrail.log.entries import Record
from guardrail.report.summary import NO_CLAIM, Summary, TrendPoint

__all__ = ["page"]

REFRESH_S = 30
KINDS = ("supportive", "partially_supportive", "contradictory", "irrelevant", NO_CLAIM)
"""Categories in the order of the charts."""


class Piece(NamedTuple):
    """A part of a sentence; ``span`` is None for text outside all spans."""

    text: str
    span: Span | None


class Fact(NamedTuple):
    """A fact behind an answer."""

    triple: Triple
    supports: bool
    contradicts: bool


def page(summary: Summary, title: str, feedback_url: str | None = None) -> str:
    """The whole page.

    Args:
        summary: Its contents.
        title: Its heading.
        feedback_url: Where readers' feedback is posted. With one the page is live: it reloads
            itself every half minute while no answer is open.
    """
    return _template().render(
        summary=summary, title=title, feedback_url=feedback_url, refresh_s=REFRESH_S, kinds=KINDS
    )


@cache
def _template() -> Template:
    loader = PackageLoader("guardrail.report", "assets")
    env = Environment(loader=loader, autoescape=True, undefined=StrictUndefined,
                      trim_blocks=True, lstrip_blocks=True)  # fmt: skip
    env.filters |= {"number": _number, "short": _short, "ms": _ms, "anchor": _anchor}
    env.globals |= {
        "pieces": lambda sentence: list(_pieces(sentence)),
        "facts": _facts,
        "passages": lambda record: [e for e in record.answer.evidence if isinstance(e, Passage)],
        "asset": lambda name: Markup(loader.get_source(env, name)[0]),
        "trend_places": _trend_places,
    }
    return env.get_template("report.html")


def _number(value: float) -> str:
    """A number in few digits."""
    if value == int(value) and abs(value) >= 10:
        return f"{int(value):,}"
    return f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"


def _ms(value: float) -> str:
    return f"{value / 1000:.2f} s" if value >= 1000 else f"{value:.1f} ms"


def _short(text: str, most: int) -> str:
    """The beginning of a text, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def _anchor(record_id: str) -> str:
    """The answer's place in the page."""
    return "a-" + "".join(sign if sign.isalnum() else "-" for sign in record_id)


def _pieces(sentence: Sentence) -> Iterator[Piece]:
    """The sentence, cut at its spans; a span that overlaps an earlier one is left out."""
    at = 0
    for span in sentence.spans:
        start, end = span.start - sentence.start, span.end - sentence.start
        if at <= start and end <= len(sentence.text):
            yield Piece(sentence.text[at:start], None)
            yield Piece(sentence.text[start:end], span)
            at = end
    yield Piece(sentence.text[at:], None)


def _facts(record: Record) -> list[Fact]:
    """The triples that shown sentences cite, and those that contradict one."""
    spans = [span for sentence in record.answer.sentences for span in sentence.spans]
    cited = {citation for sentence in record.answer.sentences for citation in sentence.citations}
    supporting = {
        item.triple for item in spans if item.triple and item.kind is not SpanKind.CONTRADICTED
    } | {
        item for item in record.answer.evidence
        if isinstance(item, Triple) and item.citation in cited
    }  # fmt: skip
    against = {item.triple for item in spans if item.triple and item.kind is SpanKind.CONTRADICTED}
    return [
        Fact(triple, triple in supporting, triple in against)
        for triple in sorted(supporting | against, key=lambda item: (item.subject, item.property))
    ]


def _trend_places(points: Sequence[TrendPoint]) -> list[float]:
    """The times of points, from 0 to 1; a single one is in the middle."""
    first, span = points[0].start, points[-1].start - points[0].start
    return [(point.start - first) / span if span else 0.5 for point in points]
