"""What became of a judged call, in the words of its numbers: a result, and a type of error."""

from __future__ import annotations

from chains.gateway.requests import RejectedError
from chains.gateway.streaming import BrokenOffError, CallerGoneError
from chains.gateway.upstream import UpstreamUnreachableError
from chains.openai_wire import UnreadableReplyError
from guardrail import Action, GuardedAnswer
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

__all__ = ["BYPASSED", "ERROR", "WOULD_BLOCK", "error_type_of", "failed_part", "result_of"]

BYPASSED = "bypassed"
"""Nothing of the reply was judged: it held calls of tools or data alone."""
ERROR = "error"
"""There is no reply, since the guardrail failed."""
WOULD_BLOCK = "would_block"
"""A dry run alone let it leave as it was written."""

RESULTS = {
    Action.PASS: "allowed",
    Action.ANNOTATE: "annotated",
    Action.CORRECT: "corrected",
    Action.FILTER: "filtered",
    Action.REGENERATE: "regenerated",
    Action.REFUSE: "refused",
    Action.UNVERIFIED: "unverified",
}

PARTS = ("kg", "judge", "checks", "model", "deadline", "overload", "input", "sentences")
"""Parts without which an answer is not judged, or not all of it."""

OF_OTHERS = (
    UpstreamUnreachableError, UnreadableReplyError, BrokenOffError,
    RejectedError, CallerGoneError, InputError, ConfigError,
)  # fmt: skip
"""Errors of the upstream and of callers, what a request names among them."""
INTERNAL = "internal"
"""An error that is of no part: a fault of the gateway, or of what it runs on."""
ERROR_TYPES: tuple[tuple[type[GuardrailError], str], ...] = (
    (KnowledgeGraphError, "kg"),
    (JudgeError, "judge"),
    (ModelError, "model"),
    (DeadlineExceededError, "deadline"),
    (OverloadedError, "overload"),
    (RecordError, "records"),
    (MissingExtraError, "install"),
)


def result_of(answer: GuardedAnswer) -> str:
    """What became of an answer; of a dry run what would have."""
    return WOULD_BLOCK if answer.would_block else RESULTS[answer.action]


def error_type_of(answer: GuardedAnswer) -> str:
    """The part that could not be used; empty where all could."""
    parts = {problem.part for problem in answer.errors}
    return next((part for part in PARTS if part in parts), "")


def failed_part(error: Exception) -> str | None:
    """The part that left a call without a reply; None where that was the caller or the upstream."""
    if isinstance(error, OF_OTHERS):
        return None
    return next((name for kind, name in ERROR_TYPES if isinstance(error, kind)), INTERNAL)
