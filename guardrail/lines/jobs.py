"""The jobs of ``check``, ``rank`` and ``score``, for the commands and for bulk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from guardrail.core.types import AttributedAnswer, GuardedAnswer, ScoreCard, Value
from guardrail.core.types.answers import CheckRequest, RankRequest
from guardrail.lines.rows import EvidenceRow, LineJob
from guardrail.policy import ANNOTATE
from guardrail.scorers import ScoringRequest, conner_input, open_conner, sck_input
from judges.conner import ConnerReport
from judges.sck import SCKReport

if TYPE_CHECKING:
    from guardrail.guard import Guardrail

__all__ = ["ROWS_PER_CALL", "CheckRow", "RankRow", "check_job", "rank_job", "score_job"]

ROWS_PER_CALL = 32


class CheckRow(EvidenceRow):
    """An answer to check."""

    question: str = ""
    answer: str

    def request(self) -> CheckRequest:
        """The row as a request; without evidence of its own, files or the graph are read."""
        return CheckRequest(
            question=self.question, answer=self.answer, evidence=self.items, id=self.text_id
        )


class RankRow(EvidenceRow):
    """Answers to rank."""

    question: str = ""
    answers: tuple[str, ...]


class ScoreRow(CheckRow):
    """An answer to score, with a reference answer if there is one."""

    reference: str | None = None


class ScoreResult(Value):
    """Both reports, each number with its inputs."""

    sck: SCKReport
    conner: ConnerReport


class RankPlace(Value):
    """A candidate's position in the input, its score and its score card."""

    index: int
    score: float | None
    scorecard: ScoreCard


class RankResult(Value):
    """Candidates, best first."""

    ranking: tuple[RankPlace, ...]


def check_job(guard: Guardrail) -> LineJob[CheckRow]:
    """Check answers."""

    def process(rows: Sequence[CheckRow]) -> list[GuardedAnswer]:
        return guard.check_batch([row.request() for row in rows])

    return LineJob(CheckRow, process, batch_size=ROWS_PER_CALL, title="check")


def rank_job(
    guard: Guardrail, take: Callable[[Sequence[list[GuardedAnswer]]], None] = lambda _: None
) -> LineJob[RankRow]:
    """Rank answers.

    Args:
        guard: The guardrail.
        take: Called with the full ranked answers; the results hold only their scores.
    """

    def process(rows: Sequence[RankRow]) -> list[RankResult]:
        ranked = guard.rank_batch(
            [
                RankRequest(question=row.question, answers=row.answers, evidence=row.items)
                for row in rows
            ]
        )
        take(ranked)
        return [RankResult(ranking=tuple(map(_place, group))) for group in ranked]

    return LineJob(RankRow, process, batch_size=ROWS_PER_CALL, title="rank")


def score_job(guard: Guardrail, sck_weights: Path | None = None) -> LineJob[ScoreRow]:
    """Score answers with SCK and CONNER.

    Args:
        guard: The guardrail; ``model.causal_lm`` of its configuration computes likelihoods.
        sck_weights: File of weights by intent, written by ``training.sck_weights``; None for the
            paper's.

    Raises:
        ConfigError: The weights cannot be read, or the causal language model is unknown.
    """
    from judges.encoder import create_encoder
    from judges.registry import create_nli
    from judges.sck import SCKScorer, SCKSettings
    from judges.sck.report import load_weights

    weights = SCKSettings() if sck_weights is None else SCKSettings(load_weights(sck_weights))
    nli = create_nli(guard.config.judge)
    sck = SCKScorer(create_encoder(), nli, weights)
    conner = open_conner(nli, guard.config)

    def process(rows: Sequence[ScoreRow]) -> list[ScoreResult]:
        checked = guard.check_batch([row.request() for row in rows], policy=ANNOTATE)
        requests = [_scoring_request(answer) for answer in checked]
        pairs = [(request, row.reference) for request, row in zip(requests, rows, strict=True)]
        return [
            ScoreResult(sck=structure, conner=perspectives)
            for structure, perspectives in zip(
                sck.score([sck_input(*pair) for pair in pairs]),
                conner.score([conner_input(*pair) for pair in pairs]),
                strict=True,
            )
        ]

    return LineJob(ScoreRow, process, title="score")


def _place(answer: GuardedAnswer) -> RankPlace:
    return RankPlace(
        index=answer.index, score=answer.scorecard.overall.value, scorecard=answer.scorecard
    )


def _scoring_request(answer: GuardedAnswer) -> ScoringRequest:
    attributed = AttributedAnswer(
        text=answer.text, marked=answer.marked, sentences=answer.sentences
    )
    return ScoringRequest(answer.question, attributed, answer.evidence, answer.entities)
