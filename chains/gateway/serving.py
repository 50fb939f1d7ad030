"""Runs the gateway: one process, or several workers behind one socket."""

from __future__ import annotations

import gc
import os
import tempfile
from contextlib import ExitStack

import uvicorn
from fastapi import FastAPI

from chains.gateway.app import create_app
from chains.gateway.metrics import MULTIPROCESS
from chains.gateway.settings import ENV_PREFIX, GatewaySettings, sharing
from guardrail import Guardrail, GuardrailConfig

__all__ = ["run", "worker_app"]

SILENCE_S = 120
"""How long a worker may keep its parent waiting before it is replaced: loading judge and graph
on a busy machine can keep it from answering for longer than the server's own 5 seconds."""

CONFIG_VARIABLE = "KG_WORKER_CONFIG"
"""Hands the guardrail's settings from the parent to its workers, as JSON; they hold no key."""


def run(
    config: GuardrailConfig, *, upstream: str | None, host: str, port: int, workers: int = 1
) -> None:
    """Serve until told to stop; requests in work are then finished first.

    The guardrail is loaded before anything is served: one that cannot be used serves nobody.

    Args:
        config: Of the guardrail; its policy decides on answers.
        upstream: Address of the server to guard, with ``/v1``; None for the environment's.
        host: Address to listen on.
        port: Port to listen on; 0 for a free one.
        workers: Processes.

    Raises:
        ConfigError: A setting in the environment is unknown or malformed.
        GuardrailError: A part of the guardrail cannot be loaded.
    """
    settings = GatewaySettings.from_env(upstream=upstream)
    options = {
        "host": host,
        "port": port,
        "timeout_graceful_shutdown": int(settings.drain_s),
        "log_level": "info",
        "server_header": False,
    }
    if workers == 1:
        with Guardrail(sharing(config)) as guard:
            guard.warm_up()
            uvicorn.run(create_app(guard, settings, on_loaded=freeze_loaded), **options)  # type: ignore[arg-type]
        return
    with Guardrail(config) as tried:
        tried.warm_up()  # The workers load their own; one that fails would be started for ever.
    with ExitStack() as stack:
        os.environ[CONFIG_VARIABLE] = config.model_dump_json()
        if settings.upstream is not None:
            os.environ[f"{ENV_PREFIX}UPSTREAM"] = settings.upstream
        if MULTIPROCESS not in os.environ:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kg-gateway-"))
            os.environ[MULTIPROCESS] = folder
        uvicorn.run(
            "chains.gateway.serving:worker_app",
            factory=True,
            workers=workers,
            timeout_worker_healthcheck=SILENCE_S,
            **options,  # type: ignore[arg-type]
        )


def worker_app() -> FastAPI:
    """The application of one worker, from what its parent left in the environment."""
    config = GuardrailConfig.model_validate_json(os.environ[CONFIG_VARIABLE])
    return create_app(config, GatewaySettings.from_env(), on_loaded=freeze_loaded)


def freeze_loaded() -> None:
    """Take what is loaded by now out of garbage collection, for good.

    It stays as long as the process. To search all of it, as Python does from time to time, would
    hold up the requests in work for a fifth of a second.
    """
    gc.collect()
    gc.freeze()
