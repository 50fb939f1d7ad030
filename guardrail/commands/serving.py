"""``guardrail serve``: the HTTP gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guardrail.commands.options import Config, Graph, JudgeName, PolicyName
from guardrail.commands.setup import build_config
from guardrail.config import GuardrailConfig
from guardrail.errors import MissingExtraError
from guardrail.policy import STRICT

__all__ = ["gateway_config", "mcp", "serve"]


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
    try:
        from chains.gateway import run
    except ImportError as error:
        raise MissingExtraError(getattr(error, "name", None) or "fastapi", "server") from error
    run(
        gateway_config(config, kg=kg, judge=judge, policy=policy),
        upstream=upstream,
        host=host,
        port=port,
        workers=workers,
    )


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
