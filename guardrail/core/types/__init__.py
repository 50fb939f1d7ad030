"""The value objects that every part of the guardrail passes to the next.

All are frozen pydantic models: hashable where their fields are, comparable by value,
JSON in and out with ``model_dump_json`` / ``model_validate_json``.
"""

from __future__ import annotations

from guardrail.core.types.answers import (
    Action,
    AttributedAnswer,
    Correction,
    Effect,
    FailedSentence,
    Finding,
    GuardedAnswer,
    Problem,
    Sentence,
    Span,
    SpanKind,
)
from guardrail.core.types.explanation import Explanation
from guardrail.core.types.judging import (
    Category,
    Complexity,
    Grounding,
    Judgement,
    NLIScores,
    Score,
    ScoreCard,
    StatementScore,
    Verdict,
    VerdictThresholds,
    Weight,
    WordScore,
)
from guardrail.core.types.knowledge import (
    Candidate,
    Citation,
    Entity,
    Evidence,
    LinkedEntity,
    Mention,
    Passage,
    Subgraph,
    TableRow,
    Triple,
    linearise,
    name_in_words,
    passage_of_document,
)
from guardrail.core.types.strictness import (
    OwnStrictness,
    Strictness,
    StrictnessSetting,
    as_strictness,
)
from guardrail.core.types.value import Probability, Value

__all__ = [
    "Action",
    "AttributedAnswer",
    "Candidate",
    "Category",
    "Citation",
    "Complexity",
    "Correction",
    "Effect",
    "Entity",
    "Evidence",
    "Explanation",
    "FailedSentence",
    "Finding",
    "Grounding",
    "GuardedAnswer",
    "Judgement",
    "LinkedEntity",
    "Mention",
    "NLIScores",
    "OwnStrictness",
    "Passage",
    "Probability",
    "Problem",
    "Score",
    "ScoreCard",
    "Sentence",
    "Span",
    "SpanKind",
    "StatementScore",
    "Strictness",
    "StrictnessSetting",
    "Subgraph",
    "TableRow",
    "Triple",
    "Value",
    "Verdict",
    "VerdictThresholds",
    "Weight",
    "WordScore",
    "as_strictness",
    "linearise",
    "name_in_words",
    "passage_of_document",
]
