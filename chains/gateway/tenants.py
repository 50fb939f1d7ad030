"""Tenants: callers with a name, keys, a policy, rights and bounds; how each call is guarded."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field, SecretStr, field_validator

from chains.caller import CallerRights
from chains.gateway.routes import Judged, Route, in_dry_run, laid_over, route_of
from chains.openai_text import Guarding

if TYPE_CHECKING:
    from fastapi import Request

    from chains.gateway.settings import GatewaySettings
    from chains.openai_text import Guarding
    from guardrail import Guardrail

__all__ = [
    "NAME",
    "Caller",
    "GuardOptions",
    "Tenant",
    "Tenants",
    "guarding_of",
    "key_or_password",
    "rights_of",
    "secrets_of",
]

NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")
DIGITS = 16
"""Hexadecimal digits of a key's hash, which tells whose ids are whose."""


class Tenant(Judged):
    """One tenant of a gateway; what is None is as the gateway has it.

    Attributes:
        keys: Its keys; several while one takes another's place.
        caller: ``free`` or ``strict``, unless one of the four below says otherwise.
        caller_policy: Whether its requests may name a policy or a strictness.
        caller_evidence: Whether evidence in its requests counts.
        caller_tools: Whether its requests may bring tools.
        caller_structured_output: Whether its requests may ask for JSON.
        per_minute: Most requests a minute, in one worker.
        concurrency: Most requests in work at once, in one worker.
    """

    keys: tuple[SecretStr, ...] = Field(min_length=1)
    caller: Literal["free", "strict"] | None = None
    caller_policy: bool | None = None
    caller_evidence: bool | None = None
    caller_tools: bool | None = None
    caller_structured_output: bool | None = None
    per_minute: float | None = Field(default=None, gt=0)
    concurrency: int | None = Field(default=None, ge=1)

    @field_validator("keys", mode="before")
    @classmethod
    def _one(cls, keys: object) -> object:
        return (keys,) if isinstance(keys, str) else keys

    @field_validator("keys")
    @classmethod
    def _not_empty(cls, keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if not all(key.get_secret_value() for key in keys):
            raise ValueError("a key is empty")
        return keys


class Caller(NamedTuple):
    """Who calls.

    Attributes:
        name: The tenant's; ``key-1`` and so on for the gateway's own keys; empty where it has none.
        owner: Whose ids its requests name: no other caller's request reads what they stand for.
        tenant: The tenant; None for the gateway's own keys.
    """

    name: str = ""
    owner: str = ""
    tenant: Tenant | None = None

    @classmethod
    def without_a_name(cls, key: str | None) -> Caller:
        """Somebody whom any key lets in; the key is the upstream's, and tells owners apart."""
        return cls(owner=hashlib.sha256(key.encode()).hexdigest()[:DIGITS] if key else "")


def guarding_of(tenant: Tenant, otherwise: Guarding) -> Guarding:
    """How a tenant is guarded."""
    guarding = laid_over(tenant, otherwise)
    return replace(guarding, rights=rights_of(tenant, otherwise.rights))


def rights_of(given: object, otherwise: CallerRights) -> CallerRights:
    """What callers may do by settings: each where it is given, else the preset, else as before.

    Args:
        given: Has ``caller`` and a ``caller_…`` for each right.
        otherwise: What holds where it says nothing.
    """
    preset = getattr(given, "caller", None)
    found = {}
    for name, before in otherwise:
        told = getattr(given, f"caller_{name}")
        found[name] = told if told is not None else preset == "free" if preset else before
    return CallerRights(**found)


def key_or_password(headers: Mapping[str, str]) -> str | None:
    """The key of a call: a bearer's token, a page's password, or where others put it."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(token, validate=True).decode("utf-8").partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return None
    return headers.get("api-key") or headers.get("x-api-key")


def secrets_of(headers: Mapping[str, str]) -> list[str]:
    """What a call must not find in its reply, nor anybody in a log: its keys and cookies."""
    found = [headers.get(name, "") for name in ("api-key", "x-api-key", "cookie")]
    _, _, token = headers.get("authorization", "").partition(" ")
    return [*filter(None, (*found, token.strip(), key_or_password(headers)))]


def _by_name(value: object) -> object:
    """Tenants as a table, or as ``NAME=KEY`` in a list or with commas between."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        return value
    found: dict[str, dict[str, list[str]]] = {}
    for item in filter(None, map(str.strip, map(str, items))):
        name, _, key = item.partition("=")
        found.setdefault(name.strip(), {"keys": []})["keys"].append(key)
    return found


Tenants = Annotated[Mapping[str, Tenant], BeforeValidator(_by_name)]
"""The type of the setting that names tenants."""


class GuardOptions:
    """Gives the guarding of a call.

    Args:
        guard: The guardrail; the policy of its configuration decides unless a section says else.
        settings: Of the gateway.

    Attributes:
        common: That of callers and calls without a section of their own.
    """

    def __init__(self, guard: Guardrail, settings: GatewaySettings) -> None:
        policy = guard.require(guard.config.policy)
        if settings.upstream is None:
            policy.checking_only("a gateway without an upstream")
        self._routes = settings.routes
        self.common = in_dry_run(
            Guarding(
                guard=guard,
                policy=policy,
                style=settings.style,
                mode=settings.stream_mode,
                inject=settings.inject,
                evidence=settings.evidence,
                reasons=settings.reasons,
                rights=settings.rights,
                max_reply_bytes=settings.max_reply_bytes,
            ),
            settings.dry_run or policy.dry_run,
        )
        # Each pair of sections is laid out once: checking a policy takes longer than a look-up.
        self._laid_out = {
            (id(route), id(tenant)): self._over(route, tenant)
            for route in (None, *settings.routes.values())
            for tenant in (None, *settings.tenants.values())
        }

    def of(self, request: Request, model: object = None) -> Guarding:
        """How a call is guarded.

        Args:
            request: The call, which came through the door.
            model: What its body names as the model.
        """
        caller: Caller = request.state.caller
        route = route_of(self._routes, request.url.path, model)
        return replace(self._laid_out[id(route), id(caller.tenant)], owner=caller.owner)

    def _over(self, route: Route | None, tenant: Tenant | None) -> Guarding:
        """What the sections of a route and a tenant make of the common guarding."""
        guarding = self.common if route is None else laid_over(route, self.common)
        return guarding if tenant is None else guarding_of(tenant, guarding)
