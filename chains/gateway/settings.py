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
        port: Port to listen on; 0 for a free one.
        workers: Worker processes behind the port.
        upstream: Address of the OpenAI-compatible server, with its ``/v1``; None to serve the
            checking endpoints alone.
        upstream_key: Sent to the upstream in place of the caller's key. The environment keeps it
            out of the list of processes, and so with the keys below.
        keys: Keys of this gateway; where there are any, callers need one of them, and it is not
            passed on. Without, the caller's key is passed through to the upstream.
        tenants: Callers with a name: a table ``[gateway.tenants.NAME]`` each, with ``keys`` and, of
            its own, ``policy``, ``strictness``, ``dry_run``, ``caller`` and ``caller_…``,
            ``per_minute`` and ``concurrency``; or ``NAME=KEY``. A tenant sees its own records
            alone.
        routes: Calls that are judged by a policy of their own: a table ``[gateway.routes.NAME]``
            each, with ``paths`` or ``models`` and ``policy``, ``strictness`` or ``dry_run``; or
            ``MODEL=POLICY`` and ``/PATH=POLICY``. The first one that takes a call holds; what its
            caller's tenant says wins. One that could have no effect is refused.
        trusted_hosts: Names under which callers may reach the gateway, as the ``Host`` of their
            requests says it: ``api.example.com``, ``*.example.com``; empty for any.
        style: How markers look in the text: ``kalma``, ``footnotes`` or ``none``.
        stream_mode: When streamed text is released: ``sentence`` or ``buffer``.
        inject: What the model is shown of the evidence, in the system message or the
            instructions: ``off``, ``facts``, or ``prompt`` with KaLMA's instruction and
            demonstration.
        evidence_mode: Whether evidence in a request stands in place of the graph (``given``),
            beside it (``both``), or does not count (``graph``).
        tool_results: Whether results of tools in a conversation count as evidence.
        reply_searches: Whether the results of a file search that stand in a reply count as evidence
            for that reply. Without, a reply's own text never supports it.
        earlier_answers: Most earlier answers of a conversation whose own evidence counts again; 0
            for none.
        evidence_marks: Delimiters of a marked stretch in system and user messages, two with a
            space between them: ``<context> </context>``.
        keep_parts: Whether content parts of other gateways are sent on as they are.
        dry_run: Whether answers leave as the model wrote them, whatever the policy says; they are
            judged, recorded and counted all the same. A tenant's or a route's own ``dry_run`` wins.
        caller: What callers may do unless a setting below says otherwise: ``free`` for all of it,
            ``strict`` for none.
        caller_policy: Whether a request may name a policy or a strictness of its own.
        caller_evidence: Whether evidence in a request counts.
        caller_tools: Whether a request may bring tools; their results count as evidence then.
        caller_structured_output: Whether a request may ask for JSON.
        reasons: Whether refused and filtered answers carry their reasons.
        media_calls: Whether calls of audio and images are passed on. What they deliver
            (transcripts, pictures) is not judged.
        protocols: Protocols of other gateways to serve, by the names on the gateway's page.
        max_body_bytes: Largest request that is read.
        body_timeout_s: Seconds in which a request's body must be there.
        body_bytes_per_s: Fewest bytes a second of a body, after five seconds.
        address_bodies: Bodies that one address may be sending at once; more get status 429.
        address_concurrency: Exchanges of one address in work at once in one worker. Unless told,
            half of ``concurrency`` where callers need no key, and any number where they do.
        address_per_minute: Requests of one address a minute in one worker; any number unless told.
        max_reply_bytes: Most bytes of a reply that are read from the upstream, whole or streamed;
            what stands beside the answer (reasoning, token probabilities) counts.
        connect_timeout_s: Seconds to reach the upstream.
        first_byte_s: Seconds from the end of a request to the head of its reply; one of the
            upstream that only says *wait* (status 100 to 199) has no longer.
        timeout_s: Seconds for one exchange, streams included.
        drain_s: Seconds that exchanges in work get when the gateway is told to stop.
        concurrency: Exchanges in work at once in one worker; more get status 503.
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
