"""The score log as one self-contained HTML page, and as a live dashboard.

>>> from guardrail.log.records import open_log
>>> from guardrail.report import report_html
>>> html = report_html(open_log("scores.sqlite", read_only=True))  # doctest: +SKIP
"""

from __future__ import annotations

from pydantic import ValidationError

from guardrail.core.errors import InputError
from guardrail.core.fields import field_problems
from guardrail.log.entries import Feedback, RecordFilter
from guardrail.log.records import JSONLinesLog, Readable, SQLiteLog
from guardrail.report.page import page
from guardrail.report.summary import Summary, summarise

__all__ = [
    "Summary",
    "dashboard_html",
    "read_feedback",
    "report_html",
    "summarise",
]

LIVE_RECORDS = 2000
"""The dashboard looks at the newest answers alone, so that it is there in a second or two."""


def report_html(
    log: Readable,
    where: RecordFilter | None = None,
    *,
    title: str = "Guardrail report",
    answers: int = 200,
) -> str:
    """A page on all records that meet the conditions, read once, whatever their number.

    Args:
        log: The score log.
        where: Which records.
        title: The page's heading.
        answers: Answers shown whole: three quarters the worst, the rest the most recent.

    Raises:
        RecordError: The log cannot be read.
    """
    worst = 3 * answers // 4
    summary = summarise(log.records(where), log.feedback(), worst=worst, recent=answers - worst)
    return page(summary, title)


def dashboard_html(
    log: SQLiteLog | JSONLinesLog,
    *,
    feedback_url: str = "/v1/feedback",
    latest: int = LIVE_RECORDS,
    title: str = "Guardrail dashboard",
    tag: str | None = None,
) -> str:
    """The page on the newest answers, which reloads itself and takes readers' feedback.

    Args:
        log: The score log.
        feedback_url: Where the page posts feedback: the JSON of ``guardrail.log.records.Feedback``,
            ``{record_id, sentence, thumb, correction}``, for ``log.write_feedback``.
        latest: Number of answers looked at.
        title: The page's heading.
        tag: ``name=value`` among the tags of the records that are shown; None for all.

    Raises:
        RecordError: The log cannot be read.
    """
    records = log.latest(latest, RecordFilter(tag=tag))
    summary = summarise(records, log.feedback(), worst=40, recent=60)
    return page(summary, title, feedback_url)


def read_feedback(body: str | bytes) -> Feedback:
    """Read what the dashboard's buttons post.

    Args:
        body: JSON of ``{record_id, sentence?, thumb?, correction?}``.

    Raises:
        InputError: It is no feedback, or says nothing.
    """
    try:
        feedback = Feedback.model_validate_json(body)
    except ValidationError as error:
        raise InputError(f"this is no feedback: {field_problems(Feedback, error)}") from error
    if feedback.thumb == 0 and not (feedback.correction or "").strip():
        raise InputError("this is no feedback: give a thumb of 1 or -1, or a correction")
    return feedback
