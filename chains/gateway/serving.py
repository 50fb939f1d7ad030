"""Runs the gateway: one process, or several workers behind one socket."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from chains.gateway.app import DRAIN_S, create_app, freeze_loaded, sharing
from chains.gateway.metrics import MULTIPROCESS
from chains.gateway.protocols import STORE_VARIABLE, PendingRequests
from chains.gateway.settings import GatewaySettings
from guardrail import Guardrail, GuardrailConfig
from guardrail.core.errors import GraphUnavailableError
from guardrail.core.secrets import get_logger, public_url

log = get_logger("chains.gateway")
for server in ("uvicorn.access", "uvicorn.error"):  # addresses of requests, and tracebacks
    get_logger(server)

WORKER_VARIABLE = "KG_WORKER"
"""The guardrail's settings and the gateway's for the workers, both as JSON in a list."""


def run(config: GuardrailConfig, settings: GatewaySettings) -> None:
    """Serve until stopped; running exchanges are finished first.

    The guardrail is loaded, and its judge tested on three sentences, before anything is served.
    A graph that does not answer yet does not end the start: the gateway serves, is not ready,
    and asks it again.

    Raises:
        GuardrailError: A part of the guardrail cannot be loaded, or its judge fails the test.
    """
    if settings.open_to_network:
        log.warning(
            "anybody who reaches %s can use this gateway, since it has no key; /dashboard and "
            "/metrics stay closed; set --key or GUARDRAIL_GATEWAY__KEYS",
            settings.host,
        )
    if settings.upstream and not urlsplit(settings.upstream).path:
        log.warning(
            "the upstream's address has no path, so %s/chat/completions will be called; most "
            "servers answer below /v1",
            public_url(settings.upstream),
        )
    served = {
        "host": settings.host,
        "port": settings.port,
        "http": HeadTimeoutProtocol,
        "timeout_graceful_shutdown": int(DRAIN_S),
        "log_level": "info",
        "server_header": False,
    }
    with _exit_on_sigterm(), Guardrail(sharing(config)) as guard:
        with suppress(GraphUnavailableError):  # the application warns of it
            guard.warm_up()  # Workers load their own; one that fails would be restarted for ever.
        guard.self_test()
        if settings.workers == 1:
            uvicorn.run(create_app(guard, settings, on_loaded=freeze_loaded), **served)  # type: ignore[arg-type]
            return
    with tempfile.TemporaryDirectory(prefix="kg-gateway-") as folder:
        store = str(Path(folder, "requests.sqlite"))
        PendingRequests(store).close()  # created here, so that workers do not race for it
        before = dict(os.environ)
        os.environ |= {
            WORKER_VARIABLE: json.dumps([config.model_dump_json(), settings.json_with_keys()]),
            MULTIPROCESS: os.environ.get(MULTIPROCESS, folder),
            STORE_VARIABLE: store,
        }
        try:
            uvicorn.run(
                "chains.gateway.serving:worker_app",
                factory=True,
                workers=settings.workers,
                # Seconds until a silent worker is replaced; loading may take longer than 5.
                timeout_worker_healthcheck=120,
                **served,  # type: ignore[arg-type]
            )
        finally:
            os.environ.clear()
            os.environ |= before


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """End by SystemExit, so that the guardrail is closed; uvicorn raises the signal again."""

    def end(number: int, frame: object) -> None:
        raise SystemExit(0)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def worker_app() -> Starlette:
    """The application of one worker, from the environment that its parent prepared."""
    config, settings = json.loads(os.environ[WORKER_VARIABLE])
    return create_app(
        GuardrailConfig.model_validate_json(config),
        GatewaySettings.model_validate_json(settings),
        on_loaded=freeze_loaded,
    )


class HeadTimeoutProtocol(H11Protocol):
    """A connection that is closed if the head of a request does not arrive in time.

    If too many wait, the one that has waited longest is closed.
    """

    head_s: ClassVar = 30.0
    """Seconds for the head of a request, from its connection or its first byte."""
    most_waiting: ClassVar = 400
    """Connections of one process that may wait for a head; a process may have 1,024 files open."""
    waiting: ClassVar[dict[HeadTimeoutProtocol, asyncio.TimerHandle]] = {}
    """The connections of this process that wait for a head, the oldest first."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._update()

    def data_received(self, data: bytes) -> None:
        """Read data, and wait if a head is still to come."""
        super().data_received(data)
        self._update()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _update(self) -> None:
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            self._stop_waiting()
        elif self not in self.waiting:
            if len(self.waiting) >= self.most_waiting:
                next(iter(self.waiting))._give_up()
            self.waiting[self] = self.loop.call_later(self.head_s, self._give_up)

    def _stop_waiting(self) -> None:
        if (timer := self.waiting.pop(self, None)) is not None:
            timer.cancel()

    def _give_up(self) -> None:
        self._stop_waiting()
        self.transport.close()
