"""What the gateway counts, for Prometheus."""

from __future__ import annotations

import os
from collections.abc import Iterable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from guardrail import GuardedAnswer

__all__ = ["CONTENT_TYPE_LATEST", "MULTIPROCESS", "Metrics"]

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder through which the workers of one gateway add up their numbers."""

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class Metrics:
    """Counters of one gateway."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "guardrail_requests", "Requests by route and status.", ("route", "status"),
            registry=self._registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "guardrail_request_seconds", "Wall time of requests, seconds.", ("route",),
            buckets=SECONDS, registry=self._registry,
        )  # fmt: skip
        self._first = Histogram(
            "guardrail_first_release_seconds",
            "From a streamed request to its first judged text, seconds.",
            buckets=SECONDS, registry=self._registry,
        )  # fmt: skip
        self._actions = Counter(
            "guardrail_answers", "Answers by what the policy did.", ("policy", "action", "host"),
            registry=self._registry,
        )  # fmt: skip
        self._sentences = Counter(
            "guardrail_sentences", "Judged sentences by support, those removed included.",
            ("policy", "category", "host"),
            registry=self._registry,
        )  # fmt: skip
        self._tenants = Counter(
            "guardrail_tenant_requests", "Requests by the caller's name and status.",
            ("tenant", "status"), registry=self._registry,
        )  # fmt: skip
        self._tenant_answers = Counter(
            "guardrail_tenant_answers", "Answers by the caller's name and what the policy did.",
            ("tenant", "action"), registry=self._registry,
        )  # fmt: skip
        self.in_work = Gauge(
            "guardrail_requests_in_work", "Requests in work.",
            registry=self._registry, multiprocess_mode="livesum",
        )  # fmt: skip

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a finished request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def tenant_request(self, tenant: str, status: int) -> None:
        """Count a finished request of a caller with a name; keys are never told."""
        self._tenants.labels(tenant, str(status)).inc()

    def first_release(self, seconds: float) -> None:
        """Note how long a stream's reader waited for its first judged text."""
        self._first.observe(seconds)

    def answers(self, answers: Iterable[GuardedAnswer], host: str, tenant: str = "") -> None:
        """Count verdicts.

        Args:
            answers: The verdicts.
            host: Whose answers they are: ``chat``, ``responses``, ``checks``, or a protocol.
            tenant: Name of the caller; empty where it has none.
        """
        for answer in answers:
            policy = answer.versions.get("policy", "unknown")
            self._actions.labels(policy, answer.action.value, host).inc()
            if tenant:
                self._tenant_answers.labels(tenant, answer.action.value).inc()
            for sentence in answer.judged:
                category = sentence.category or "no claim"
                self._sentences.labels(policy, category, host).inc()

    def page(self) -> bytes:
        """All numbers in Prometheus' text format, those of the other workers included."""
        if MULTIPROCESS not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)
