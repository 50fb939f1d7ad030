"""OpenTelemetry: a span per stage, and metrics for scores and latency.

Only the API is needed; without an SDK all of it does nothing. Names are those of
``guardrail.log.conventions``.
The tree of a check::

    guardrail.check
    ├── guardrail.parse
    ├── retrieval
    ├── guardrail.locate        (where an answer may tell a wider place than the graph)
    ├── guardrail.attribute
    ├── guardrail.score
    └── guardrail.record

Spans hold no text of questions and answers, and of an error its type alone; what they say belongs
in the score log, which redacts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from opentelemetry import metrics, trace
from opentelemetry.metrics import Counter, Histogram
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from guardrail.log import conventions
from guardrail.log.conventions import NAME, own

if TYPE_CHECKING:
    from guardrail.models.base import LanguageModel

__all__ = ["Instruments", "instruments", "log_failed", "model_call", "stage"]

DURATION_BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
SCORE_BUCKETS = tuple(n / 20 for n in range(1, 21))


@contextmanager
def stage(name: str, **attributes: str | int | float | bool) -> Iterator[Span]:
    """Time one stage of the work: a span, and a point of ``guardrail.stage.duration``.

    Args:
        name: ``check``, ``retrieve``, ``attribute``, …; spans are ``guardrail.<name>`` unless
            the conventions have a name.
        attributes: Set on the span as ``guardrail.<key>``.
    """
    title, known = conventions.STAGE_NAMES.get(name, (own(name), {}))
    known = {**known, **conventions.STAGE_READERS.get(name, {})}
    extra = {own(key): value for key, value in attributes.items()}
    begin = time.perf_counter()
    failed: str | None = None
    try:
        with _span(title, SpanKind.INTERNAL, {**known, **extra}) as span:
            yield span
    except BaseException as error:
        failed = type(error).__name__
        raise
    finally:
        labels = {own("stage"): name} | ({"error.type": failed} if failed else {})
        instruments().stages.record(time.perf_counter() - begin, labels)


@contextmanager
def model_call(model: LanguageModel, choices: int) -> Iterator[Span]:
    """A call of the language model: span ``chat MODEL`` and ``gen_ai.client.operation.duration``.

    Args:
        model: The model; the module of its class names the provider.
        choices: Answers asked for.
    """
    labels: dict[str, str | int] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model.name,
        "gen_ai.provider.name": type(model).__module__.rpartition(".")[2],
    }
    begin = time.perf_counter()
    failed: str | None = None
    try:
        asked = {**labels, "gen_ai.request.choice.count": choices}
        with _span(f"chat {model.name}", SpanKind.CLIENT, asked) as span:
            yield span
    except BaseException as error:
        failed = type(error).__name__
        raise
    finally:
        if failed:
            labels["error.type"] = failed
        instruments().model_calls.record(time.perf_counter() - begin, labels)


def log_failed(kind: str) -> None:
    """Count a response that could not be recorded.

    Args:
        kind: Type of the error.
    """
    instruments().failures.add(1, {"error.type": kind})


@contextmanager
def _span(name: str, kind: SpanKind, attributes: Mapping[str, str | int | float]) -> Iterator[Span]:
    tracer = trace.get_tracer(NAME)
    with tracer.start_as_current_span(
        name, None, kind, attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except BaseException as error:  # a deadline cancels with no Exception
            span.set_attribute("error.type", type(error).__name__)
            # Its type alone: the message of a retriever's error may hold the question.
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            if isinstance(error, Exception):
                span.add_event("exception", {"exception.type": type(error).__name__})
            raise


class Instruments(NamedTuple):
    """The metrics of this process."""

    stages: Histogram
    model_calls: Histogram
    scores: Histogram
    answers: Counter
    sentences: Counter
    problems: Counter
    failures: Counter


@cache
def instruments() -> Instruments:
    """The metrics, made when they are first asked for."""
    meter = metrics.get_meter(NAME)

    def seconds(name: str, description: str) -> Histogram:
        return meter.create_histogram(
            name, "s", description, explicit_bucket_boundaries_advisory=DURATION_BUCKETS_S
        )

    return Instruments(
        stages=seconds("guardrail.stage.duration", "Time spent in a stage, one batch a point."),
        model_calls=seconds(conventions.MODEL_CALL_DURATION, "Time of a model call."),
        scores=meter.create_histogram(
            "guardrail.score",
            "1",
            "Scores of answers by name.",
            explicit_bucket_boundaries_advisory=SCORE_BUCKETS,
        ),
        answers=meter.create_counter("guardrail.answers", "{answer}", "Answers by action."),
        sentences=meter.create_counter("guardrail.sentences", "{sentence}", "By category."),
        problems=meter.create_counter("guardrail.problems", "{problem}", "Problems by part."),
        failures=meter.create_counter(
            "guardrail.log.failures", "{answer}", "Answers that could not be recorded."
        ),
    )
