"""``guardrail serve``: the HTTP gateway."""

from __future__ import annotations

import errno
import socket
from pathlib import Path
from typing import Annotated

import typer

from guardrail.commands.options import Config, Graph, JudgeName, PolicyName
from guardrail.commands.setup import build_config
from guardrail.config import GuardrailConfig
from guardrail.errors import ConfigError, MissingExtraError
from guardrail.policy import STRICT

__all__ = ["gateway_config", "mcp", "require_free", "serve"]


def serve(
    upstream: Annotated[
        str | None,
        typer.Option(metavar="URL", help="OpenAI-compatible endpoint to guard, with /v1."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    kg: Graph = None,
    config: Config = None,
    judge: JudgeName = None,
    policy: PolicyName = None,
) -> None:
    """Serve an OpenAI-compatible gateway that guards every answer.

    What the upstream endpoint answers leaves it judged, by the policy of --policy, else of the
    settings, else strict. Without --upstream only what judges and shows is served: /v1/checks,
    /v1/rank, a page to try (/), the score log (/dashboard), /metrics, /healthz and /readyz.
    """
    settings = gateway_config(config, kg=kg, judge=judge, policy=policy)
    require_free(host, port)
    try:
        from chains.gateway import run
    except ImportError as error:
        raise MissingExtraError(getattr(error, "name", None) or "fastapi", "server") from error
    run(
        settings,
        upstream=upstream,
        host=host,
        port=port,
        workers=workers,
    )


def require_free(host: str, port: int) -> None:
    """Make sure that a port can be listened on, before anything is loaded.

    Raises:
        ConfigError: It is in use, or the address is not one of this machine.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
    except OSError as error:
        advice = "choose another with --port" if error.errno == errno.EADDRINUSE else "see --host"
        raise ConfigError(
            f"cannot listen on {host}, port {port}: {error.strerror}; {advice}"
        ) from error


def mcp(
    kg: Graph = None,
    config: Config = None,
    judge: JudgeName = None,
    policy: PolicyName = None,
) -> None:
    """Serve the tools check_answer and find_facts to agents, over the Model Context Protocol.

    The client starts this program and talks to it over stdin and stdout.
    """
    try:
        from chains.mcp_server import mcp_server
    except ImportError as error:
        raise MissingExtraError(getattr(error, "name", None) or "mcp", "mcp") from error
    from guardrail.guard import Guardrail

    with Guardrail(build_config(config, kg=kg, judge=judge, policy=policy)) as guard:
        mcp_server(guard).run()


def gateway_config(
    config: Path | None, *, kg: str | None, judge: str | None, policy: str | None
) -> GuardrailConfig:
    """The gateway's configuration: ``strict`` where neither option nor settings name a policy.

    Raises:
        ConfigError: A setting or a name is unknown.
    """
    settings = build_config(config, kg=kg, judge=judge, policy=policy)
    if "policy" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"policy": STRICT})
