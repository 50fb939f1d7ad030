"""Who calls the gateway, and how the answers to a call are guarded."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from chains.gateway.settings import GatewaySettings, Override, Route, Tenant, rights_of, route_of
from chains.openai_request import GuardSettings

if TYPE_CHECKING:
    from fastapi import Request

    from guardrail import Guardrail

__all__ = ["CallSettings", "Caller", "caller_of", "identify", "key_of", "secrets_of"]

DIGITS = 16
"""Hexadecimal digits of a key's hash."""


class Caller(NamedTuple):
    """Who calls.

    Attributes:
        name: The tenant's; ``key-1`` and so on for the gateway's own keys; empty without keys.
        owner: Owner of the ids in its requests; other callers' requests cannot refer to them.
        tenant: The tenant; None for the gateway's own keys.
    """

    name: str = ""
    owner: str = ""
    tenant: Tenant | None = None


def identify(settings: GatewaySettings, key: str | None) -> Caller | None:
    """The caller that has a key, in constant time; None if the key is unknown.

    Without keys of the gateway everybody may call, and a hash of the upstream's key is the owner.
    """
    if not settings.needs_key:
        return Caller(owner=hashlib.sha256(key.encode()).hexdigest()[:DIGITS] if key else "")
    given, found = (key or "").encode(), None
    for known, name in settings.callers():
        if hmac.compare_digest(given, known.get_secret_value().encode()):
            found = Caller(name, name, settings.tenants.get(name))
    return found


def caller_of(request: Request) -> Caller:
    """Who sent a request that was admitted."""
    caller: Caller = request.state.caller
    return caller


def key_of(headers: Mapping[str, str]) -> str | None:
    """The key of a call: a bearer token, the password of a page, or a header of Azure's kind."""
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
    """Keys and cookies of a call, which must not appear in its reply or in a log."""
    found = [headers.get(name, "") for name in ("api-key", "x-api-key", "cookie")]
    _, _, token = headers.get("authorization", "").partition(" ")
    return [*filter(None, (*found, token.strip(), key_of(headers)))]


class CallSettings:
    """How the calls of each route and tenant are guarded.

    Args:
        guard: The guardrail; its policy applies unless a route or tenant overrides it.
        settings: Of the gateway.

    Attributes:
        common: For calls without a route or tenant.
    """

    def __init__(self, guard: Guardrail, settings: GatewaySettings) -> None:
        policy = guard.require(guard.config.policy)
        if settings.upstream is None:
            policy.checking_only("a gateway without an upstream")
        self._routes = settings.routes
        self.common = _overridden(
            GuardSettings(
                guard=guard,
                policy=policy,
                style=settings.style,
                mode=settings.stream_mode,
                inject=settings.inject,
                evidence=settings.evidence,
                reasons=settings.reasons,
                rights=rights_of(settings.caller),
                max_reply_bytes=settings.max_reply_bytes,
            ),
            Override(dry_run=settings.dry_run or policy.dry_run),
        )
        # Computed once for each pair, since validating a policy takes longer than a look-up.
        self._by_pair = {
            (id(route), id(tenant)): self._combined(route, tenant)
            for route in (None, *settings.routes.values())
            for tenant in (None, *settings.tenants.values())
        }

    def of(self, request: Request, model: object = None) -> GuardSettings:
        """How an admitted call is guarded; ``model`` is the one that its body names."""
        caller = caller_of(request)
        route = route_of(self._routes, request.url.path, model)
        return replace(self._by_pair[id(route), id(caller.tenant)], owner=caller.owner)

    def _combined(self, route: Route | None, tenant: Tenant | None) -> GuardSettings:
        guarding = _overridden(self.common, route) if route else self.common
        if tenant is not None:
            guarding = _overridden(guarding, tenant)
            if tenant.caller is not None:
                guarding = replace(guarding, rights=rights_of(tenant.caller))
        return guarding


def _overridden(guarding: GuardSettings, override: Override) -> GuardSettings:
    """The options with an override; the policy of checks, the caller's to choose, stays."""
    policy, checks = override.applied_to(guarding.policy), guarding.checks_policy
    if override.strictness:
        checks = checks.changed(strictness=override.strictness)
    return replace(guarding, policy=policy, checks_policy=checks.changed(dry_run=policy.dry_run))
