"""The value objects that every part of the guardrail passes to the next.

All are frozen pydantic models: hashable where their fields are, comparable by value,
JSON in and out with ``model_dump_json`` / ``model_validate_json``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.core.lazy import loaded_on_use

if TYPE_CHECKING:
    from guardrail.core.types.answers import (
        Action,
        AttributedAnswer,
        Correction,
        Effect,
        FailedSentence,
        Finding,
        GuardedAnswer,
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
        Problem,
        Score,
        ScoreCard,
        SecondOpinion,
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
    from guardrail.core.types.usage import CacheUse, Usage, Used
    from guardrail.core.types.value import MOST_DAYS, MOST_SECONDS, Probability, Seconds, Value

__all__ = [
    "MOST_DAYS",
    "MOST_SECONDS",
    "Action",
    "AttributedAnswer",
    "CacheUse",
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
    "SecondOpinion",
    "Seconds",
    "Sentence",
    "Span",
    "SpanKind",
    "StatementScore",
    "Strictness",
    "StrictnessSetting",
    "Subgraph",
    "TableRow",
    "Triple",
    "Usage",
    "Used",
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

_HOMES = {
    "guardrail.core.types.answers": "Action AttributedAnswer Correction Effect FailedSentence "
    "Finding GuardedAnswer Sentence Span SpanKind",
    "guardrail.core.types.explanation": "Explanation",
    "guardrail.core.types.judging": "Category Complexity Grounding Judgement NLIScores Problem "
    "Score ScoreCard SecondOpinion StatementScore Verdict VerdictThresholds Weight WordScore",
    "guardrail.core.types.knowledge": "Candidate Citation Entity Evidence LinkedEntity Mention "
    "Passage Subgraph TableRow Triple linearise name_in_words passage_of_document",
    "guardrail.core.types.strictness": "OwnStrictness Strictness StrictnessSetting as_strictness",
    "guardrail.core.types.usage": "CacheUse Usage Used",
    "guardrail.core.types.value": "MOST_DAYS MOST_SECONDS Probability Seconds Value",
}

__getattr__, __dir__ = loaded_on_use(__name__, _HOMES)
