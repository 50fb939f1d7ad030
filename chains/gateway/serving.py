"""Runs the gateway: one process, or several workers behind one socket."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import h11
import uvicorn
from fastapi import FastAPI
from starlette.types import Lifespan
from uvicorn.protocols.http.h11_impl import H11Protocol

from chains.gateway.app import create_app
from chains.gateway.loading import freeze_loaded
from chains.gateway.metrics import MULTIPROCESS, forget_gone
from chains.gateway.protocols.kept import KEPT_VARIABLE, KeptRequests
from chains.gateway.settings import GatewaySettings, sharing
from guardrail import Guardrail, GuardrailConfig
from guardrail.core.secrets import get_logger, public_url

__all__ = ["HeadsInTime", "run", "worker_app"]

log = get_logger("chains.gateway")
for server in ("uvicorn.access", "uvicorn.error"):  # addresses of requests, and tracebacks
    get_logger(server)

SILENCE_S = 120
"""How long a worker may keep its parent waiting before it is replaced: loading judge and graph
on a busy machine can keep it from answering for longer than the server's own 5 seconds."""

SETTINGS_VARIABLE = "KG_WORKER_SETTINGS"
"""Hands the gateway's settings from the parent to its workers, as the environment does."""

CONFIG_VARIABLE = "KG_WORKER_CONFIG"
"""Hands the guardrail's settings from the parent to its workers, as JSON; they hold no key."""


def run(config: GuardrailConfig, settings: GatewaySettings) -> None:
    """Serve until told to stop; requests in work are then finished first.

    The guardrail is loaded before anything is served, and its judge tells three sentences apart:
    one that cannot be used serves nobody.

    Raises:
        GuardrailError: A part of the guardrail cannot be loaded, or its judge is wrong.
    """
    if settings.open_to_network:
        log.warning(
            "anybody who reaches %s can use this gateway, since it has no key; /dashboard and "
            "/metrics stay closed: give it one with --key or GUARDRAIL_GATEWAY__KEYS",
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
        "http": HeadsInTime,
        "timeout_graceful_shutdown": int(settings.drain_s),
        "log_level": "info",
        "server_header": False,
    }
    if settings.workers == 1:
        with ended_in_order(), Guardrail(sharing(config)) as guard:
            guard.warm_up()
            guard.self_test()
            uvicorn.run(create_app(guard, settings, on_loaded=freeze_loaded), **served)  # type: ignore[arg-type]
        return
    with Guardrail(config) as tried:
        tried.warm_up()  # The workers load their own; one that fails would be started for ever.
        tried.self_test()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kg-gateway-"))
        kept = str(Path(folder, "requests.sqlite"))
        KeptRequests(kept).close()  # made here, lest workers race for it
        given = {
            CONFIG_VARIABLE: config.model_dump_json(),
            SETTINGS_VARIABLE: settings_json(settings),
            MULTIPROCESS: os.environ.get(MULTIPROCESS, folder),
            KEPT_VARIABLE: kept,
        }
        before = {name: os.environ[name] for name in given if name in os.environ}
        stack.callback(os.environ.update, before)
        for name in given.keys() - before.keys():
            stack.callback(os.environ.pop, name, None)
        os.environ.update(given)
        uvicorn.run(
            "chains.gateway.serving:worker_app",
            factory=True,
            workers=settings.workers,
            timeout_worker_healthcheck=SILENCE_S,
            **served,  # type: ignore[arg-type]
        )


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Leave what is inside in order where a signal ends the process: its log is closed, above all.

    The server ends the process by the very signal that told it to stop.
    """

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


def settings_json(settings: GatewaySettings) -> str:
    """The settings as JSON for the workers, keys included: they go no further than them."""
    return json.dumps(settings.model_dump(), default=lambda key: key.get_secret_value())


def worker_app() -> FastAPI:
    """The application of one worker, from what its parent left in the environment."""
    config = GuardrailConfig.model_validate_json(os.environ[CONFIG_VARIABLE])
    given = os.environ.get(SETTINGS_VARIABLE)
    settings = (
        GatewaySettings.from_env() if given is None else GatewaySettings.model_validate_json(given)
    )
    forget_gone(itself=True)
    app = create_app(config, settings, on_loaded=freeze_loaded)
    app.router.lifespan_context = _forgotten_at_the_end(app.router.lifespan_context)
    return app


def _forgotten_at_the_end(lifespan: Lifespan[FastAPI]) -> Lifespan[FastAPI]:
    """The life of a worker, behind which nothing of it is in work."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        async with lifespan(app):
            yield
        forget_gone(itself=True)

    return life


HEAD_S = 30.0
"""Seconds in which the head of a request must be there, from its connection or its first byte."""
MOST_WAITING = 400
"""Connections of one process that may wait for a head; a process may have 1,024 files open."""


class HeadsInTime(H11Protocol):
    """A connection that ends where the head of a request does not come.

    Of more than ``MOST_WAITING`` that wait the one that has waited longest ends: who means to ask
    sends the head at once.
    """

    waiting: ClassVar[dict[HeadsInTime, asyncio.TimerHandle]] = {}
    """The connections of this process that wait for a head, the oldest first."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._wait_or_not()

    def data_received(self, data: bytes) -> None:
        """Take what came, and look whether a head is still to come."""
        super().data_received(data)
        self._wait_or_not()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._wait_no_longer()
        super().connection_lost(exc)

    def _wait_or_not(self) -> None:
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            self._wait_no_longer()
        elif self not in self.waiting:
            if len(self.waiting) >= MOST_WAITING:
                next(iter(self.waiting))._give_up()
            self.waiting[self] = self.loop.call_later(HEAD_S, self._give_up)

    def _wait_no_longer(self) -> None:
        timer = self.waiting.pop(self, None)
        if timer is not None:
            timer.cancel()

    def _give_up(self) -> None:
        self._wait_no_longer()
        self.transport.close()
