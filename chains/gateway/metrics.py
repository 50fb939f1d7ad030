"""Metrics for Prometheus, by policy, result, error and tenant; no text and no key."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chains.gateway.requests import (
    BrokenOffError,
    CallerGoneError,
    RejectedError,
    UpstreamUnreachableError,
    error_response,
)
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

M = TypeVar("M", bound=MetricWrapperBase)

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder through which the workers of one gateway add up their numbers."""


class Judging(NamedTuple):
    """Which answers are judged, in the labels of the metrics.

    The phase is ``output`` for a whole reply of the upstream, ``stream`` for a streamed one,
    ``check`` and ``rank`` for given texts, ``protocol`` for calls of other gateways.
    """

    phase: str
    policy: str
    tenant: str


def start_judging(request: Request, phase: str, policy: Policy) -> Judging:
    """Record how a call is judged, so that a failure is counted under the same labels."""
    judging = Judging(phase, policy.name, request.state.caller.name)
    request.state.judging = judging
    return judging


class MetricsMiddleware:
    """Counts requests by route, status and caller, and answers errors of inner middlewares."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request and count it."""
        status = 0
        state = scope.setdefault("state", {})

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        begin = time.perf_counter()
        self._metrics.in_work.inc()
        try:
            await self.app(scope, receive, noted)
        except CallerGoneError:
            pass
        except GuardrailError as error:
            await error_response(error)(scope, receive, noted)
        except Exception as error:
            status = status or 500
            self._metrics.failed(error, state.get("judging"))
            raise
        finally:
            self._metrics.in_work.dec()
            # The template: a path would make a series for each model's name.
            route = getattr(scope.get("route"), "path", "none")
            caller = state.get("caller")
            tenant, seconds = caller.name if caller else "", time.perf_counter() - begin
            status = status or 499  # the caller went away
            self._metrics.request(route, status, seconds, tenant)


class Metrics:
    """Metrics of one gateway; ``usage`` returns the guardrail's own counters."""

    def __init__(self, usage: Callable[[], Usage]) -> None:
        self._usage = usage
        self._seen = Usage()
        _forget_ended()
        self._registry = CollectorRegistry()

        def made(kind: type[M], name: str, text: str, *labels: str, **options: Any) -> M:
            name = f"kg_guardrail_{name}"
            return kind(name, text, labels, registry=self._registry, **options)

        counter = partial(made, Counter)
        seconds = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
        histogram = partial(made, Histogram, buckets=seconds)
        gauge = partial(made, Gauge, multiprocess_mode="livesum")
        answer = "policy", "phase", "result"
        self._requests = counter("requests", "Answers by result.", *answer, "error_type", "tenant")
        text = "Time to judge an answer, seconds; of a stream, its last part."
        self._latency = histogram("latency_seconds", text, *answer)
        self._stages = histogram("stage_seconds", "The same by stage, seconds.", "stage")
        text = "Judged sentences by category, removed ones included."
        self._sentences = counter("sentences", text, "policy", "phase", "category")
        text = "From a streamed request to its first released text, seconds."
        self.first_release = histogram("first_release_seconds", text)
        text = "HTTP requests by route, status and caller."
        self._http = counter("http_requests", text, "route", "status", "tenant")
        text = "Wall time of HTTP requests, seconds."
        self._http_seconds = histogram("http_request_seconds", text, "route")
        self.in_work = gauge("http_requests_in_work", "HTTP requests in work.")
        text = "Waiting calls for a thread, sentences for the judge."
        self._queues = gauge("queue_length", text, "queue")
        self._running = gauge("calls_running", "Calls of graph and judge in work.")
        self._stuck = gauge("calls_stuck", "Calls that were given up and still run.")
        text = "Look-ups in caches: verdicts, queries."
        self._caches = counter("cache_requests", text, "cache", "result")
        text = "Sentences in a batch of the judge."
        powers_of_two = [2**power for power in range(10)]
        self._batches = histogram("judge_batch_sentences", text, buckets=powers_of_two)
        self._chat = counter("chat_judge", "Calls and tokens of chat models as judges.", "what")

    def request(self, route: str, status: int, seconds: float, tenant: str = "") -> None:
        """Count a finished HTTP request."""
        self._http.labels(route, str(status), tenant).inc()
        self._http_seconds.labels(route).observe(seconds)
        self._watch()

    def answers(self, answers: Sequence[GuardedAnswer], judging: Judging) -> None:
        """Count the verdicts on one reply; none where nothing in it was judged.

        The result is that of the action; ``would_block`` if a dry run suppressed it, ``bypassed``
        for tool calls and data alone. Its error type is the most important part that failed.
        """
        results = {
            Action.PASS: "allowed",
            Action.ANNOTATE: "annotated",
            Action.CORRECT: "corrected",
            Action.FILTER: "filtered",
            Action.REGENERATE: "regenerated",
            Action.REFUSE: "refused",
            Action.UNVERIFIED: "unverified",
        }
        parts = ("kg", "judge", "checks", "model", "deadline", "overload", "input", "sentences")
        phase, tenant = judging.phase, judging.tenant
        if not answers:
            self._requests.labels(judging.policy, phase, "bypassed", "", tenant).inc()
        for answer in answers:
            policy = answer.versions.get("policy", judging.policy)
            result = "would_block" if answer.would_block else results[answer.action]
            failed = {problem.part for problem in answer.errors}
            error_type = next((part for part in parts if part in failed), "")
            self._requests.labels(policy, phase, result, error_type, tenant).inc()
            stages = dict(answer.timings_ms)
            total = stages.pop("total", 0.0)
            self._latency.labels(policy, phase, result).observe(total / 1000.0)
            for stage, spent in stages.items():
                self._stages.labels(stage).observe(spent / 1000.0)
            for sentence in answer.judged:
                category = sentence.category or "no claim"
                self._sentences.labels(policy, phase, category).inc()

    def failed(self, error: Exception, judging: object) -> None:
        """Count a judged call without a reply, unless caller or upstream caused the error."""
        external = UpstreamUnreachableError | UnreadableReplyError | BrokenOffError
        external |= RejectedError | InputError | ConfigError
        if not isinstance(judging, Judging) or isinstance(error, external):
            return
        types = {
            KnowledgeGraphError: "kg",
            JudgeError: "judge",
            ModelError: "model",
            DeadlineExceededError: "deadline",
            OverloadedError: "overload",
            RecordError: "records",
            MissingExtraError: "install",
        }
        part = next((name for kind, name in types.items() if isinstance(error, kind)), "internal")
        labels = (judging.policy, judging.phase, "error", part, judging.tenant)
        self._requests.labels(*labels).inc()

    def page(self) -> bytes:
        """The metrics of all workers in Prometheus' text format."""
        self._watch()
        if MULTIPROCESS not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)

    def _watch(self) -> None:
        """Update the metrics from the guardrail's counters."""
        before, now = self._seen, self._usage()
        self._seen = now
        for queue, length in now.queues.items():
            self._queues.labels(queue).set(length)
        self._running.set(now.running)
        self._stuck.set(now.stuck)
        for name, use in now.caches.items():
            known = before.caches.get(name, CacheUse())
            # A part that was made anew counts from zero again.
            self._caches.labels(name, "hit").inc(max(0, use.hits - known.hits))
            self._caches.labels(name, "miss").inc(max(0, use.misses - known.misses))
        for size, times in now.batches.items():
            for _ in range(times - before.batches.get(size, 0)):
                self._batches.observe(size)
        for name, count in now.counts.items():
            self._chat.labels(name).inc(max(0, count - before.counts.get(name, 0)))


def _forget_ended() -> None:
    """Remove the gauges of ended processes, earlier ones with this id included; counts stay."""
    folder = os.environ.get(MULTIPROCESS)
    for file in Path(folder).glob("gauge_live*_*.db") if folder else ():
        number = file.stem.rpartition("_")[2]
        if number.isdigit() and not _is_another_process(int(number)):
            with suppress(FileNotFoundError):  # another worker was faster
                mark_process_dead(int(number), folder)  # type: ignore[no-untyped-call]


def _is_another_process(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # another user's
    return number != os.getpid()
