"""What is asked of a guardrail, for the batch forms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from guardrail.core.errors import InputError
from guardrail.core.types import Evidence, Value

__all__ = ["AskRequest", "CheckRequest", "RankRequest", "all_of", "several"]

RequestT = TypeVar("RequestT", bound=Value)


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


def several(answers: Iterable[str]) -> tuple[str, ...]:
    """The answers to rank.

    Raises:
        InputError: They are one text, whose characters would pass for answers.
    """
    if isinstance(answers, str):
        raise InputError("answers must be several texts in a list, not one text")
    return tuple(answers)


def all_of(kind: type[RequestT], requests: Iterable[RequestT]) -> list[RequestT]:
    """The requests of a batch.

    Raises:
        TypeError: One is something else, such as a dict or a tuple.
    """
    found = list(requests)
    for place, item in enumerate(found):
        if not isinstance(item, kind):
            raise TypeError(
                f"request {place} of the batch is a {type(item).__name__}, not a {kind.__name__}; "
                f"write guardrail.{kind.__name__}(question=…, …)"
            )
    return found
