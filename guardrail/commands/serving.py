"""``guardrail serve``: the HTTP gateway."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from guardrail.commands.options import EvidenceFiles, Judging, grouped
from guardrail.config import GuardrailConfig, LogConfig, gateway_section
from guardrail.core.errors import ConfigError, MissingExtraError
from guardrail.policy import STRICT

__all__ = ["mcp", "require_free", "serve", "strict_unless_named"]


@dataclass(frozen=True, kw_only=True)
class GatewayOptions:
    """Settings of the gateway, by their names in the section ``[gateway]``; None for unset."""

    upstream: Annotated[
        str | None,
        typer.Option(metavar="URL", help="OpenAI-compatible endpoint to guard, with /v1."),
    ] = None
    host: Annotated[str | None, typer.Option(help="Address to listen on (127.0.0.1).")] = None
    port: Annotated[int | None, typer.Option(help="Port to listen on (8000).")] = None
    workers: Annotated[int | None, typer.Option(help="Worker processes (1).")] = None
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help="Key that callers need, repeatable. GUARDRAIL_GATEWAY__KEYS keeps it out of the "
            "list of processes.",
        ),
    ] = None
    upstream_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Sent to the upstream in place of the caller's key. "
            "GUARDRAIL_GATEWAY__UPSTREAM_KEY keeps "
            "it out of the list of processes.",
        ),
    ] = None
    tenants: Annotated[
        list[str] | None,
        typer.Option(
            "--tenant",
            metavar="NAME=KEY",
            help="A caller with a name and a key, repeatable; what it may do stands in the "
            "settings file. GUARDRAIL_GATEWAY__TENANTS keeps keys out of the list of processes.",
        ),
    ] = None
    routes: Annotated[
        list[str] | None,
        typer.Option(
            "--route",
            metavar="CALLS=POLICY",
            help="A policy of some calls, by their model ('gpt-4o*=strict') or their path "
            "('/v1/responses=annotate'); repeatable. Thresholds stand in the settings file.",
        ),
    ] = None
    trusted_hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted-host",
            metavar="NAME",
            help="Name under which callers may reach the gateway, such as api.example.com or "
            "*.example.com; repeatable (any).",
        ),
    ] = None
    style: Annotated[
        str | None, typer.Option(help="Markers in the text: kalma (default), footnotes or none.")
    ] = None
    stream_mode: Annotated[
        str | None, typer.Option(help="sentence (default) or buffer: when judged text leaves.")
    ] = None
    inject: Annotated[
        str | None,
        typer.Option(
            help="What the model is shown of the evidence: off (default), facts, or prompt with "
            "an instruction to cite them."
        ),
    ] = None
    evidence_mode: Annotated[
        str | None,
        typer.Option(
            help="given (default): evidence of a request in place of the graph; both: beside it; "
            "graph: the graph alone."
        ),
    ] = None
    tool_results: Annotated[
        bool | None, typer.Option(help="Whether results of tools count as evidence (default: yes).")
    ] = None
    reply_searches: Annotated[
        bool | None,
        typer.Option(
            help="Whether the results of a file search in a reply count as evidence for it "
            "(default: no)."
        ),
    ] = None
    earlier_answers: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Earlier answers of a conversation whose own evidence counts again (default: 6).",
        ),
    ] = None
    evidence_marks: Annotated[
        str | None,
        typer.Option(
            metavar="'OPEN CLOSE'",
            help="Delimiters of evidence in messages, such as '<context> </context>'.",
        ),
    ] = None
    keep_parts: Annotated[
        bool | None,
        typer.Option(help="Send content parts of other gateways on as they are (default: no)."),
    ] = None
    dry_run: Annotated[
        bool | None,
        typer.Option(
            help="Let answers leave as the model wrote them; they are judged, recorded and counted "
            "all the same (default: no)."
        ),
    ] = None
    caller: Annotated[
        str | None,
        typer.Option(
            help="free (default) or strict: what callers may do unless one of the four options "
            "below says otherwise."
        ),
    ] = None
    caller_policy: Annotated[
        bool | None,
        typer.Option(help="Whether a request may name a policy or a strictness of its own."),
    ] = None
    caller_evidence: Annotated[
        bool | None, typer.Option(help="Whether evidence in a request counts.")
    ] = None
    caller_tools: Annotated[
        bool | None, typer.Option(help="Whether a request may bring tools.")
    ] = None
    caller_structured_output: Annotated[
        bool | None, typer.Option(help="Whether a request may ask for JSON.")
    ] = None
    reasons: Annotated[
        bool | None,
        typer.Option(
            help="Whether refused and filtered answers carry their reasons (default: yes)."
        ),
    ] = None
    media_calls: Annotated[
        bool | None,
        typer.Option(
            help="Pass calls of audio and images on; what they deliver is not judged (default: no)."
        ),
    ] = None
    protocols: Annotated[
        list[str] | None,
        typer.Option(
            "--protocol",
            metavar="NAME",
            help="Also answer the guardrail calls of another gateway, such as litellm; repeatable.",
        ),
    ] = None
    timeout_s: Annotated[
        float | None, typer.Option(help="Seconds for one exchange, streams included (600).")
    ] = None
    first_byte_s: Annotated[
        float | None, typer.Option(help="Seconds until the head of the upstream's reply (300).")
    ] = None
    connect_timeout_s: Annotated[
        float | None, typer.Option(help="Seconds to reach the upstream (10).")
    ] = None
    drain_s: Annotated[
        float | None, typer.Option(help="Seconds for exchanges in work at the end (30).")
    ] = None
    concurrency: Annotated[
        int | None, typer.Option(help="Exchanges in work at once in one worker (512).")
    ] = None
    max_body_bytes: Annotated[
        int | None, typer.Option(help="Largest request that is read (8 MiB).")
    ] = None
    body_timeout_s: Annotated[
        float | None, typer.Option(help="Seconds in which a request's body must be there (120).")
    ] = None
    body_bytes_per_s: Annotated[
        float | None, typer.Option(help="Fewest bytes a second of a body (1024).")
    ] = None
    address_bodies: Annotated[
        int | None, typer.Option(help="Bodies that one address may be sending at once (64).")
    ] = None
    address_concurrency: Annotated[
        int | None,
        typer.Option(
            help="Exchanges of one address in work at once (half of --concurrency without keys, "
            "else any number)."
        ),
    ] = None
    address_per_minute: Annotated[
        float | None, typer.Option(help="Requests of one address a minute (any number).")
    ] = None
    max_reply_bytes: Annotated[
        int | None, typer.Option(help="Most bytes of a reply, whole or streamed (32 MiB).")
    ] = None


@grouped
def serve(
    *,
    gateway: GatewayOptions,
    judging: Judging,
    evidence: EvidenceFiles = None,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Score log that /dashboard shows.")
    ] = None,
) -> None:
    """Serve an OpenAI-compatible gateway that guards every answer.

    What the upstream endpoint answers leaves it judged, by the policy of --policy, else of the
    settings, else strict. Without --upstream only what judges and shows is served: /v1/checks,
    /v1/rank, a page to try (/), the score log (/dashboard), /metrics, /healthz and /readyz.

    Settings of the gateway, all but --kg, --evidence, --config, --judge, --policy, --strictness
    and --log, may stand in the section [gateway] of the settings file and in the environment as
    GUARDRAIL_GATEWAY__… as well, lists (…KEYS, …PROTOCOLS, …ROUTES, …TENANTS, …TRUSTED_HOSTS) with
    commas between. The option wins over the environment, and that
    over the file. On another address than this machine's own and without a key, the gateway warns
    and keeps /dashboard and /metrics closed.
    """
    settings = strict_unless_named(judging.settings(evidence=evidence))
    try:
        from chains.gateway import GatewaySettings, run
    except ImportError as error:
        raise MissingExtraError(getattr(error, "name", None) or "fastapi", "server") from error
    if log is not None:
        settings = settings.model_copy(update={"log": LogConfig(path=log)})
    options = {name: value for name, value in vars(gateway).items() if value not in (None, [])}
    section = gateway_section(judging.config) if judging.config else {}
    found = GatewaySettings.from_env(options=options, section=section)
    require_free(found.host, found.port)
    run(settings, found)


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


@grouped
def mcp(*, judging: Judging, evidence: EvidenceFiles = None) -> None:
    """Serve the tools check_answer and find_facts to agents, over the Model Context Protocol.

    The client starts this program and talks to it over stdin and stdout.
    """
    try:
        from chains.mcp_server import mcp_server, serve_stdio
    except ImportError as error:
        raise MissingExtraError(getattr(error, "name", None) or "mcp", "mcp") from error
    from guardrail.guard import Guardrail

    with Guardrail(judging.settings(evidence=evidence)) as guard:
        serve_stdio(mcp_server(guard))


def strict_unless_named(settings: GuardrailConfig) -> GuardrailConfig:
    """The gateway's configuration: ``strict`` where neither option nor settings name a policy."""
    if "policy" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"policy": STRICT})
