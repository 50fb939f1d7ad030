"""The score log as one self-contained HTML page, and as a live dashboard.

>>> from guardrail.log.records import open_log
>>> from guardrail.report import report_html
>>> html = report_html(open_log("scores.sqlite", read_only=True))  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup
from pydantic import ValidationError

from guardrail.core.errors import InputError
from guardrail.core.fields import field_problems
from guardrail.core.types import Passage, Sentence, Span, SpanKind, Triple
from guardrail.log.entries import Feedback, Record, RecordFilter
from guardrail.log.records import SQLiteLog
from guardrail.report.summary import NO_CLAIM, Summary, TrendPoint, summarise

__all__ = ["Summary", "dashboard_html", "read_feedback", "report_html", "summarise"]


def report_html(
    log: SQLiteLog, where: RecordFilter | None = None, *, title: str = "Guardrail report"
) -> str:
    """A page on all records that meet the conditions; raises RecordError."""
    return _page(summarise(log, where), title)


def dashboard_html(
    log: SQLiteLog,
    *,
    feedback_url: str = "/v1/feedback",
    title: str = "Guardrail dashboard",
    tag: str | None = None,
) -> str:
    """The page on the newest answers, which reloads itself and takes readers' feedback.

    Args:
        log: The score log.
        feedback_url: Where the page posts feedback, ``{record_id, sentence, thumb, correction}``.
        title: The page's heading.
        tag: Only records with this tag, ``name=value``; None for all.

    Raises:
        RecordError: The log cannot be read.
    """
    where = RecordFilter(tag=tag)
    # So many that the dashboard is built in a second or two
    summary = summarise(log, where, latest=2000, shown=100)
    return _page(summary, title, feedback_url)


def read_feedback(body: str | bytes) -> Feedback:
    """Read what the dashboard's buttons post: ``{record_id, sentence?, thumb?, correction?}``.

    Raises:
        InputError: It is not feedback, or neither thumb nor correction is given.
    """
    try:
        feedback = Feedback.model_validate_json(body)
    except ValidationError as error:
        raise InputError(f"this is no feedback: {field_problems(Feedback, error)}") from error
    if feedback.thumb == 0 and not (feedback.correction or "").strip():
        raise InputError("this is no feedback: give a thumb of 1 or -1, or a correction")
    return feedback


def _page(summary: Summary, title: str, feedback_url: str | None = None) -> str:
    """The page; with ``feedback_url`` it reloads itself while no answer is open."""
    return _template().render(
        summary=summary,
        title=title,
        feedback_url=feedback_url,
        refresh_s=30,
        kinds=("supportive", "partially_supportive", "contradictory", "irrelevant", NO_CLAIM),
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


def _pieces(sentence: Sentence) -> Iterator[dict[str, str | Span | None]]:
    """The sentence, cut at its spans; a span that overlaps an earlier one is left out."""
    at = 0
    for span in sentence.spans:
        start, end = span.start - sentence.start, span.end - sentence.start
        if at <= start and end <= len(sentence.text):
            yield {"text": sentence.text[at:start], "span": None}
            yield {"text": sentence.text[start:end], "span": span}
            at = end
    yield {"text": sentence.text[at:], "span": None}


def _facts(record: Record) -> list[dict[str, Triple | bool]]:
    """The triples that shown sentences cite, and those that contradict one."""
    sentences = record.answer.sentences
    spans = [span for sentence in sentences for span in sentence.spans if span.triple]
    cited = {citation for sentence in sentences for citation in sentence.citations}
    triples = [item for item in record.answer.evidence if isinstance(item, Triple)]
    against = {span.triple for span in spans if span.kind is SpanKind.CONTRADICTED}
    supporting = {span.triple for span in spans if span.kind is not SpanKind.CONTRADICTED}
    supporting |= {item for item in triples if item.citation in cited}
    return [
        {"triple": triple, "supports": triple in supporting, "contradicts": triple in against}
        for triple in sorted(
            filter(None, supporting | against), key=lambda item: (item.subject, item.property)
        )
    ]


def _trend_places(points: Sequence[TrendPoint]) -> list[float]:
    """The times of points, from 0 to 1; a single one is in the middle."""
    first, span = points[0].start, points[-1].start - points[0].start
    return [(point.start - first) / span if span else 0.5 for point in points]
