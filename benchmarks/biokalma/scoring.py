"""From marked answers to KaLMA's citation metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from benchmarks.biokalma.metrics import CitedAnswer, CitedSentence, KalmaScores, kalma_scores
from guardrail.core.text.sentences import split_sentences
from guardrail.core.types import Citation, Score, Triple
from guardrail.markers.brackets import KnownFacts
from guardrail.markers.grammar import parse

if TYPE_CHECKING:
    from judges.base import NLIJudge

__all__ = ["Fact", "ScoreReport", "ScoreRow", "cited_answer", "report", "score_rows"]


class Fact(NamedTuple):
    """A triple as benchmark files write it: ``[entity, property, value]``."""

    entity: str
    property: str
    value: str


class ScoreRow(BaseModel):
    """One line of ``guardrail bench biokalma score``.

    Attributes:
        id: Names the row in messages.
        marked: The answer with markers.
        graph: The retrieved triples.
        minimum: The minimum knowledge set.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: str | int | None = None
    marked: str
    graph: tuple[Fact, ...] = Field(default=())
    minimum: tuple[Fact, ...] = Field(default=())


class MicroReport(BaseModel):
    """Shares over all citations or needed triples; null where there are none."""

    correctness: float | None
    precision: float | None
    recall: float | None
    f1: float | None


class MacroReport(BaseModel):
    """Means over answers; null where there are none to average over."""

    precision: float | None
    recall: float | None
    f1: float | None


class ScoreReport(BaseModel):
    """What ``score`` prints; all values are shares in [0, 1]."""

    answers: int
    citations: int
    micro: MicroReport
    macro: MacroReport
    alignment_containment: float | None
    alignment_written: float | None
    alignment_released: float | None
    alignment: float | None
    reasons: dict[str, str]


def cited_answer(
    marked: str,
    graph: Iterable[Fact],
    minimum: Iterable[Fact] = (),
    absent: Iterable[Fact] = (),
) -> CitedAnswer:
    """Parse a marked answer into sentences with their citations.

    Args:
        marked: The answer with markers.
        graph: The retrieved triples; they decide where values with commas end.
        minimum: The minimum knowledge set.
        absent: Triples taken out of the graph.
    """
    retrieved = tuple(graph)
    known = KnownFacts(
        Triple(subject=fact.entity, property=fact.property, value=fact.value) for fact in retrieved
    )
    parsed = parse(marked, known)
    spans = [(sentence.start, sentence.end) for sentence in split_sentences(parsed.clean)]
    sentences = []
    counted = 0
    for start, end in spans:
        markers = parsed.within(start, end)
        counted += len(markers)
        sentences.append(
            CitedSentence(
                text=parsed.clean[start:end],
                citations=tuple(citation for marker in markers for citation in marker.citations),
                na=any(marker.na for marker in markers),
            )
        )
    if counted < len(parsed.markers):  # markers with no sentence to stand behind
        placed = {m for start, end in spans for m in parsed.within(start, end)}
        loose = [marker for marker in parsed.markers if marker not in placed]
        sentences += [
            CitedSentence(text="", citations=marker.citations, na=marker.na) for marker in loose
        ]
    return CitedAnswer(
        sentences=tuple(sentences),
        graph=frozenset(_citation(fact) for fact in retrieved),
        minimum=frozenset(_citation(fact) for fact in minimum),
        absent=tuple(_citation(fact) for fact in absent),
    )


def score_rows(rows: Sequence[ScoreRow], judge: NLIJudge | None = None) -> KalmaScores:
    """Score rows with KaLMA's metrics.

    Raises:
        JudgeError: The judge failed.
    """
    answers = [cited_answer(row.marked, row.graph, row.minimum) for row in rows]
    return kalma_scores(answers, judge)


def report(scores: KalmaScores) -> ScoreReport:
    """The scores as plain numbers, with the reason for each that is missing."""
    named = {
        **{f"micro.{name}": getattr(scores.micro, name) for name in MicroReport.model_fields},
        **{f"macro.{name}": getattr(scores.macro, name) for name in MacroReport.model_fields},
        "alignment_containment": scores.alignment_containment,
        "alignment_written": scores.alignment_written,
        "alignment_released": scores.alignment_released,
        "alignment": scores.alignment,
    }
    return ScoreReport(
        answers=scores.answers,
        citations=scores.citations,
        micro=MicroReport(**{n: _value(named[f"micro.{n}"]) for n in MicroReport.model_fields}),
        macro=MacroReport(**{n: _value(named[f"macro.{n}"]) for n in MacroReport.model_fields}),
        alignment_containment=scores.alignment_containment.value,
        alignment_written=scores.alignment_written.value,
        alignment_released=scores.alignment_released.value,
        alignment=scores.alignment.value,
        reasons={name: score.reason for name, score in named.items() if score.reason},
    )


def _citation(fact: Fact) -> Citation:
    return Citation(entity=fact.entity, property=fact.property, value=fact.value)


def _value(score: Score) -> float | None:
    return score.value
