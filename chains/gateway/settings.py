"""Settings of the gateway: one model for the file, the environment and the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from chains.evidence.base import EvidenceMode, EvidenceSettings, Marks
from chains.options import CallerRights, Inject, MarkerStyle, StreamMode
from guardrail import STRICT, Policy
from guardrail.config import REMOVED
from guardrail.core.errors import ConfigError
from guardrail.core.fields import did_you_mean, in_short, plainly
from guardrail.core.secrets import RedactedRepr, register_secret
from guardrail.core.types import OwnStrictness, Seconds, Value
from guardrail.policy import policy_named

ENV_PREFIX = "GUARDRAIL_GATEWAY__"
"""``GUARDRAIL_GATEWAY__KEYS=a,b`` and so on, one variable for each field."""
REPEATED = {"keys": "key", "protocols": "protocol", "routes": "route", "tenants": "tenant"}
"""Lists, each with the option that may be given several times."""
PROTOCOL_PATHS = {
    "litellm": "/beta/litellm_basic_guardrail_api",
    "portkey": "/portkey/webhook",
    "truefoundry": "/truefoundry/guardrail",
    "fms": "/api/v1/text/context/doc",
}
"""Guardrail protocols of other gateways; ``chains.gateway.protocols`` has their handlers."""


def _split(value: object) -> object:
    """A list, from a text with commas."""
    if not isinstance(value, str):
        return value
    return [item for item in map(str.strip, value.split(",")) if item]


def _rights(value: object) -> object:
    """Rights as a table, from ``free``, ``strict`` or a list of names."""
    names, known = _split(value), tuple(CallerRights.model_fields)
    if not isinstance(names, list):
        return value
    for name in names:
        if name not in (*known, "free", "strict"):
            raise ValueError(f"unknown right {name!r}; {did_you_mean(str(name), known)}")
    return {name: name in names or "free" in names for name in known}


def _tenants(value: object) -> object:
    """Tenants as a table, from a list of ``NAME=KEY``."""
    items = _split(value)
    if not isinstance(items, list | tuple):
        return value
    found: dict[str, dict[str, list[str]]] = {}
    for item in map(str, items):
        name, _, key = item.partition("=")
        found.setdefault(name.strip(), {"keys": []})["keys"].append(key)
    return found


def _routes(value: object) -> object:
    """Routes as a table, from a list of ``MODEL=POLICY`` and ``/PATH=POLICY``."""
    items = _split(value)
    if not isinstance(items, list | tuple):
        return value
    found: dict[str, dict[str, str]] = {}
    for item in map(str, items):
        pattern, _, policy = (part.strip() for part in item.rpartition("="))
        if not pattern:
            raise ValueError("a route is MODEL=POLICY or /PATH=POLICY")
        found[pattern] = {"calls": pattern, "policy": policy}
    return found


def _no_empty_key(keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    if not all(key.get_secret_value() for key in keys):
        raise ValueError("a key is empty")
    return keys


Words = Annotated[tuple[str, ...], BeforeValidator(_split)]
"""A list of names, which may be written as one text with commas."""
Protocols = Annotated[
    tuple[Literal["litellm", "portkey", "truefoundry", "fms"], ...], BeforeValidator(_split)
]
TenantName = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9][\w.-]*$")]
Keys = Annotated[tuple[SecretStr, ...], BeforeValidator(_split), AfterValidator(_no_empty_key)]
Rights = Annotated[CallerRights, BeforeValidator(_rights)]
"""``free``, ``strict``, or a list of rights."""


class Override(Value):
    """How some answers are judged; None keeps the setting of the level above.

    The levels are the gateway, its route, its tenant, and the request.

    Attributes:
        policy: A policy's name, or a table of changes to the policy of the level above.
        strictness: How sure the judge must be.
        dry_run: Whether answers are returned unchanged.
    """

    policy: str | Mapping[str, object] | None = None
    strictness: OwnStrictness = None
    dry_run: bool | None = None

    @model_validator(mode="after")
    def _known_policy(self) -> Self:
        try:
            self.applied_to(STRICT)
        except ConfigError as error:
            raise ValueError(str(error)) from error
        return self

    def applied_to(self, policy: Policy) -> Policy:
        """The policy with these changes.

        Raises:
            ConfigError: A policy, field or value is unknown.
        """
        dry_run = policy.dry_run if self.dry_run is None else self.dry_run
        if isinstance(self.policy, str):
            policy = policy_named(self.policy)
        elif self.policy is not None:
            changes = dict(self.policy)
            base = changes.pop("base", None)
            policy = (policy_named(str(base)) if base else policy).changed(**changes)
            if self.dry_run is None and "dry_run" in changes:
                dry_run = policy.dry_run
        policy = policy.changed(dry_run=dry_run)
        return policy.changed(strictness=self.strictness) if self.strictness else policy


class Tenant(Override):
    """A named caller.

    Attributes:
        keys: Its keys; several while they are rotated.
        caller: Its rights; None for those of the gateway.
        per_minute: Most requests per minute and worker.
        concurrency: Most concurrent requests per worker.
    """

    keys: Keys = Field(min_length=1)
    caller: Rights | None = None
    per_minute: float | None = Field(default=None, gt=0)
    concurrency: int | None = Field(default=None, ge=1)


class Route(Override):
    """Calls by path or model.

    Attributes:
        calls: Paths such as ``/v1/responses``, and models as requests name them, with ``*`` and
            ``?``.
    """

    calls: Words = Field(min_length=1)

    def matches(self, path: str, model: object) -> bool:
        """Whether a call with this path and model takes the route."""
        return any(
            call.rstrip("/") == path.rstrip("/")
            if call.startswith("/")
            else isinstance(model, str) and fnmatchcase(model, call)
            for call in self.calls
        )

    def problem(self, protocols: tuple[str, ...]) -> str | None:
        """Why the route has no effect where these protocols are served; None if it has one."""
        # Calls that judge the caller's own texts name no model, and the caller decides what to do.
        texts = ("/v1/checks", "/v1/rank", PROTOCOL_PATHS["fms"])
        judged = {"/v1/chat/completions", "/v1/responses", "/v1/checks", "/v1/rank"}
        judged.update(PROTOCOL_PATHS[name] for name in protocols)
        for path in (call.rstrip("/") for call in self.calls if call.startswith("/")):
            if path not in judged:
                near = did_you_mean(path, sorted(judged))
                return f"nothing is judged at {in_short(path)}; {near}"
            if path in texts and self.policy is not None:
                return f"callers of {path} choose the policy; set strictness or dry_run alone"
        return None


def route_of(routes: Mapping[str, Route], path: str, model: object) -> Route | None:
    """The first route that matches a call; None if there is none."""
    return next((route for route in routes.values() if route.matches(path, model)), None)


class GatewaySettings(RedactedRepr, Value):
    """Settings of the gateway.

    Attributes:
        host: Address to listen on.
        port: Port; 0 for a free one.
        workers: Worker processes.
        upstream: OpenAI-compatible server, with ``/v1``; None serves only checks.
        upstream_key: Key sent upstream instead of the caller's.
        keys: Keys of this gateway, never forwarded; without any, the caller's key is forwarded.
        tenants: Named callers: tables ``[gateway.tenants.NAME]`` with ``keys`` and, optionally,
            ``policy``, ``strictness``, ``dry_run``, ``caller``, ``per_minute``, ``concurrency``;
            or ``NAME=KEY``.
        routes: Policies by path or model: tables ``[gateway.routes.NAME]`` with ``calls`` and
            ``policy``, ``strictness`` or ``dry_run``; or ``MODEL=POLICY``, ``/PATH=POLICY``. The
            first match applies; tenants override it.
        style: Style of markers: ``footnotes``, ``kalma`` or ``none``.
        stream_mode: Release streamed text per ``sentence`` or ``buffer`` it.
        inject: Evidence shown to the model: ``off``, ``facts``, or ``prompt`` with KaLMA's
            instruction and demonstration.
        evidence_mode: Evidence in a request replaces the graph (``given``), is added (``both``) or
            ignored (``graph``).
        evidence_marks: Delimiters of evidence in messages, separated by a space: ``<context>
            </context>``.
        caller: Rights of callers: ``free`` for all, ``strict`` for none, or a list of ``policy``
            (choose policy and strictness), ``evidence`` (bring it), ``tools`` (offer them),
            ``structured_output`` (request JSON) and ``reasons`` (see those of refused and filtered
            answers).
        protocols: Protocols of other gateways to serve.
        max_body_bytes: Maximum request size.
        timeout_s: Seconds per exchange, including streams.
        concurrency: Concurrent exchanges per worker; then status 503. Without keys, one address
            may use half of them.
        address_per_minute: Requests per minute, address and worker.
    """

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65_535)
    workers: int = Field(default=1, ge=1)
    upstream: str | None = None
    upstream_key: SecretStr | None = None
    keys: Keys = ()
    tenants: Annotated[Mapping[TenantName, Tenant], BeforeValidator(_tenants)] = Field(default={})
    routes: Annotated[Mapping[str, Route], BeforeValidator(_routes)] = Field(default={})
    style: MarkerStyle = MarkerStyle.FOOTNOTES
    stream_mode: StreamMode = StreamMode.SENTENCE
    inject: Inject = Inject.OFF
    evidence_mode: EvidenceMode = EvidenceMode.GIVEN
    evidence_marks: Marks | None = None
    caller: Rights = Field(default="free", validate_default=True)
    protocols: Protocols = ()
    max_body_bytes: int = Field(default=8 * 1024 * 1024, ge=1)
    timeout_s: Seconds = 600.0
    concurrency: int = Field(default=512, ge=1)
    address_per_minute: float | None = Field(default=None, gt=0)

    @property
    def needs_key(self) -> bool:
        """Whether callers need a key of this gateway."""
        return bool(self.keys or self.tenants)

    @property
    def open_to_network(self) -> bool:
        """Whether other machines can call without a key."""
        return not self.needs_key and self.host not in ("127.0.0.1", "localhost", "::1")

    @property
    def evidence(self) -> EvidenceSettings:
        """Where requests may hold evidence."""
        return EvidenceSettings(mode=self.evidence_mode, marks=self.evidence_marks)

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
    def _two_marks(cls, value: object) -> object:
        return tuple(value.split()) or None if isinstance(value, str) else value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if any(name.startswith("key-") for name in self.tenants):
            raise _problem_of("tenants", "names that begin with 'key-' are those of own keys")
        for name, route in self.routes.items():
            if (why := route.problem(self.protocols)) is not None:
                raise _problem_of("routes", f"route {name!r}: {why}")
        known = [register_secret(key.get_secret_value()) for key, _ in self.callers()]
        if self.upstream_key is not None:
            register_secret(self.upstream_key.get_secret_value())
        if len(set(known)) < len(known):
            raise _problem_of("keys", "two callers have the same key; give each its own")
        return self

    def callers(self) -> Iterator[tuple[SecretStr, str]]:
        """Each key with the name of its caller: the tenant's, else ``key-1`` and so on."""
        for place, key in enumerate(self.keys, start=1):
            yield key, f"key-{place}"
        for name, tenant in self.tenants.items():
            for key in tenant.keys:
                yield key, name

    def json_with_keys(self) -> str:
        """The settings as JSON for worker processes, keys included."""
        return json.dumps(self.model_dump(), default=lambda key: key.get_secret_value())

    @classmethod
    def from_env(
        cls,
        *,
        environ: Mapping[str, str] | None = None,
        options: Mapping[str, object] | None = None,
        section: Mapping[str, object] | None = None,
    ) -> Self:
        """Read the settings: options override the environment, which overrides the file.

        Args:
            environ: Variables to read; those of the process by default.
            options: Options of the command line, by the names of the settings.
            section: ``[gateway]`` of the settings file.

        Raises:
            ConfigError: A setting is unknown or malformed; the message names where it was given.
        """
        given = {
            name.removeprefix(ENV_PREFIX).lower(): text
            for name, text in (os.environ if environ is None else environ).items()
            if name.startswith(ENV_PREFIX)
        }
        options, section = options or {}, section or {}
        try:
            return cls.model_validate({**section, **given, **options})
        except ValidationError as error:
            problems = []
            for item in error.errors(include_input=False):
                name = str(item["loc"][0] if item["loc"] else item["ctx"]["setting"])
                spelled = (
                    option_of if name in options else variable_of if name in given else _in_file
                )
                why = plainly(item)
                place = ".".join(map(str, ("gateway", name, *item["loc"][2:])))
                if place in REMOVED:
                    why = f"this setting is gone; {REMOVED[place]}"
                elif item["type"] == "extra_forbidden" and len(item["loc"]) == 1:
                    near = get_close_matches(name, cls.model_fields, n=1)
                    hint = f"did you mean {spelled(near[0])!r}?" if near else None
                    why = f"unknown setting; {hint or 'see guardrail serve --help'}"
                problems.append(f"{spelled(name)}: {why}")
            raise ConfigError("; ".join(problems)) from None


def _problem_of(setting: str, why: str) -> PydanticCustomError:
    """A problem that is found when all settings are known."""
    return PydanticCustomError("gateway", "{why}", {"setting": setting, "why": why})


def option_of(name: str) -> str:
    """A setting as an option of the command."""
    return "--" + REPEATED.get(name, name).replace("_", "-")


def variable_of(name: str) -> str:
    """A setting as an environment variable."""
    return ENV_PREFIX + name.upper()


def _in_file(name: str) -> str:
    return f"[gateway] {name}"
