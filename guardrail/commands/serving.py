"""``guardrail serve`` and ``mcp``: the HTTP gateway, and the tools for agents."""

from __future__ import annotations

import errno
import socket
from dataclasses import make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

from pydantic.fields import FieldInfo

from chains.gateway.settings import REPEATED, GatewaySettings
from guardrail.commands.options import Judging, grouped, opt
from guardrail.config import GuardrailConfig, LogConfig, gateway_section
from guardrail.core.errors import ConfigError, MissingExtraError
from guardrail.core.fields import documented
from guardrail.policy import STRICT


def _option(name: str, field: FieldInfo, text: str) -> tuple[str, object, object]:
    """A setting of the gateway as an option; unset unless given."""
    kinds = get_args(field.annotation) or (field.annotation,)
    kind = next((kind for kind in (bool, int, float) if kind in kinds), str)
    default = field.get_default(call_default_factory=True)
    if default not in (None, (), {}):
        shown = {True: "yes", False: "no"}.get(default, default) if kind is bool else default
        text = f"{text} Default: {shown}."
    names = f"--{REPEATED[name]}" if name in REPEATED else ""
    typed = list[str] | None if name in REPEATED else kind | None
    # Placeholders of values in the help, where the type does not say enough
    metavars = {
        "upstream": "URL",
        "keys": "KEY",
        "upstream_key": "KEY",
        "tenants": "NAME=KEY",
        "routes": "CALLS=POLICY",
        "evidence_marks": "'OPEN CLOSE'",
        "protocols": "NAME",
    }
    return name, Annotated[typed, opt(names, text, metavars.get(name))], None


if TYPE_CHECKING:
    from types import SimpleNamespace as GatewayOptions
else:
    HELP = documented(GatewaySettings)
    GatewayOptions = make_dataclass(
        "GatewayOptions",
        [_option(name, field, HELP[name]) for name, field in GatewaySettings.model_fields.items()],
        frozen=True,
        kw_only=True,
    )
    """The settings of ``[gateway]``, by their names; None for unset."""


@grouped
def serve(
    *,
    gateway: GatewayOptions,
    judging: Judging,
    log: Annotated[Path | None, opt("", "Score log that /dashboard shows.", "FILE")] = None,
    dry_run: Annotated[
        bool, opt("--dry-run", "Return answers unchanged, judged and logged.")
    ] = False,
) -> None:
    """Serve an OpenAI-compatible gateway that guards every answer.

    What the upstream endpoint answers leaves it judged, by the policy of --policy, else of the
    settings, else strict. Without --upstream only what judges and shows is served: /v1/checks,
    /v1/rank, a page to try (/), the score log (/dashboard), /metrics, /healthz and /readyz.

    Settings of the gateway, all but --kg, --evidence, --config, --judge, --policy, --strictness,
    --log and --dry-run, can be set in the section [gateway] of the settings file and in the
    environment as GUARDRAIL_GATEWAY__… as well, lists (…KEYS, …PROTOCOLS, …ROUTES, …TENANTS) with
    commas between. The option wins over the environment, and that over the file. On another
    address than this machine's own and without a key, the gateway warns and keeps /dashboard and
    /metrics closed.
    """
    settings = strict_unless_named(judging.settings())
    try:
        from chains.gateway import run
    except ImportError as error:
        raise MissingExtraError(getattr(error, "name", None) or "starlette", "server") from error
    if dry_run:
        policy = settings.policy.changed(dry_run=True)
        settings = settings.model_copy(update={"policy": policy})
    if log is not None:
        settings = settings.model_copy(update={"log": LogConfig(path=log)})
    options = {name: value for name, value in vars(gateway).items() if value not in (None, [])}
    section = gateway_section(judging.config) if judging.config else {}
    found = GatewaySettings.from_env(options=options, section=section)
    require_free(found.host, found.port)
    run(settings, found)


@grouped
def mcp(*, judging: Judging) -> None:
    """Serve the tools check_answer and find_facts to agents, over the Model Context Protocol.

    The client starts this program and talks to it over stdin and stdout.
    """
    try:
        from chains.mcp_server import mcp_server, serve_stdio
    except ImportError as error:
        raise MissingExtraError(getattr(error, "name", None) or "mcp", "mcp") from error
    from guardrail.guard import Guardrail

    with Guardrail(judging.settings()) as guard:
        serve_stdio(mcp_server(guard))


def require_free(host: str, port: int) -> None:
    """Raise a ConfigError if a port cannot be listened on, before anything is loaded."""
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


def strict_unless_named(settings: GuardrailConfig) -> GuardrailConfig:
    """The gateway's configuration: ``strict`` where neither option nor settings name a policy."""
    if "policy" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"policy": STRICT})
