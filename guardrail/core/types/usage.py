"""What the parts of a guardrail are busy with, for those who watch it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol, Self, runtime_checkable

from pydantic import Field

from guardrail.core.types.value import Value

__all__ = ["CacheUse", "Usage", "Used"]


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
