"""Settings of the gateway: command line, environment, settings file; never from a request."""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from chains.caller import CallerRights
from chains.evidence.base import EvidenceMode, EvidenceSettings, Marks
from chains.gateway.protocols import PROTOCOLS
from chains.gateway.routes import Routes, without_effect
from chains.gateway.tenants import NAME, Caller, Tenant, Tenants, rights_of
from chains.injection import Inject
from chains.openai_wire import MOST_REPLY_BYTES
from chains.styles import MarkerStyle, StreamMode
from guardrail.core.errors import ConfigError
from guardrail.core.fields import plainly
from guardrail.core.secrets import RedactedRepr, register_secret
from guardrail.core.types import MOST_SECONDS, Seconds, Value

if TYPE_CHECKING:
    from guardrail import GuardrailConfig

__all__ = ["ENV_PREFIX", "GatewaySettings", "option_of", "sharing", "variable_of"]

ENV_PREFIX = "GUARDRAIL_GATEWAY__"
"""``GUARDRAIL_GATEWAY__KEYS=a,b`` and so on, one variable for each field."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")

REPEATED = {
    "keys": "key",
    "protocols": "protocol",
    "routes": "route",
    "tenants": "tenant",
    "trusted_hosts": "trusted-host",
}
"""Lists, each with the option that may be given several times."""

JUDGE_CACHE = 65_536
"""Verdicts of the judges that the gateway remembers; about 50 MB with short texts."""


def sharing(config: GuardrailConfig) -> GuardrailConfig:
    """The guardrail's settings, with one memory of verdicts for all callers unless they tell."""
    if "judge_cache" in config.model_fields_set:
        return config
    return config.model_copy(update={"judge_cache": JUDGE_CACHE})


class GatewaySettings(RedactedRepr, Value):
    """What the gateway does beside judging.

    Attributes:
        host: Address to listen on.
        port: Port; 0 for a free one.
        workers: Worker processes.
        upstream: OpenAI-compatible server, with ``/v1``; None serves only checks.
        upstream_key: Key sent upstream instead of the caller's. Set keys in the environment to hide
            them from process lists.
        keys: Keys of this gateway, never forwarded; without any, the caller's key is forwarded.
        tenants: Named callers: tables ``[gateway.tenants.NAME]`` with ``keys`` and, optionally,
            ``policy``, ``strictness``, ``dry_run``, ``caller``, ``caller_…``, ``per_minute``,
            ``concurrency``; or ``NAME=KEY``.
        routes: Policies by path or model: tables ``[gateway.routes.NAME]`` with ``paths`` or
            ``models`` and ``policy``, ``strictness`` or ``dry_run``; or ``MODEL=POLICY``,
            ``/PATH=POLICY``. The first match applies; tenants override it.
        trusted_hosts: Accepted ``Host`` names: ``api.example.com``, ``*.example.com``; empty for
            any.
        style: Style of markers: ``kalma``, ``footnotes`` or ``none``.
        stream_mode: Release streamed text per ``sentence`` or ``buffer`` it.
        inject: Evidence shown to the model: ``off``, ``facts``, or ``prompt`` with KaLMA's
            instruction and demonstration.
        evidence_mode: Evidence in a request replaces the graph (``given``), is added (``both``) or
            ignored (``graph``).
        tool_results: Use tool results in a conversation as evidence.
        reply_searches: Use file-search results in a reply as evidence for that reply.
        earlier_answers: Earlier answers of a conversation whose evidence counts again.
        evidence_marks: Delimiters of evidence in messages, separated by a space: ``<context>
            </context>``.
        keep_parts: Forward content parts of other gateways unchanged.
        dry_run: Return answers unchanged, but judge, record and count them; tenants and routes
            override it.
        caller: Default rights of callers: ``free`` or ``strict``.
        caller_policy: Callers may choose policy and strictness.
        caller_evidence: Evidence in requests counts.
        caller_tools: Callers may offer tools.
        caller_structured_output: Callers may request JSON.
        reasons: Give reasons for refused and filtered answers.
        media_calls: Forward audio and image calls, unjudged.
        protocols: Protocols of other gateways to serve.
        max_body_bytes: Maximum request size.
        body_timeout_s: Seconds until a body must be complete.
        body_bytes_per_s: Minimum rate of a body after five seconds.
        address_bodies: Bodies in transit per address; then status 429.
        address_concurrency: Concurrent exchanges per address and worker. Default: half of
            ``concurrency`` without keys, else unlimited.
        address_per_minute: Requests per minute, address and worker.
        max_reply_bytes: Maximum size of an upstream reply, including reasoning and token
            probabilities.
        connect_timeout_s: Seconds to connect upstream.
        first_byte_s: Seconds until the head of the upstream's reply; statuses 100 to 199 do not
            extend it.
        timeout_s: Seconds per exchange, including streams.
        drain_s: Seconds for running exchanges at stop.
        concurrency: Concurrent exchanges per worker; then status 503.
    """

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65_535)
    workers: int = Field(default=1, ge=1)
    upstream: str | None = None
    upstream_key: SecretStr | None = None
    keys: tuple[SecretStr, ...] = ()
    tenants: Tenants = Field(default_factory=dict)
    routes: Routes = Field(default_factory=dict)
    trusted_hosts: tuple[str, ...] = ()
    style: MarkerStyle = MarkerStyle.KALMA
    stream_mode: StreamMode = StreamMode.SENTENCE
    inject: Inject = Inject.OFF
    evidence_mode: EvidenceMode = EvidenceMode.GIVEN
    tool_results: bool = True
    reply_searches: bool = False
    earlier_answers: int = Field(default=6, ge=0)
    evidence_marks: Marks | None = None
    keep_parts: bool = False
    dry_run: bool = False
    caller: Literal["free", "strict"] = "free"
    caller_policy: bool | None = None
    caller_evidence: bool | None = None
    caller_tools: bool | None = None
    caller_structured_output: bool | None = None
    reasons: bool = True
    media_calls: bool = False
    protocols: tuple[str, ...] = ()
    max_body_bytes: int = Field(default=8 * 1024 * 1024, ge=1)
    body_timeout_s: Seconds = 120.0
    body_bytes_per_s: float = Field(default=1024.0, gt=0)
    address_bodies: int = Field(default=64, ge=1)
    address_concurrency: int | None = Field(default=None, ge=1)
    address_per_minute: float | None = Field(default=None, gt=0)
    max_reply_bytes: int = Field(default=MOST_REPLY_BYTES, ge=1)
    connect_timeout_s: Seconds = 10.0
    first_byte_s: Seconds = 300.0
    timeout_s: Seconds = 600.0
    drain_s: float = Field(default=30.0, ge=0, le=MOST_SECONDS)
    concurrency: int = Field(default=512, ge=1)

    @property
    def rights(self) -> CallerRights:
        """What callers may do: each setting where it is given, else the preset."""
        return rights_of(self, CallerRights())

    @property
    def open_to_network(self) -> bool:
        """Whether other machines can call and no key keeps any of them out."""
        return not self.needs_key and self.host not in LOOPBACK

    @property
    def most_of_an_address(self) -> int:
        """Exchanges of one address in work at once; without keys nobody takes all the places."""
        if self.address_concurrency is not None:
            return self.address_concurrency
        return self.concurrency if self.needs_key else max(1, self.concurrency // 2)

    @property
    def needs_key(self) -> bool:
        """Whether callers need a key of this gateway."""
        return bool(self.keys or self.tenants)

    @field_validator("upstream")
    @classmethod
    def _plain_address(cls, address: str | None) -> str | None:
        if address is None:
            return None
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{address!r} is not an http or https address")
        if parts.query or parts.fragment:
            raise ValueError("the upstream's address takes no query and no fragment")
        return address.rstrip("/")

    @field_validator("evidence_marks", mode="before")
    @classmethod
    def _two(cls, value: object) -> object:
        return tuple(value.split()) or None if isinstance(value, str) else value

    @property
    def evidence(self) -> EvidenceSettings:
        """Where evidence is looked for in requests."""
        return EvidenceSettings(
            mode=self.evidence_mode,
            tools=self.tool_results,
            reply_searches=self.reply_searches,
            earlier=self.earlier_answers,
            marks=self.evidence_marks,
            keep_parts=self.keep_parts,
        )

    @field_validator("keys", "protocols", "trusted_hosts", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return [item.strip() for item in value.split(",")] if isinstance(value, str) else value

    @field_validator("keys")
    @classmethod
    def _no_empty_key(cls, keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        return tuple(key for key in keys if key.get_secret_value())

    @field_validator("tenants")
    @classmethod
    def _named(cls, tenants: Mapping[str, Tenant]) -> Mapping[str, Tenant]:
        for name in tenants:
            if not NAME.fullmatch(name) or name.startswith("key-"):
                raise ValueError(
                    f"{name!r} is no name of a tenant; use letters, digits, '.', '_' and '-', and "
                    "another beginning than 'key-'"
                )
        return tenants

    @model_validator(mode="after")
    def _one_caller_a_key(self) -> Self:
        known = [register_secret(key.get_secret_value()) for key, _ in self._callers()]
        if self.upstream_key is not None:
            register_secret(self.upstream_key.get_secret_value())
        if len(set(known)) < len(known):
            raise ValueError("two callers have the same key; give each its own")
        return self

    @model_validator(mode="after")
    def _routes_with_effect(self) -> Self:
        for name, route in self.routes.items():
            if (why := without_effect(route, self.protocols)) is not None:
                raise PydanticCustomError(
                    "routes", "route {name}: {why}", {"name": repr(name), "why": why}
                )
        return self

    @field_validator("trusted_hosts")
    @classmethod
    def _names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if "*" in name.removeprefix("*.") or "/" in name or ":" in name:
                raise ValueError(
                    f"{name!r} is no name of a host; write it without scheme and port, and a "
                    "wildcard as *.example.com"
                )
        return tuple(name for name in names if name)

    @field_validator("protocols")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name and name not in PROTOCOLS:
                near = get_close_matches(name, PROTOCOLS, n=1)
                hint = f"did you mean {near[0]!r}?" if near else ", ".join(PROTOCOLS)
                raise ValueError(f"there is no protocol {name!r}; {hint}")
        return tuple(name for name in names if name)

    @classmethod
    def from_env(
        cls,
        *,
        environ: Mapping[str, str] | None = None,
        options: Mapping[str, object] | None = None,
        section: Mapping[str, object] | None = None,
    ) -> Self:
        """Read the environment, under what the command line says and over what the file says.

        Args:
            environ: Variables to read; those of the process by default.
            options: Settings by name that win over the environment.
            section: ``[gateway]`` of the settings file.

        Raises:
            ConfigError: A setting is unknown or malformed; the message names where it stands, and
                of an unknown one the nearest.
        """
        given = _given(os.environ if environ is None else environ)
        options, section = options or {}, section or {}
        try:
            return cls.model_validate({**section, **given, **options})
        except ValidationError as error:
            problems = []
            for item in error.errors(include_input=False):
                whole = "routes" if item["type"] == "routes" else "keys"
                name = str(item["loc"][0]) if item["loc"] else whole
                if name in options:
                    spelled = option_of
                else:
                    spelled = variable_of if name in given else _in_the_file
                problems.append(f"{spelled(name)}: {_problem(cls, item, spelled)}")
            raise ConfigError("; ".join(problems)) from None

    def caller_with(self, key: str | None) -> Caller | None:
        """Who calls with a key; None for one that is not known. Takes the same time for any."""
        if not self.needs_key:
            return Caller.without_a_name(key)
        given = (key or "").encode()
        found = None
        for known, caller in self._callers():
            if hmac.compare_digest(given, known.get_secret_value().encode()):
                found = caller
        return found

    def _callers(self) -> Iterator[tuple[SecretStr, Caller]]:
        for place, key in enumerate(self.keys, start=1):
            yield key, Caller(f"key-{place}", f"key-{place}")
        for name, tenant in self.tenants.items():
            for key in tenant.keys:
                yield key, Caller(name, name, tenant)


def option_of(name: str) -> str:
    """A setting as an option of the command."""
    return "--" + REPEATED.get(name, name).replace("_", "-")


def _given(variables: Mapping[str, str]) -> dict[str, str]:
    """Settings from environment variables, by field name."""
    return {
        name.removeprefix(ENV_PREFIX).lower(): text
        for name, text in variables.items()
        if name.startswith(ENV_PREFIX)
    }


def variable_of(name: str) -> str:
    """A setting as a variable of the environment."""
    return ENV_PREFIX + name.upper()


def _in_the_file(name: str) -> str:
    return f"[gateway] {name}"


def _problem(
    model: type[GatewaySettings], problem: ErrorDetails, spelled: Callable[[str], str]
) -> str:
    """What is wrong with a setting; for one that there is not, the nearest, spelled alike."""
    if problem["type"] != "extra_forbidden":
        return plainly(problem)
    near = get_close_matches(str(problem["loc"][0]), model.model_fields, n=1)
    hint = f"did you mean {spelled(near[0])!r}?" if near else "see guardrail serve --help"
    return f"there is no such setting; {hint}"
