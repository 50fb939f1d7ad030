"""OpenTelemetry: a span per stage, metrics, and an answer's verdicts and scores as evaluations.

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
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final

from opentelemetry import metrics, trace
from opentelemetry._logs import LogRecord, SeverityNumber, get_logger
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from pydantic import Field, FiniteFloat

from guardrail.core.types import GuardedAnswer, Value

if TYPE_CHECKING:
    from guardrail.models.base import LanguageModel

NAME: Final = "guardrail"
"""Scope of spans, events and metrics."""
STAGES: Mapping[str, Mapping[str, str]] = {
    **{
        name: {
            "openinference.span.kind": "GUARDRAIL",
            "langfuse.observation.type": "guardrail",
            "langsmith.span.kind": "chain",
        }
        for name in ("check", "rank", "ask")
    },
    "retrieve": {
        "gen_ai.operation.name": "retrieval",
        "openinference.span.kind": "RETRIEVER",
        "langfuse.observation.type": "retriever",
        "langsmith.span.kind": "retriever",
    },
}
"""Attributes of a stage's span in the conventions and for readers of traces."""


def stage(name: str, **attributes: str | int | float | bool) -> AbstractContextManager[Span]:
    """Time one stage of the work: a span, and a point of ``guardrail.stage.duration``.

    Spans are ``guardrail.<name>``, except ``retrieval``; attributes become ``guardrail.<key>``.
    """
    title = "retrieval" if name == "retrieve" else f"guardrail.{name}"
    known: dict[str, str | int | float] = dict(STAGES.get(name, {}))
    for key, value in attributes.items():
        known[f"guardrail.{key}"] = value
    metric = ("guardrail.stage.duration", "s", "Time of a stage, one point per batch.")
    return _timed(title, SpanKind.INTERNAL, known, metric, {"guardrail.stage": name})


def model_call(model: LanguageModel, choices: int) -> AbstractContextManager[Span]:
    """A call of the language model: span ``chat MODEL`` and ``gen_ai.client.operation.duration``.

    The module of the model's class names the provider.
    """
    labels = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model.name,
        "gen_ai.provider.name": type(model).__module__.rpartition(".")[2],
    }
    request: dict[str, str | int] = {**labels, "gen_ai.request.choice.count": choices}
    metric = ("gen_ai.client.operation.duration", "s", "Time of a model call.")
    return _timed(f"chat {model.name}", SpanKind.CLIENT, request, metric, labels)


def log_failed(kind: str) -> None:
    """Count a response that could not be recorded, by the type of the error."""
    failures = _counter("guardrail.log.failures", "{answer}", "Answers that were not recorded.")
    failures.add(1, {"error.type": kind})


class Evaluation(Value):
    """One score or verdict, of an answer or of one of its sentences.

    Attributes:
        name: ``groundedness`` of a sentence; ``verdict``, ``overall`` or a score of an answer.
        explanation: Counts and names of checks; never words of the answer or of its evidence.
        sentence: Index of the sentence, shown ones first, then removed ones. None for the answer.
        start: Offset of the sentence's first character in the answer.
        end: Offset past its last.
    """

    name: str
    value: FiniteFloat | None = None
    label: str | None = None
    explanation: str | None = None
    sentence: int | None = Field(default=None, ge=0)
    start: int | None = None
    end: int | None = None

    def attributes(self, answer: GuardedAnswer) -> dict[str, str | int | float]:
        """The attributes of its event, by the names of the conventions."""
        found: dict[str, str | int | float | None] = {
            "gen_ai.evaluation.name": self.name,
            "gen_ai.evaluation.score.value": self.value,
            "gen_ai.evaluation.score.label": self.label,
            "gen_ai.evaluation.explanation": self.explanation or None,
            "gen_ai.response.id": answer.id,
            "guardrail.answer.id": answer.id,
            "guardrail.policy": answer.versions.get("policy", "unknown"),
            "guardrail.sentence.index": self.sentence,
            "guardrail.sentence.start": self.start,
            "guardrail.sentence.end": self.end,
        }
        return {name: value for name, value in found.items() if value is not None}


def evaluations_of(answer: GuardedAnswer) -> tuple[Evaluation, ...]:
    """Every sentence's verdict, the answer's verdict, and every score that has a value."""
    found = [
        Evaluation(
            name="groundedness",
            value=item.support,
            label=item.verdict.value,
            explanation="; ".join(f"{one.check}: {one.effect.value}" for one in item.findings),
            sentence=place,
            start=item.start,
            end=item.end,
        )
        for place, item in enumerate(answer.judged)
    ]
    counts = Counter(item.verdict.value for item in answer.judged)
    words = "; ".join(f"{number} {kind}" for kind, number in counts.items())
    found.append(Evaluation(name="verdict", label=answer.decided, explanation=words))
    overall, scores = answer.scorecard.overall, answer.scorecard.scores
    if overall.value is not None:
        # Counts only: reasons quote the answer, which must not be traced.
        value, label, words = overall.value, answer.decided, "; ".join(overall.evidence)
        found.append(Evaluation(name="overall", value=value, label=label, explanation=words))
    scored = {name: score.value for name, score in scores.items() if score.value is not None}
    return (*found, *(Evaluation(name=name, value=value) for name, value in scored.items()))


def record_answer(answer: GuardedAnswer, *, alone: bool = True) -> None:
    """Count an answer that is about to be returned, and add its evaluations to the current span.

    Each judged sentence, the verdict, and each score that has a value is an event
    ``gen_ai.evaluation.result`` on the span and a log record if logs are exported; a score is also
    a point of ``guardrail.score``. Sentences are counted by category, problems by part. If the span
    belongs to this answer ``alone``, action and scores are attributes too, since not every reader
    of traces shows events.
    """
    answers = _counter("guardrail.answers", "{answer}", "Answers by action.")
    answers.add(1, {"guardrail.action": answer.action.value})
    sentences = _counter("guardrail.sentences", "{sentence}", "By category.")
    for sentence in answer.sentences:
        category = sentence.category.value if sentence.category else "no claim"
        sentences.add(1, {"guardrail.category": category})
    problems = _counter("guardrail.problems", "{problem}", "Problems by part.")
    for problem in answer.errors:
        problems.add(1, {"guardrail.part": problem.part})
    twentieths = tuple(n / 20 for n in range(1, 21))
    scores = _histogram("guardrail.score", "1", "Scores of answers by name.", twentieths)
    span, logger = trace.get_current_span(), get_logger(NAME)
    summary = {"guardrail.action": answer.action.value, "guardrail.answer.id": answer.id}
    if answer.would is not None:
        summary["guardrail.would"] = answer.would.value
    if alone:
        span.set_attributes(summary)
    event = "gen_ai.evaluation.result"
    for evaluation in evaluations_of(answer):
        attributes = evaluation.attributes(answer)
        span.add_event(event, attributes)
        # Trace and span come from the context; readers join the two by them.
        logger.emit(
            LogRecord(
                event_name=event,
                timestamp=time.time_ns(),
                severity_number=SeverityNumber.INFO,
                attributes=attributes,
            )
        )
        if evaluation.sentence is None and evaluation.value is not None:
            scores.record(evaluation.value, {"gen_ai.evaluation.name": evaluation.name})
            if alone:
                span.set_attribute(f"guardrail.score.{evaluation.name}", evaluation.value)


@contextmanager
def _timed(
    name: str,
    kind: SpanKind,
    attributes: Mapping[str, str | int | float],
    metric: tuple[str, str, str],
    labels: Mapping[str, str],
) -> Iterator[Span]:
    """A span of a block, whose duration in seconds is recorded, with the type of its error."""
    seconds = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
    histogram = _histogram(*metric, seconds)
    begin = time.perf_counter()
    failed: dict[str, str] = {}
    tracer = trace.get_tracer(NAME)
    with tracer.start_as_current_span(
        name, None, kind, attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except BaseException as error:  # a deadline cancels without an Exception
            failed = {"error.type": type(error).__name__}
            span.set_attributes(failed)
            # The type alone: the message of a retriever's error may contain the question.
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            if isinstance(error, Exception):
                span.add_event("exception", {"exception.type": type(error).__name__})
            raise
        finally:
            histogram.record(time.perf_counter() - begin, {**labels, **failed})


@cache
def _histogram(
    name: str, unit: str, description: str, buckets: tuple[float, ...]
) -> metrics.Histogram:
    return metrics.get_meter(NAME).create_histogram(
        name, unit, description, explicit_bucket_boundaries_advisory=buckets
    )


@cache
def _counter(name: str, unit: str, description: str) -> metrics.Counter:
    return metrics.get_meter(NAME).create_counter(name, unit, description)
