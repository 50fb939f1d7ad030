"""``guardrail score``: SCK and CONNER of answers, with all their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from guardrail.commands.answers import CheckRow
from guardrail.commands.lines import LineJob, run_lines
from guardrail.commands.options import Config, Graph, Input, ModelJudgeName, Output
from guardrail.commands.setup import build_guard
from guardrail.engine.scorers import conner_input, sck_input
from guardrail.engine.scoring import ScoringRequest
from guardrail.policy import ANNOTATE
from guardrail.requests import CheckRequest
from guardrail.types import AttributedAnswer, GuardedAnswer, Value
from judges.conner import ConnerReport
from judges.sck import SCKReport

__all__ = ["score"]

ROWS_PER_CALL = 64


class ScoreRow(CheckRow):
    """An answer to score, with a reference answer where there is one."""

    reference: str | None = None


class ScoreResult(Value):
    """Both reports, each number beside what it was computed from."""

    sck: SCKReport
    conner: ConnerReport


def score(
    source: Input = "-",
    target: Output = "-",
    kg: Graph = None,
    config: Config = None,
    judge: ModelJudgeName = None,
    causal_lm: Annotated[
        str | None,
        typer.Option(
            "--causal-lm",
            metavar="NAME",
            help="For CONNER's likelihoods: transformers:MODEL, openai:MODEL or llama:URL.",
        ),
    ] = None,
) -> None:
    """Score answers by SCK and CONNER.

    Reads {id, question, answer, reference?, triples?, passages?}; writes {id, sck, conner}. sck:
    {score, parts (structure, content, knowledge with their weights), structure, content,
    knowledge, warnings}. conner: {factuality, non_verified, factual_inconsistent, sentences,
    relevance, coherence_sentence, coherence_sentence_uncapped, perplexities,
    coherence_paragraph, informativeness, helpfulness, helpfulness_unclipped, validity, quality}.
    Every score is {value, reason, evidence}: one that cannot be computed has no value and a
    reason, such as informativeness without --causal-lm and validity without a reference.
    """
    from judges.causal_lm import create_causal_lm
    from judges.conner import ConnerModels, ConnerScorer
    from judges.encoder import create_encoder
    from judges.registry import create_nli
    from judges.sck import SCKScorer

    with build_guard(config, kg, judge, None) as guard:
        encoder = create_encoder()
        nli = create_nli(guard.config.judge)
        sck = SCKScorer(encoder, nli)
        conner = ConnerScorer(
            ConnerModels(
                nli=nli,
                encoder=encoder,
                relevance=encoder,
                discourse=encoder,
                causal=None if causal_lm is None else create_causal_lm(causal_lm),
            )
        )

        def process(rows: Sequence[ScoreRow]) -> list[ScoreResult]:
            checked = guard.check_batch(
                [
                    CheckRequest(question=row.question, answer=row.answer, evidence=row.evidence())
                    for row in rows
                ],
                policy=ANNOTATE,
            )
            requests = [_request(answer) for answer in checked]
            pairs = list(zip(requests, rows, strict=True))
            return [
                ScoreResult(sck=structure, conner=perspectives)
                for structure, perspectives in zip(
                    sck.score([sck_input(request, row.reference) for request, row in pairs]),
                    conner.score([conner_input(request, row.reference) for request, row in pairs]),
                    strict=True,
                )
            ]

        run_lines(
            LineJob(ScoreRow, process, batch_size=ROWS_PER_CALL, title="score"), source, target
        )


def _request(answer: GuardedAnswer) -> ScoringRequest:
    attributed = AttributedAnswer(
        text=answer.text, marked=answer.marked, sentences=answer.sentences
    )
    return ScoringRequest(answer.question, attributed, answer.evidence, answer.entities)
