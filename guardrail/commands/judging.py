"""``guardrail nli``, ``attribute``, ``intent`` and ``score``: judges and scorers on their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from guardrail.commands.lines import QuestionRow, run_lines
from guardrail.commands.options import (
    CausalModel,
    Config,
    Graph,
    Input,
    ModelJudgeName,
    Output,
    build_config,
    build_guard,
    opt,
    writes,
)
from guardrail.lines import LineJob, Result, Row
from judges.conner import ConnerReport
from judges.sck import SCKReport

ROWS_PER_CALL = 512
"""Enough for batches of similar length, few enough that the first results come soon."""


class NLIRow(Row):
    """A premise and a hypothesis."""

    premise: str
    hypothesis: str


class AttributionRow(Row):
    """An answer and its evidence."""

    question: str
    answer: str
    evidence: tuple[str, ...]


def nli(source: Input = "-", target: Output = "-", judge: ModelJudgeName = None) -> None:
    """Judge premise-hypothesis pairs.

    Reads {id, premise, hypothesis}; writes {id, label, scores}: label is entailment, neutral or
    contradiction, scores has the calibrated probability of each.
    """
    from judges.base import Pair
    from judges.registry import create_nli

    model = create_nli(judge or "onnx")
    model.warm_up()

    def process(rows: Sequence[NLIRow]) -> list[Result]:
        judged = model.judge([Pair(row.premise, row.hypothesis) for row in rows])
        return [{"label": scores.label, "scores": scores} for scores in judged]

    run_lines(LineJob(NLIRow, process, batch_size=ROWS_PER_CALL, title="nli"), source, target)


def attribute(source: Input = "-", target: Output = "-", judge: ModelJudgeName = None) -> None:
    """Judge answers against evidence in the four categories of CAQA.

    Reads {id, question, answer, evidence: [text, …]}; writes {id, category, scores, complexity,
    supported_share}. category is supportive, partially_supportive, contradictory or irrelevant;
    complexity is single, union, intersection, concatenation or null.
    """
    from judges.base import AttributionItem
    from judges.registry import create_attribution

    model = create_attribution(judge or "onnx")
    model.warm_up()

    def process(rows: Sequence[AttributionRow]) -> list[Result]:
        items = [AttributionItem(row.question, row.answer, row.evidence) for row in rows]
        return [item.model_dump(exclude={"rationale"}) for item in model.attribute(items)]

    job = LineJob(AttributionRow, process, batch_size=ROWS_PER_CALL, title="attribute")
    run_lines(job, source, target)


def intent(source: Input = "-", target: Output = "-") -> None:
    """Classify the intent of questions.

    Reads {id, question}; writes {id, intent, scores} over instruction, reason,
    evidence-based, comparison, experience, debate, factoid and not-a-question.
    """
    from judges.encoder import create_encoder

    model = create_encoder()

    def process(rows: Sequence[QuestionRow]) -> list[Result]:
        judged = model.intents([row.question for row in rows])
        return [{"intent": max(found, key=found.__getitem__), "scores": found} for found in judged]

    run_lines(
        LineJob(QuestionRow, process, batch_size=ROWS_PER_CALL, title="intent"), source, target
    )


@writes(sck=SCKReport, conner=ConnerReport)
def score(
    source: Input = "-",
    target: Output = "-",
    kg: Graph = None,
    config: Config = None,
    judge: ModelJudgeName = None,
    causal_lm: CausalModel = None,
    sck_weights: Annotated[
        Path | None, opt("--sck-weights", "SCK weights from training.sck_weights --out.", "FILE")
    ] = None,
) -> None:
    """Score answers by SCK and CONNER.

    Reads {id, question, answer, reference?, evidence?}, evidence as in check; writes {id, sck,
    conner}. Every score is {value, reason, evidence}; one that cannot be computed has no value but
    a reason, such as informativeness without --causal-lm.
    """
    from guardrail.lines import score_job

    with build_guard(build_config(config, kg=kg, judge=judge, causal_lm=causal_lm)) as guard:
        run_lines(score_job(guard, sck_weights), source, target)
