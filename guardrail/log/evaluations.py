"""Verdicts and scores of an answer as evaluations: OpenTelemetry events, scores for trackers."""

from __future__ import annotations

import time
from collections import Counter

from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber, get_logger
from pydantic import Field, FiniteFloat

from guardrail.core.types import GuardedAnswer, Sentence, Value
from guardrail.log.entries import tagged_lost
from guardrail.log.tracing import NAME, instruments, own

__all__ = ["Evaluation", "evaluations_of", "record_answer"]

EVENT = "gen_ai.evaluation.result"
EVALUATION_NAME = "gen_ai.evaluation.name"


class Evaluation(Value):
    """One score or verdict, of an answer or of one of its sentences.

    Attributes:
        name: ``groundedness`` of a sentence; ``verdict``, ``overall`` or a score of an answer.
        value: The number, if there is one.
        label: The word for it, if there is one.
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
            EVALUATION_NAME: self.name,
            "gen_ai.evaluation.score.value": self.value,
            "gen_ai.evaluation.score.label": self.label,
            "gen_ai.evaluation.explanation": self.explanation or None,
            "gen_ai.response.id": answer.id,
            own("answer.id"): answer.id,
            own("policy"): answer.versions.get("policy", "unknown"),
            own("sentence.index"): self.sentence,
            own("sentence.start"): self.start,
            own("sentence.end"): self.end,
        }
        return {name: value for name, value in found.items() if value is not None}


def evaluations_of(answer: GuardedAnswer) -> tuple[Evaluation, ...]:
    """Every sentence's verdict, the answer's verdict, and every score that has a value.

    Args:
        answer: As the guardrail returned it.
    """
    action = answer.decided
    counts = Counter(item.verdict.value for item in answer.judged)
    whole = Evaluation(
        name="verdict",
        label=action,
        explanation="; ".join(f"{number} {kind}" for kind, number in counts.items()),
    )
    overall = answer.scorecard.overall
    # Counts only: reasons quote the answer, which must not be traced.
    scores = [
        Evaluation(
            name=name,
            value=score.value,
            label=action if score is overall else None,
            explanation="; ".join(score.evidence) if score is overall else None,
        )
        for name, score in (("overall", overall), *answer.scorecard.scores.items())
        if score.value is not None
    ]
    sentences = [_of_sentence(place, item) for place, item in enumerate(answer.judged)]
    return (*sentences, whole, *scores)


def record_answer(answer: GuardedAnswer, *, alone: bool = True) -> None:
    """Count an answer that is about to be returned, and add its evaluations to the current span.

    Each judged sentence, the verdict, and each score that has a value is an event
    ``gen_ai.evaluation.result`` on the span and a log record if logs are exported; a score is also
    a point of ``guardrail.score``. Sentences are counted by category, problems
    by part. Candidates that lost are left out.

    Args:
        answer: The answer.
        alone: Whether the span belongs to this answer only. Action and scores then are attributes
            too, since not every reader of traces shows events.
    """
    if tagged_lost():
        return
    metrics = instruments()
    metrics.answers.add(1, {own("action"): answer.action.value})
    for sentence in answer.sentences:
        category = sentence.category.value if sentence.category else "no claim"
        metrics.sentences.add(1, {own("category"): category})
    for problem in answer.errors:
        metrics.problems.add(1, {own("part"): problem.part})
    span = trace.get_current_span()
    logger = get_logger(NAME)
    for evaluation in evaluations_of(answer):
        if evaluation.sentence is None and evaluation.value is not None:
            metrics.scores.record(evaluation.value, {EVALUATION_NAME: evaluation.name})
        attributes = evaluation.attributes(answer)
        if span.is_recording():
            span.add_event(EVENT, attributes)
            if alone and evaluation.sentence is None and evaluation.value is not None:
                span.set_attribute(own(f"score.{evaluation.name}"), evaluation.value)
        # Trace and span come from the context; readers join the two by them.
        logger.emit(
            LogRecord(
                event_name=EVENT,
                timestamp=time.time_ns(),
                severity_number=SeverityNumber.INFO,
                attributes=attributes,
            )
        )
    if alone and span.is_recording():
        span.set_attribute(own("action"), answer.action.value)
        if answer.would is not None:
            span.set_attribute(own("would"), answer.would.value)
        span.set_attribute(own("answer.id"), answer.id)


def _of_sentence(place: int, sentence: Sentence) -> Evaluation:
    found = [f"{item.check}: {item.effect.value}" for item in sentence.findings]
    return Evaluation(
        name="groundedness",
        value=sentence.support,
        label=sentence.verdict.value,
        explanation="; ".join(found),
        sentence=place,
        start=sentence.start,
        end=sentence.end,
    )
