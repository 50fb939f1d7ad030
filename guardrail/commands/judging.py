"""``guardrail nli``, ``attribute`` and ``intent``: the judges on their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from guardrail.commands.lines import run_lines
from guardrail.commands.options import Input, ModelJudgeName, Output
from guardrail.core.types import Category, Complexity, NLIScores, Probability, Value
from guardrail.lines.rows import LineJob, Row

__all__ = ["attribute", "intent", "nli"]

DEFAULT_JUDGE = "onnx"
ROWS_PER_CALL = 512
"""Enough rows for batches of similar length, few enough that the first answers come soon."""


class NLIRow(Row):
    """A premise and a hypothesis."""

    premise: str
    hypothesis: str


class NLIResult(Value):
    """The likeliest label and the calibrated probability of each."""

    label: str
    scores: NLIScores


class AttributionRow(Row):
    """An answer and the evidence it is to be judged against."""

    question: str
    answer: str
    evidence: tuple[str, ...]


class AttributionResult(Value):
    """The category with its probabilities, and the complexity where the judge tells."""

    category: Category
    scores: Mapping[Category, Probability]
    complexity: Complexity | None
    supported_share: Probability | None


class IntentRow(Row):
    """A question."""

    question: str


class IntentResult(Value):
    """The likeliest intent and the probability of each."""

    intent: str
    scores: Mapping[str, Probability]


def nli(source: Input = "-", target: Output = "-", judge: ModelJudgeName = None) -> None:
    """Judge premise-hypothesis pairs.

    Reads {id, premise, hypothesis}; writes {id, label, scores}, where label is entailment,
    neutral or contradiction and scores holds the calibrated probability of each.
    """
    from judges.base import Pair
    from judges.registry import create_nli

    model = create_nli(judge or DEFAULT_JUDGE)
    model.warm_up()

    def process(rows: Sequence[NLIRow]) -> list[NLIResult]:
        judged = model.judge([Pair(row.premise, row.hypothesis) for row in rows])
        return [NLIResult(label=scores.label, scores=scores) for scores in judged]

    run_lines(LineJob(NLIRow, process, batch_size=ROWS_PER_CALL, title="nli"), source, target)


def attribute(source: Input = "-", target: Output = "-", judge: ModelJudgeName = None) -> None:
    """Judge answers against evidence in the four categories of CAQA.

    Reads {id, question, answer, evidence: [text, …]}; writes {id, category, scores, complexity,
    supported_share}. category is supportive, partially_supportive, contradictory or irrelevant;
    complexity is single, union, intersection, concatenation or null.
    """
    from judges.base import AttributionItem
    from judges.registry import create_attribution

    model = create_attribution(judge or DEFAULT_JUDGE)
    model.warm_up()

    def process(rows: Sequence[AttributionRow]) -> list[AttributionResult]:
        judged = model.attribute(
            [AttributionItem(row.question, row.answer, row.evidence) for row in rows]
        )
        return [
            AttributionResult(
                category=verdict.category,
                scores=verdict.scores,
                complexity=verdict.complexity,
                supported_share=verdict.supported_share,
            )
            for verdict in judged
        ]

    job = LineJob(AttributionRow, process, batch_size=ROWS_PER_CALL, title="attribute")
    run_lines(job, source, target)


def intent(source: Input = "-", target: Output = "-") -> None:
    """Tell the intent of questions.

    Reads {id, question}; writes {id, intent, scores} over instruction, reason,
    evidence-based, comparison, experience, debate, factoid and not-a-question.
    """
    from judges.encoder import create_encoder

    model = create_encoder()

    def process(rows: Sequence[IntentRow]) -> list[IntentResult]:
        judged = model.intents([row.question for row in rows])
        return [IntentResult(intent=max(s, key=s.__getitem__), scores=s) for s in judged]

    run_lines(LineJob(IntentRow, process, batch_size=ROWS_PER_CALL, title="intent"), source, target)
