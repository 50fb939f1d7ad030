"""Cases: a text of an answer, its evidence, and what a careful reader says of it."""

from __future__ import annotations

from typing import NamedTuple

from guardrail.core.types import Evidence, Verdict

__all__ = ["Case"]


class Case(NamedTuple):
    """One text to judge.

    Attributes:
        set: Name of the set it is from.
        evidence: Triples and passages.
        text: The text to judge; mostly one sentence.
        label: What is right; ``UNSUPPORTED`` also where a set does not tell contradictions.
        question: The question it answers.
        before: The sentences of the answer before it.
        span: The words that carry the problem; empty if unknown.
        cites: Numbers of the triples, or stretches of the passages, that carry it; None where the
            set does not tell.
        stated: Numbers of the triples that the text states for certain, though others may carry it
            as well; for recall alone.
    """

    set: str
    evidence: tuple[Evidence, ...]
    text: str
    label: Verdict
    question: str = ""
    before: str = ""
    span: str = ""
    cites: tuple[int | str, ...] | None = None
    stated: tuple[int, ...] | None = None
