"""What an answer's ``errors`` tell: parts that failed, bounds that were passed, doubts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from guardrail.config import QUESTION_CHARS, LimitsConfig
from guardrail.core.errors import (
    DeadlineExceededError,
    GuardrailError,
    InputError,
    JudgeError,
    KnowledgeGraphError,
    MissingExtraError,
    ModelError,
    OverloadedError,
)
from guardrail.core.text.tagging import in_english
from guardrail.core.types import Problem, Sentence
from guardrail.markers.grammar import parse

if TYPE_CHECKING:
    from guardrail.engine.pipeline import Checked, Row
    from guardrail.evidence.retrieval import Knowledge
    from guardrail.policy import Policy

__all__ = [
    "ERRORS_OF_PARTS",
    "UNUSABLE",
    "behind_the_bound",
    "late",
    "notices",
    "overlong",
    "problem_of",
    "unfit",
]

ERRORS_OF_PARTS: dict[str, type[GuardrailError]] = {
    "kg": KnowledgeGraphError,
    "judge": JudgeError,
    "checks": JudgeError,
    "model": ModelError,
    "deadline": DeadlineExceededError,
    "overload": OverloadedError,
    "input": InputError,
    "sentences": InputError,
}

UNUSABLE = (KnowledgeGraphError, JudgeError, ModelError, MissingExtraError, OverloadedError)
"""Errors that say that a part cannot be used: the policy decides what follows from them."""


def problem_of(error: GuardrailError, otherwise: str) -> Problem:
    """The problem of a part that could not be used; ``otherwise`` if the error names none."""
    named = (part for part, kind in ERRORS_OF_PARTS.items() if isinstance(error, kind))
    return Problem(part=next(named, otherwise), message=str(error))


def late(policy: Policy, seconds: float | None, part: str = "deadline") -> Problem:
    """The problem of a missed deadline; ``part`` names what was late after the verdicts."""
    message = (
        f"the {seconds:g} s of policy {policy.name!r} ran out; raise deadline_s or ask for less"
    )
    return Problem(part=part, message=message)


def unfit(row: Row, limits: LimitsConfig) -> Problem | None:
    """Why a row cannot be checked; None where it can."""
    for what, text, most in (
        ("answer", row.answer, limits.answer_chars),
        ("question", row.question, QUESTION_CHARS),
    ):
        if len(text) > most:
            return overlong(what, most)
    if not row.answer.partition("[")[0].strip() and not parse(row.answer).clean.strip():
        message = "the answer is empty or has only markers; there is nothing to check"
        return Problem(part="input", message=message)
    return None


def overlong(what: str, most: int) -> Problem:
    """The problem of an answer or a question with more characters than are read."""
    advice = " or raise limits.answer_chars" if what == "answer" else ""
    message = f"the {what} has more than {most} characters; shorten it{advice}"
    return Problem(part="input", message=message)


def behind_the_bound(sentences: Sequence[Sentence], limits: LimitsConfig) -> list[Problem]:
    """The problem of an answer with unjudged sentences, if any."""
    left = sum(sentence.behind_the_bound for sentence in sentences)
    message = (
        f"the last {left} sentences of the answer were not judged, beyond limits.sentences = "
        f"{limits.sentences}; check it in parts, or raise the limit"
    )
    return [Problem(part="sentences", message=message)] if left else []


def notices(
    row: Row, checked: Checked | None, known: Knowledge, *, failed: bool
) -> Iterator[Problem]:
    """Problems that do not change the verdict.

    Where something else ``failed``, that explains evidence that is missing.
    """
    if not row.question.strip() and known.source == "graph":
        message = "the question is empty; entities were linked in the answer alone"
        yield Problem(part="question", message=message)
    if checked and not in_english(f"{row.question} {row.answer}"):
        message = "the text does not read like English; the verdicts may be wrong"
        yield Problem(part="language", message=message)
    claims = checked is not None and any(item.category for item in checked.answer.sentences)
    if claims and not known.evidence and not failed:
        message = "nothing to judge by: no evidence, and no entity of a graph named"
        yield Problem(part="evidence", message=message)
    if known.left_out:
        message = (
            f"{known.left_out} triples and passages were left out or cut; raise limits.evidence, "
            "limits.evidence_chars, or hand in less"
        )
        yield Problem(part="evidence", message=message)
