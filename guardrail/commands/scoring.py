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
            help="For CONNER's likelihoods: transformers:MODEL, openai:MODEL or llama:URL.",
        ),
    ] = None,
    sck_weights: Annotated[
        Path | None,
        typer.Option(
            "--sck-weights", metavar="FILE", help="For SCK: what judges.sck.learning --out wrote."
        ),
    ] = None,
) -> None:
    """Score answers by SCK and CONNER.

    Reads {id, question, answer, reference?, evidence?}, evidence as in check; writes {id, sck,
    conner}. sck: {score, parts (structure, content, knowledge with their weights), structure,
    content, knowledge, warnings}. conner: {factuality, non_verified, factual_inconsistent,
    sentences, relevance, coherence_sentence, coherence_sentence_uncapped, perplexities,
    coherence_paragraph, informativeness, helpfulness, helpfulness_unclipped, validity, quality}.
    Every score is {value, reason, evidence}: one that cannot be computed has no value and a
    reason, such as informativeness without --causal-lm and validity without a reference.
    """
    with build_guard(build_config(config, kg=kg, judge=judge)) as guard:
        run_lines(score_job(guard, causal_lm, sck_weights), source, target)
