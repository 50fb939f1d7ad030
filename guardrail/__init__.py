"""A guardrail for language models: cites a knowledge graph, says ``[NA]`` where it is silent.

>>> from guardrail import Guardrail
>>> guard = Guardrail()
>>> answer = guard.check(question="Who was Ada Lovelace?", answer="Ada Lovelace was a poet.")
>>> answer.sentences[0].na
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.core.lazy import loaded_on_use

if TYPE_CHECKING:
    from guardrail.config import GuardrailConfig
    from guardrail.core.errors import (
        ConfigError,
        DeadlineExceededError,
        GuardrailError,
        InputError,
        JudgeError,
        KnowledgeGraphError,
        MissingExtraError,
        ModelError,
        OverloadedError,
        RecordError,
    )
    from guardrail.core.types import (
        Action,
        AttributedAnswer,
        Candidate,
        Category,
        Citation,
        Complexity,
        Correction,
        Effect,
        Entity,
        Evidence,
        Explanation,
        Finding,
        Grounding,
        GuardedAnswer,
        Judgement,
        LinkedEntity,
        Mention,
        NLIScores,
        Passage,
        Problem,
        Score,
        ScoreCard,
        SecondOpinion,
        Sentence,
        Span,
        SpanKind,
        StatementScore,
        Strictness,
        Subgraph,
        TableRow,
        Triple,
        Verdict,
        VerdictThresholds,
        WordScore,
        linearise,
    )
    from guardrail.engine.decision import feedback
    from guardrail.engine.loop import run_sync
    from guardrail.engine.scoring import Scorer, ScoringRequest
    from guardrail.engine.session import CheckSession
    from guardrail.evidence.retrieval import Knowledge
    from guardrail.guard import Guardrail
    from guardrail.log.records import ScoreLog, open_log
    from guardrail.markers.rendering import marked_text
    from guardrail.policy import (
        ANNOTATE,
        BEST_OF_N,
        STRICT,
        STRICT_CORRECT,
        Policy,
        Unavailable,
        policy_named,
    )
    from guardrail.requests import AskRequest, CheckRequest, RankRequest
    from guardrail.sources.items import inline_evidence
    from guardrail.sources.sql import evidence_from_sql
    from guardrail.sources.tables import Table
    from guardrail.verdict.checks.base import Check, finding
    from judges.base import GroundingItem, GroundingJudge, NLIJudge, Pair

__all__ = [
    "ANNOTATE",
    "BEST_OF_N",
    "STRICT",
    "STRICT_CORRECT",
    "Action",
    "AskRequest",
    "AttributedAnswer",
    "Candidate",
    "Category",
    "Check",
    "CheckRequest",
    "CheckSession",
    "Citation",
    "Complexity",
    "ConfigError",
    "Correction",
    "DeadlineExceededError",
    "Effect",
    "Entity",
    "Evidence",
    "Explanation",
    "Finding",
    "Grounding",
    "GroundingItem",
    "GroundingJudge",
    "GuardedAnswer",
    "Guardrail",
    "GuardrailConfig",
    "GuardrailError",
    "InputError",
    "JudgeError",
    "Judgement",
    "Knowledge",
    "KnowledgeGraphError",
    "LinkedEntity",
    "Mention",
    "MissingExtraError",
    "ModelError",
    "NLIJudge",
    "NLIScores",
    "OverloadedError",
    "Pair",
    "Passage",
    "Policy",
    "Problem",
    "RankRequest",
    "RecordError",
    "Score",
    "ScoreCard",
    "ScoreLog",
    "Scorer",
    "ScoringRequest",
    "SecondOpinion",
    "Sentence",
    "Span",
    "SpanKind",
    "StatementScore",
    "Strictness",
    "Subgraph",
    "Table",
    "TableRow",
    "Triple",
    "Unavailable",
    "Verdict",
    "VerdictThresholds",
    "WordScore",
    "evidence_from_sql",
    "feedback",
    "finding",
    "inline_evidence",
    "linearise",
    "marked_text",
    "open_log",
    "policy_named",
    "run_sync",
]

_HOMES = {
    "guardrail.config": "GuardrailConfig",
    "guardrail.core.errors": "ConfigError DeadlineExceededError GuardrailError InputError "
    "JudgeError KnowledgeGraphError MissingExtraError ModelError OverloadedError RecordError",
    "guardrail.guard": "Guardrail",
    "guardrail.engine.decision": "feedback",
    "guardrail.engine.loop": "run_sync",
    "guardrail.policy": "ANNOTATE BEST_OF_N STRICT STRICT_CORRECT Policy Unavailable policy_named",
    "guardrail.log.records": "ScoreLog open_log",
    "guardrail.markers.rendering": "marked_text",
    "guardrail.sources.items": "inline_evidence",
    "guardrail.sources.sql": "evidence_from_sql",
    "guardrail.sources.tables": "Table",
    "guardrail.requests": "AskRequest CheckRequest RankRequest",
    "guardrail.evidence.retrieval": "Knowledge",
    "guardrail.engine.scoring": "Scorer ScoringRequest",
    "guardrail.engine.session": "CheckSession",
    "guardrail.core.types": "Action AttributedAnswer Candidate Category Citation Complexity "
    "Correction Effect Entity Evidence Explanation Finding Grounding GuardedAnswer Judgement "
    "LinkedEntity Mention NLIScores Passage Problem Score ScoreCard SecondOpinion Sentence Span "
    "SpanKind StatementScore Strictness Subgraph TableRow Triple Verdict VerdictThresholds "
    "WordScore linearise",
    "guardrail.verdict.checks.base": "Check finding",
    "judges.base": "GroundingItem GroundingJudge NLIJudge Pair",
}
__getattr__, __dir__ = loaded_on_use(__name__, _HOMES)
