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
        GuardrailError,
        InputError,
        JudgeError,
        KnowledgeGraphError,
        ModelError,
    )
    from guardrail.core.types import (
        Action,
        Citation,
        Effect,
        Evidence,
        Finding,
        GuardedAnswer,
        Passage,
        Score,
        Sentence,
        Span,
        Strictness,
        Triple,
        Verdict,
        VerdictThresholds,
    )
    from guardrail.core.types.answers import AskRequest, CheckRequest, RankRequest
    from guardrail.engine.session import CheckSession
    from guardrail.guard import Guardrail
    from guardrail.policy import ANNOTATE, BEST_OF_N, STRICT, STRICT_CORRECT, Policy
    from guardrail.sources.tables import Table, evidence_from_sql
    from guardrail.verdict.checks.base import Check, finding

__all__ = [
    "ANNOTATE",
    "BEST_OF_N",
    "STRICT",
    "STRICT_CORRECT",
    "Action",
    "AskRequest",
    "Check",
    "CheckRequest",
    "CheckSession",
    "Citation",
    "ConfigError",
    "Effect",
    "Evidence",
    "Finding",
    "GuardedAnswer",
    "Guardrail",
    "GuardrailConfig",
    "GuardrailError",
    "InputError",
    "JudgeError",
    "KnowledgeGraphError",
    "ModelError",
    "Passage",
    "Policy",
    "RankRequest",
    "Score",
    "Sentence",
    "Span",
    "Strictness",
    "Table",
    "Triple",
    "Verdict",
    "VerdictThresholds",
    "evidence_from_sql",
    "finding",
]

__getattr__, __dir__ = loaded_on_use(
    __name__,
    {
        "guardrail.config": "GuardrailConfig",
        "guardrail.core.errors": "ConfigError GuardrailError InputError JudgeError "
        "KnowledgeGraphError ModelError",
        "guardrail.core.types": "Action Citation Effect Evidence Finding GuardedAnswer Passage "
        "Score Sentence Span Strictness Triple Verdict VerdictThresholds",
        "guardrail.engine.session": "CheckSession",
        "guardrail.guard": "Guardrail",
        "guardrail.policy": "ANNOTATE BEST_OF_N Policy STRICT STRICT_CORRECT",
        "guardrail.core.types.answers": "AskRequest CheckRequest RankRequest",
        "guardrail.sources.tables": "Table evidence_from_sql",
        "guardrail.verdict.checks.base": "Check finding",
    },
    # Names that were public; they load with a warning for one release.
    moved={
        "guardrail.core.errors": "DeadlineExceededError MissingExtraError OverloadedError "
        "RecordError",
        "guardrail.core.types": "AttributedAnswer Candidate Category Complexity Correction Entity "
        "Explanation Grounding Judgement LinkedEntity Mention NLIScores Problem ScoreCard "
        "SecondOpinion SpanKind StatementScore Subgraph TableRow WordScore linearise",
        "guardrail.engine.decision": "feedback",
        "guardrail.core.workers": "run_sync",
        "guardrail.scorers": "Scorer ScoringRequest",
        "guardrail.evidence.retrieval": "Knowledge",
        "guardrail.log.records": "ScoreLog open_log",
        "guardrail.markers.rendering": "marked_text",
        "guardrail.policy": "Unavailable policy_named",
        "guardrail.sources.items": "inline_evidence",
        "judges.base": "GroundingItem GroundingJudge NLIJudge Pair",
    },
)
