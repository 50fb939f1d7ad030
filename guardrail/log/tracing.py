"""OpenTelemetry: a span per stage, metrics for scores and latency.

Only the API is needed; without an SDK nothing happens. Names follow OpenTelemetry's conventions for
generative AI; those without a convention begin with ``guardrail.``. Spans also carry the kinds that
Phoenix (OpenInference), Langfuse and LangSmith know. The tree of a check::

    guardrail.check
    ├── guardrail.parse
    ├── retrieval
    ├── guardrail.locate        (if the answer may name a wider place than the graph)
    ├── guardrail.attribute
    ├── guardrail.score
    └── guardrail.record

Spans contain no text of questions and answers, and of an error only its type.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from opentelemetry import metrics, trace
from opentelemetry.metrics import Counter, Histogram
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

if TYPE_CHECKING:
    from guardrail.models.base import LanguageModel

__all__ = ["NAME", "Instruments", "instruments", "log_failed", "model_call", "own", "stage"]

NAME: Final = "guardrail"
"""Scope of spans, events and metrics, and prefix of our own names."""
DURATION_BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
SCORE_BUCKETS = tuple(n / 20 for n in range(1, 21))

_GUARDRAIL = {
    "openinference.span.kind": "GUARDRAIL",
    "langfuse.observation.type": "guardrail",
    "langsmith.span.kind": "chain",
}
_RETRIEVER = {
    "gen_ai.operation.name": "retrieval",
    "openinference.span.kind": "RETRIEVER",
    "langfuse.observation.type": "retriever",
    "langsmith.span.kind": "retriever",
}
STAGES: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("check", "rank", "ask"), _GUARDRAIL),
    "retrieve": _RETRIEVER,
}
"""Attributes of a stage's span in the conventions and for readers of traces."""


def own(name: str) -> str:
    """A name without a convention, such as ``guardrail.policy``."""
    return f"{NAME}.{name}"


@contextmanager
def stage(name: str, **attributes: str | int | float | bool) -> Iterator[Span]:
    """Time one stage of the work: a span, and a point of ``guardrail.stage.duration``.

    Args:
        name: ``check``, ``retrieve``, ``attribute``, …; spans are ``guardrail.<name>``, except
            ``retrieval``.
        attributes: Set on the span as ``guardrail.<key>``.
    """
    title = "retrieval" if name == "retrieve" else own(name)
    known: dict[str, str | int | float] = dict(STAGES.get(name, {}))
    known |= {own(key): value for key, value in attributes.items()}
    with (
        _timed(instruments().stages, {own("stage"): name}),
        _span(title, SpanKind.INTERNAL, known) as span,
    ):
        yield span


@contextmanager
def model_call(model: LanguageModel, choices: int) -> Iterator[Span]:
    """A call of the language model: span ``chat MODEL`` and ``gen_ai.client.operation.duration``.

    Args:
        model: The model; the module of its class names the provider.
        choices: Number of answers requested.
    """
    labels = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model.name,
        "gen_ai.provider.name": type(model).__module__.rpartition(".")[2],
    }
    request: dict[str, str | int] = {**labels, "gen_ai.request.choice.count": choices}
    with (
        _timed(instruments().model_calls, labels),
        _span(f"chat {model.name}", SpanKind.CLIENT, request) as span,
    ):
        yield span


def log_failed(kind: str) -> None:
    """Count a response that could not be recorded.

    Args:
        kind: Type of the error.
    """
    instruments().failures.add(1, {"error.type": kind})


@contextmanager
def _timed(histogram: Histogram, labels: Mapping[str, str]) -> Iterator[None]:
    """Record the duration of a block, in seconds, with the type of its error."""
    begin = time.perf_counter()
    failed: dict[str, str] = {}
    try:
        yield
    except BaseException as error:
        failed = {"error.type": type(error).__name__}
        raise
    finally:
        histogram.record(time.perf_counter() - begin, {**labels, **failed})


@contextmanager
def _span(name: str, kind: SpanKind, attributes: Mapping[str, str | int | float]) -> Iterator[Span]:
    tracer = trace.get_tracer(NAME)
    with tracer.start_as_current_span(
        name, None, kind, attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except BaseException as error:  # a deadline cancels without an Exception
            span.set_attribute("error.type", type(error).__name__)
            # The type alone: the message of a retriever's error may contain the question.
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
    """The metrics, created on first use."""
    meter = metrics.get_meter(NAME)

    def seconds(name: str, description: str) -> Histogram:
        return meter.create_histogram(
            name, "s", description, explicit_bucket_boundaries_advisory=DURATION_BUCKETS_S
        )

    return Instruments(
        stages=seconds("guardrail.stage.duration", "Time spent in a stage, one point per batch."),
        model_calls=seconds("gen_ai.client.operation.duration", "Time of a model call."),
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
