"""``guardrail serve``: the HTTP gateway."""

from __future__ import annotations

from typing import Annotated

import typer

from guardrail.commands.options import Config, Graph, JudgeName, PolicyName
from guardrail.errors import MissingExtraError

__all__ = ["serve"]


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
    policy: PolicyName = "strict",
) -> None:
    """Serve an OpenAI-compatible gateway that guards every answer of an upstream endpoint.

    Without --upstream only the checking endpoints and the page are served.
    """
    try:
        from chains.gateway import run
    except ImportError as error:
        raise MissingExtraError(getattr(error, "name", None) or "fastapi", "server") from error
    from guardrail.commands.answers import build_config

    run(
        build_config(config, kg=kg, judge=judge, policy=policy),
        upstream=upstream,
        host=host,
        port=port,
        workers=workers,
    )
