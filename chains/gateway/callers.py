"""Callers of the gateway: their keys, their rates, and how their answers are guarded."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Hashable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from chains.gateway.requests import RejectedError, address_of, too_many
from chains.gateway.settings import GatewaySettings, Override, Tenant, route_of
from chains.openai_request import GuardSettings
from guardrail import Guardrail
from guardrail.core.http_clients import TokenBucket
from guardrail.core.secrets import hiding
from guardrail.log.records import tagged


class Caller(NamedTuple):
    """Who calls: a tenant, one of the gateway's own keys (``key-1``), or anybody (no name).

    ``owner`` owns the ids in its requests; other callers' requests cannot refer to them.
    """

    name: str = ""
    owner: str = ""
    tenant: Tenant | None = None


def identify(settings: GatewaySettings, key: str | None) -> Caller | None:
    """The caller that has a key, in constant time; None if the key is unknown.

    Without keys of the gateway everybody may call, and a hash of the upstream's key is the owner.
    """
    if not settings.needs_key:
        return Caller(owner=hashlib.sha256(key.encode()).hexdigest()[:16] if key else "")
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


class AuthMiddleware:
    """Identifies callers by key, within the rates of address and tenant; sets ``state.caller``."""

    def __init__(self, app: ASGIApp, settings: GatewaySettings) -> None:
        self.app = app
        self._settings = settings
        self._rates = RateLimits()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; raises RejectedError (401 or 429)."""
        headers = Headers(scope=scope)
        key = key_of(headers)
        caller = identify(self._settings, key)
        # Keys and cookies must not appear in the reply or in a log.
        secrets = [headers.get(name, "") for name in ("api-key", "x-api-key", "cookie")]
        secrets += [headers.get("authorization", "").partition(" ")[2].strip(), key or ""]
        with ExitStack() as stack:
            stack.enter_context(hiding(*secrets))
            if self._settings.address_per_minute:
                self._rates.take(("", address_of(scope)), self._settings.address_per_minute)
            if caller is None:
                message = "this gateway needs one of its keys"
                challenge = {"www-authenticate": "Bearer"}
                raise RejectedError(401, message, "invalid_api_key", challenge)
            scope["state"]["caller"] = caller
            if caller.tenant and caller.tenant.per_minute:
                self._rates.take((caller.name, ""), caller.tenant.per_minute)
            if caller.name:
                stack.enter_context(tagged(tenant=caller.name))
            await self.app(scope, receive, send)


class RateLimits:
    """Requests per minute by name; a minute's worth may come at once.

    Of more than ``most_names`` names the one unseen for longest is dropped.
    """

    def __init__(self, most_names: int = 10_000) -> None:
        @lru_cache(most_names)
        def bucket_of(name: Hashable, per_minute: float) -> TokenBucket:
            return TokenBucket(per_minute / 60.0, per_minute)

        self._bucket_of = bucket_of

    def take(self, name: Hashable, per_minute: float) -> None:
        """Count a request; raises RejectedError (429) after too many in the last minute."""
        bucket = self._bucket_of(name, per_minute)
        if wait := bucket.wait():
            raise too_many("more requests per minute than allowed", wait)
        bucket.take()


class CallSettings:
    """How calls are guarded: by the guardrail's policy unless a route or tenant overrides it."""

    def __init__(self, guard: Guardrail, settings: GatewaySettings) -> None:
        policy = guard.require(guard.config.policy)
        if settings.upstream is None:
            policy.checking_only("a gateway without an upstream")
        self._routes = settings.routes
        common = GuardSettings(
            guard=guard,
            policy=policy,
            style=settings.style,
            mode=settings.stream_mode,
            inject=settings.inject,
            evidence=settings.evidence,
            rights=settings.caller,
        )
        common = _override(common, Override(dry_run=policy.dry_run))
        # Computed once for each pair, since validating a policy takes longer than a look-up.
        self._by_pair = {
            (id(route), id(tenant)): _override(common, route, tenant)
            for route in (None, *settings.routes.values())
            for tenant in (None, *settings.tenants.values())
        }

    def of(self, request: Request, model: object = None) -> GuardSettings:
        """How an admitted call is guarded; ``model`` is the one that its body names."""
        caller = caller_of(request)
        route = route_of(self._routes, request.scope["route"].path, model)
        return replace(self._by_pair[id(route), id(caller.tenant)], owner=caller.owner)


def _override(options: GuardSettings, *overrides: Override | None) -> GuardSettings:
    """The options with overrides, in order; callers choose the policy of checks themselves."""
    for override in filter(None, overrides):
        policy, checks = override.applied_to(options.policy), options.checks_policy
        if override.strictness:
            checks = checks.changed(strictness=override.strictness)
        checks = checks.changed(dry_run=policy.dry_run)
        options = replace(options, policy=policy, checks_policy=checks)
        if isinstance(override, Tenant) and override.caller is not None:
            options = replace(options, rights=override.caller)
    return options
