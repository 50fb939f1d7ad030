"""How each call of the gateway is guarded: by its route, its caller, and the gateway's settings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fastapi import Request

from chains.gateway.requests import caller_of
from chains.gateway.routes import Route, in_dry_run, laid_over, route_of
from chains.gateway.tenants import Tenant, guarding_of
from chains.openai_text import Guarding

if TYPE_CHECKING:
    from chains.gateway.settings import GatewaySettings
    from guardrail import Guardrail

__all__ = ["Guardings"]


class Guardings:
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
        caller = caller_of(request)
        route = route_of(self._routes, request.url.path, model)
        return replace(self._laid_out[id(route), id(caller.tenant)], owner=caller.owner)

    def _over(self, route: Route | None, tenant: Tenant | None) -> Guarding:
        """What the sections of a route and a tenant make of the common guarding."""
        guarding = self.common if route is None else laid_over(route, self.common)
        return guarding if tenant is None else guarding_of(tenant, guarding)
