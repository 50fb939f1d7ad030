"""Metrics for Prometheus, by policy, result, error and tenant; no text and no key."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from fastapi import Request
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from chains.gateway.requests import RejectedError, caller_of
from chains.gateway.streaming import BrokenOffError, CallerGoneError
from chains.gateway.upstream import UpstreamUnreachableError
from chains.openai_wire import UnreadableReplyError
from guardrail import Action, GuardedAnswer, Policy
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
from guardrail.core.types import CacheUse, Usage

__all__ = [
    "BYPASSED",
    "CONTENT_TYPE_LATEST",
    "ERROR",
    "MULTIPROCESS",
    "WOULD_BLOCK",
    "Judging",
    "Metrics",
    "begun",
    "error_type_of",
    "failed_part",
    "forget_gone",
    "result_of",
]

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder through which the workers of one gateway add up their numbers."""

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Bounds of the sizes of the judge's batches."""


class Judging(NamedTuple):
    """Which answers are judged, in the words of their numbers.

    Attributes:
        phase: ``output`` for a whole reply of the upstream, ``stream`` for a streamed one,
            ``check`` and ``rank`` for texts that a caller has already, ``protocol`` for those of
            other gateways' calls.
        policy: Name of the policy that decides.
        tenant: Name of the caller, never its key; empty where it has none.
    """

    phase: str
    policy: str
    tenant: str


def begun(request: Request, phase: str, policy: Policy) -> Judging:
    """Note of a call how it is judged; by that it is counted, however it ends."""
    of = Judging(phase, policy.name, caller_of(request).name)
    request.state.judging = of
    return of


def forget_gone(*, itself: bool = False) -> None:
    """Take processes that are gone out of the gauges of their gateway; what they counted stays.

    Args:
        itself: Whether the gauges under this process's own id go, too: at its begin, when they are
            those of one that had the same id before, and at its end.
    """
    folder = os.environ.get(MULTIPROCESS)
    for file in Path(folder).glob("gauge_live*_*.db") if folder else ():
        number = file.stem.rpartition("_")[2]
        if not number.isdigit():
            continue
        if _is_gone(int(number)) or (itself and int(number) == os.getpid()):
            with suppress(FileNotFoundError):  # another worker was faster
                mark_process_dead(int(number), folder)  # type: ignore[no-untyped-call]


def _is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # another user's
    return False


class Metrics:
    """Numbers of one gateway.

    Args:
        usage: Tells what the guardrail is busy with; asked after each request.
    """

    def __init__(self, usage: Callable[[], Usage]) -> None:
        self._usage = usage
        self._seen = Usage()
        forget_gone()
        self._registry = CollectorRegistry()
        self._requests = self._counter(
            "requests", "Answers by what became of them.",
            "policy", "phase", "result", "error_type", "tenant",
        )  # fmt: skip
        self._latency = self._histogram(
            "latency_seconds",
            "Time in which an answer was judged, seconds; of a stream the last look at it.",
            "policy", "phase", "result",
        )  # fmt: skip
        self._stages = self._histogram(
            "stage_seconds", "The same by stage of the work, seconds.", "stage"
        )
        self._sentences = self._counter(
            "sentences", "Judged sentences by support, those removed included.",
            "policy", "phase", "category",
        )  # fmt: skip
        self._first = self._histogram(
            "first_release_seconds",
            "From a streamed request to the first text that left, seconds.",
        )
        self._http = self._counter(
            "http_requests", "HTTP requests by route, status and caller.",
            "route", "status", "tenant",
        )  # fmt: skip
        self._http_seconds = self._histogram(
            "http_request_seconds", "Wall time of HTTP requests, seconds.", "route"
        )
        self.in_work = self._gauge("http_requests_in_work", "HTTP requests in work.")
        self._queues = self._gauge(
            "queue_length", "What waits: calls for a thread, sentences for the judge.", "queue"
        )
        self._running = self._gauge("calls_running", "Calls of graph and judge in work.")
        self._stuck = self._gauge("calls_stuck", "Calls that were given up and still run.")
        self._caches = self._counter(
            "cache_requests", "Look-ups in caches: verdicts, queries.",
            "cache", "result",
        )  # fmt: skip
        self._batches = Histogram(
            "kg_guardrail_judge_batch_sentences", "Sentences in a batch of the judge.",
            buckets=SENTENCES, registry=self._registry,
        )  # fmt: skip
        self._chat = self._counter(
            "chat_judge", "Calls and tokens of chat models as judges.", "what"
        )

    def _counter(self, name: str, told: str, *labels: str) -> Counter:
        return Counter(f"kg_guardrail_{name}", told, labels, registry=self._registry)

    def _histogram(self, name: str, told: str, *labels: str) -> Histogram:
        return Histogram(
            f"kg_guardrail_{name}", told, labels, buckets=SECONDS, registry=self._registry
        )

    def _gauge(self, name: str, told: str, *labels: str) -> Gauge:
        return Gauge(
            f"kg_guardrail_{name}", told, labels,
            registry=self._registry, multiprocess_mode="livesum",
        )  # fmt: skip

    def request(self, route: str, status: int, seconds: float, tenant: str = "") -> None:
        """Count a finished HTTP request."""
        self._http.labels(route, str(status), tenant).inc()
        self._http_seconds.labels(route).observe(seconds)
        self._watch()

    def first_release(self, seconds: float) -> None:
        """Note how long a stream's reader waited for its first text."""
        self._first.observe(seconds)

    def answers(self, answers: Sequence[GuardedAnswer], of: Judging) -> None:
        """Count verdicts.

        Args:
            answers: The verdicts on one reply; none where nothing of it was judged.
            of: Which they are.
        """
        if not answers:
            self._requests.labels(of.policy, of.phase, BYPASSED, "", of.tenant).inc()
        for answer in answers:
            policy = answer.versions.get("policy", of.policy)
            result = result_of(answer)
            error_type = error_type_of(answer)
            self._requests.labels(policy, of.phase, result, error_type, of.tenant).inc()
            total = answer.timings_ms.get("total", 0.0) / 1000.0
            self._latency.labels(policy, of.phase, result).observe(total)
            for stage, spent in answer.timings_ms.items():
                if stage != "total":
                    self._stages.labels(stage).observe(spent / 1000.0)
            for sentence in answer.judged:
                category = sentence.category or "no claim"
                self._sentences.labels(policy, of.phase, category).inc()

    def failed(self, error: Exception, of: Judging) -> None:
        """Count a call that an error left without a reply, where that is the guardrail's doing."""
        part = failed_part(error)
        if part is not None:
            self._requests.labels(of.policy, of.phase, ERROR, part, of.tenant).inc()

    def failed_call(self, error: Exception, state: Mapping[str, object]) -> None:
        """Count the same by what a call's state tells, where something of it was to be judged.

        Args:
            error: What ended it.
            state: Of the request; ``judging`` tells which answers were to be judged.
        """
        of = state.get("judging")
        if isinstance(of, Judging):
            self.failed(error, of)

    def page(self) -> bytes:
        """All numbers in Prometheus' text format, those of the other workers included."""
        self._watch()
        if MULTIPROCESS not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)

    def _watch(self) -> None:
        """Take over what the guardrail did since the last look, and what it does now."""
        before, now = self._seen, self._usage()
        self._seen = now
        for queue, length in now.queues.items():
            self._queues.labels(queue).set(length)
        self._running.set(now.running)
        self._stuck.set(now.stuck)
        for name, use in now.caches.items():
            known = before.caches.get(name, CacheUse())
            # A part that was made anew begins at nothing again.
            self._caches.labels(name, "hit").inc(max(0, use.hits - known.hits))
            self._caches.labels(name, "miss").inc(max(0, use.misses - known.misses))
        for size, times in now.batches.items():
            for _ in range(times - before.batches.get(size, 0)):
                self._batches.observe(size)
        for name, count in now.counts.items():
            self._chat.labels(name).inc(max(0, count - before.counts.get(name, 0)))


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
