"""What is asked of a guardrail, for the batch forms."""

from __future__ import annotations

from guardrail.types import Evidence, Value

__all__ = ["AskRequest", "CheckRequest", "RankRequest"]


class CheckRequest(Value):
    """One answer to check; see ``Guardrail.check``."""

    question: str
    answer: str
    evidence: tuple[Evidence, ...] | None = None
    id: str | None = None


class RankRequest(Value):
    """Several answers to rank; see ``Guardrail.rank``."""

    question: str
    answers: tuple[str, ...]
    evidence: tuple[Evidence, ...] | None = None
    id: str | None = None


class AskRequest(Value):
    """A question to answer; see ``Guardrail.ask``."""

    question: str
    n: int | None = None
    evidence: tuple[Evidence, ...] | None = None
    id: str | None = None
