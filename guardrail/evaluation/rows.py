"""Rows of an evaluation: what a chatbot said, by what it is judged, and what was expected."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, JsonValue, field_validator

from guardrail.core.fields import in_short
from guardrail.core.types import GuardedAnswer, Probability, Value, Verdict
from guardrail.evaluation.assertion import whole_answer_policy
from guardrail.evaluation.assessment import Requirement, assess
from guardrail.lines.evidence_rows import EvidenceRow
from guardrail.lines.rows import LineJob
from guardrail.requests import CheckRequest
from guardrail.tuning.rows import LABELS

if TYPE_CHECKING:
    from guardrail.guard import Guardrail

__all__ = [
    "NO_EVIDENCE",
    "EvalResult",
    "EvalRow",
    "JudgedSentence",
    "collecting_job",
    "evaluation_job",
]

ROWS_PER_CALL = 32
EXPECTED: Mapping[str, Verdict] = {**LABELS, "no_claim": Verdict.NO_CLAIM}
"""How what is expected may be written."""
_DIGITS = 16


class EvalRow(EvidenceRow):
    """An answer of a chatbot, its evidence, and what a person expects of it.

    Attributes:
        question: What was asked.
        answer: What the chatbot said.
        expected: ``supported``, ``unsupported``, ``contradicted`` or ``no_claim``; None where
            every claim is to be supported.
    """

    other_names: ClassVar[Mapping[str, str]] = {
        **EvidenceRow.other_names,
        **dict.fromkeys(("label", "verdict", "gold"), "expected"),
        **dict.fromkeys(("input", "user_input", "query"), "question"),
        **dict.fromkeys(("output", "actual_output", "response"), "answer"),
    }
    question: str = ""
    answer: str
    expected: Verdict | None = None

    @field_validator("expected", mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        if not isinstance(value, str | bool | int):
            return value
        found = EXPECTED.get(str(value).strip().lower())
        if found is None:
            raise ValueError(f"there is no {in_short(value)}; known: {', '.join(EXPECTED)}")
        return found


class JudgedSentence(Value):
    """A sentence with its verdict."""

    text: str
    verdict: Verdict
    support: Probability | None = None
    contradiction: Probability | None = None
    against: tuple[str, ...] = ()


class EvalResult(Value):
    """What became of a row, as a run keeps it for the next.

    Attributes:
        id: The row's.
        question: The row's.
        answer: The row's.
        evidence_hash: Tells its evidence from other evidence.
        expected: The row's.
        verdict: On the answer as a whole; None where nothing could be checked.
        passed: Whether it is as expected.
        claims: Sentences that claim something.
        supported: Share of them that the evidence supports.
        contradicted: Share of them that it contradicts.
        failures: What is not as expected, a line each.
        sentences: Every sentence with its verdict.
        versions: What judged it.
        error: Why nothing could be checked.
    """

    id: str | int | None = None
    question: str = ""
    answer: str = ""
    evidence_hash: str = ""
    expected: Verdict | None = None
    verdict: Verdict | None = None
    passed: bool = False
    claims: int = 0
    supported: Probability | None = None
    contradicted: Probability | None = None
    failures: tuple[str, ...] = ()
    sentences: tuple[JudgedSentence, ...] = ()
    versions: Mapping[str, str] = Field(default_factory=dict)
    error: str | None = None


def evaluation_job(guard: Guardrail, requirement: Requirement) -> LineJob[EvalRow]:
    """Judge the answers of rows.

    Args:
        guard: The guardrail.
        requirement: What an answer must reach of which nothing else is expected.
    """
    policy = whole_answer_policy(guard.config)

    def process(rows: Sequence[EvalRow]) -> list[EvalResult]:
        requests = [
            CheckRequest(question=row.question, answer=row.answer, evidence=row.items)
            for row in rows
        ]
        judged = guard.check_batch(requests, policy=policy)
        return [_result(row, answer, requirement) for row, answer in zip(rows, judged, strict=True)]

    return LineJob(EvalRow, process, batch_size=ROWS_PER_CALL, title="eval")


def collecting_job(found: list[CheckRequest]) -> LineJob[EvalRow]:
    """Read the rows of a file as requests, without judging them.

    Args:
        found: The requests are added to it.
    """

    def process(rows: Sequence[EvalRow]) -> list[EvalResult]:
        found.extend(
            CheckRequest(question=row.question, answer=row.answer, evidence=row.items)
            for row in rows
        )
        return [EvalResult() for _ in rows]

    return LineJob(EvalRow, process, batch_size=ROWS_PER_CALL, title="eval")


def _result(row: EvalRow, answer: GuardedAnswer, requirement: Requirement) -> EvalResult:
    found = assess(answer, requirement)
    failures = found.failures
    if row.expected is not None and found.verdict is not None:
        wrong = f"{found.verdict.value}, where {row.expected.value} was expected"
        failures = () if found.verdict is row.expected else (wrong, *failures)
    return EvalResult(
        id=row.id,
        question=row.question,
        answer=row.answer,
        evidence_hash=_hash(row),
        expected=row.expected,
        verdict=found.verdict,
        passed=not failures,
        claims=found.claims,
        supported=found.supported,
        contradicted=found.contradicted,
        failures=failures,
        sentences=tuple(
            JudgedSentence(
                text=item.text,
                verdict=item.verdict,
                support=item.support,
                contradiction=item.contradiction,
                against=item.against,
            )
            for item in answer.judged
        ),
        versions=answer.versions,
        error=failures[0] if found.verdict is None else None,
    )


def _hash(row: EvalRow) -> str:
    if not row.items:
        return _digest(None if row.items is None else [])
    short = row.model_dump(mode="json", include={"triples", "passages"}, exclude_none=True)
    return _digest({"evidence": row.evidence, **short} if short else row.evidence)


def _digest(told: JsonValue) -> str:
    text = json.dumps(told, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


NO_EVIDENCE = frozenset({_digest(None), _digest([])})
"""What ``evidence_hash`` is of rows that bring none: the graph, or files of the settings, are asked
where the field is left out."""
