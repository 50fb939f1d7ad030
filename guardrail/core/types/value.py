"""What all value objects have in common, and what the parts of a guardrail are busy with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Protocol, Self, runtime_checkable

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

__all__ = [
    "MOST_SECONDS",
    "CacheUse",
    "Probability",
    "Seconds",
    "SecretRef",
    "Usage",
    "Used",
    "Value",
]

Probability = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]

MOST_SECONDS = 1_000_000.0
"""Longest timeout, some eleven days: those of sockets overflow at 2^31 ms, 24 days."""

Seconds = Annotated[float, Field(gt=0.0, le=MOST_SECONDS, allow_inf_nan=False)]


def _reference(text: str) -> str:
    kind, colon, place = text.partition(":")
    if not colon or kind not in ("env", "file") or not place.strip():
        raise ValueError("write env:NAME or file:PATH: settings must not contain a secret")
    return text


SecretRef = Annotated[str, AfterValidator(_reference)]
"""A setting that says where a secret is: ``env:NAME`` or ``file:PATH``. It holds none itself."""


class Value(BaseModel):
    """Base of all value objects: frozen, strict about unknown fields, no NaN, no infinity.

    Errors do not show the values themselves: what was sent may be a secret.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True
    )


class CacheUse(Value):
    """How often a cache was asked, since it was made.

    Attributes:
        hits: Times that it had what was asked for.
        misses: Times that it had not.
    """

    hits: int = Field(default=0, ge=0)
    misses: int = Field(default=0, ge=0)


class Usage(Value):
    """What a part is busy with now, and what it did since it was made.

    Attributes:
        queues: What waits now, by queue: ``calls`` of graph, judge and retriever for a thread,
            ``judge`` sentences for the judge.
        running: Calls in work now.
        stuck: Calls that were given up and still run.
        caches: ``verdicts`` that the judge gave, ``queries`` of an endpoint.
        batches: Batches that the judge was given, by their number of sentences.
        counts: What chat models as judges used: ``calls``, ``prompt_tokens``, ``reply_tokens``
            and ``cached_tokens``, the prompt tokens that the endpoint had cached.
    """

    queues: Mapping[str, int] = Field(default_factory=dict)
    running: int = Field(default=0, ge=0)
    stuck: int = Field(default=0, ge=0)
    caches: Mapping[str, CacheUse] = Field(default_factory=dict)
    batches: Mapping[int, int] = Field(default_factory=dict)
    counts: Mapping[str, int] = Field(default_factory=dict)

    @classmethod
    def together(cls, parts: Iterable[Usage]) -> Self:
        """What several parts use, added up."""
        queues: Counter[str] = Counter()
        hits: Counter[str] = Counter()
        misses: Counter[str] = Counter()
        batches: Counter[int] = Counter()
        counts: Counter[str] = Counter()
        running = stuck = 0
        for part in parts:
            queues.update(part.queues)
            batches.update(part.batches)
            counts.update(part.counts)
            for name, use in part.caches.items():
                hits[name] += use.hits
                misses[name] += use.misses
            running += part.running
            stuck += part.stuck
        caches = {name: CacheUse(hits=hits[name], misses=misses[name]) for name in hits}
        return cls(
            queues=queues,
            running=running,
            stuck=stuck,
            caches=caches,
            batches=batches,
            counts=counts,
        )


@runtime_checkable
class Used(Protocol):
    """A part that can tell what it is busy with."""

    def in_use(self) -> Usage:
        """What it is busy with now, and what it did since it was made."""
        ...
