"""``guardrail score``: SCK and CONNER of answers, with all their parts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guardrail.commands.lines import run_lines
from guardrail.commands.options import Config, Graph, Input, ModelJudgeName, Output
from guardrail.commands.setup import build_config, build_guard
from guardrail.lines.jobs import score_job

__all__ = ["score"]


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
            help="Token likelihoods for CONNER: transformers:MODEL, openai:MODEL or llama:URL.",
        ),
    ] = None,
    pool: Annotated[
        Path | None,
        typer.Option(
            "--pool", metavar="FILE", help="Irrelevant texts for helpfulness, one a line."
        ),
    ] = None,
    sck_weights: Annotated[
        Path | None,
        typer.Option(
            "--sck-weights", metavar="FILE", help="SCK weights from judges.sck.learning --out."
        ),
    ] = None,
) -> None:
    """Score answers by SCK and CONNER.

    Reads {id, question, answer, reference?, evidence?}, evidence as in check; writes {id, sck,
    conner}. sck: {score, paper, parts (structure, content, knowledge with their weights),
    structure, content, knowledge, warnings}: score is the one for decisions, paper that of the
    paper's equations. conner: {factuality, non_verified, factual_inconsistent,
    sentences, relevance, coherence_sentence, coherence_sentence_uncapped, perplexities,
    coherence_paragraph, informativeness, helpfulness, helpfulness_unclipped, validity, quality}.
    Every score is {value, reason, evidence}: one that cannot be computed has no value and a
    reason, such as informativeness without --causal-lm.
    """
    setup = build_config(config, kg=kg, judge=judge)
    if causal_lm is not None:
        setup = setup.model_copy(
            update={"model": setup.model.model_copy(update={"causal_lm": causal_lm})}
        )
    with build_guard(setup) as guard:
        run_lines(score_job(guard, sck_weights, pool), source, target)
