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
from guardrail.log.records import SQLiteLog
from guardrail.report.page import page
from guardrail.report.summary import Summary, summarise

__all__ = ["Summary", "dashboard_html", "read_feedback", "report_html", "summarise"]

DASHBOARD_RECORDS = 2000
"""Newest answers that the dashboard covers, so that it is built in a second or two."""
DASHBOARD_ANSWERS = 100


def report_html(
    log: SQLiteLog, where: RecordFilter | None = None, *, title: str = "Guardrail report"
) -> str:
    """A page on all records that meet the conditions.

    Args:
        log: The score log.
        where: Which records.
        title: The page's heading.

    Raises:
        RecordError: The log cannot be read.
    """
    return page(summarise(log, where), title)


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
    summary = summarise(log, where, latest=DASHBOARD_RECORDS, shown=DASHBOARD_ANSWERS)
    return page(summary, title, feedback_url)


def read_feedback(body: str | bytes) -> Feedback:
    """Read what the dashboard's buttons post.

    Args:
        body: JSON of ``{record_id, sentence?, thumb?, correction?}``.

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
