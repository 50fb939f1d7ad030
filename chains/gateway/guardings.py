"""How each call of the gateway is guarded: by its route, its caller, and the gateway's settings."""

from __future__ import annotations

from dataclasses import replace

from fastapi import Request

from chains.gateway.requests import caller_of
from chains.gateway.routes import in_dry_run, laid_over, route_of
from chains.gateway.settings import GatewaySettings
from chains.gateway.tenants import guarding_of
from chains.openai_text import Guarding
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
        policy = guard.config.policy
        self._settings = settings
        self.common = in_dry_run(
            Guarding(
                guard=guard,
                policy=policy,
                style=settings.style,
                mode=settings.stream_mode,
                evidence=settings.evidence,
                reasons=settings.reasons,
                rights=settings.rights,
            ),
            settings.dry_run or policy.dry_run,
        )

    def of(self, request: Request, model: object = None) -> Guarding:
        """How a call is guarded.

        Args:
            request: The call, which came through the door.
            model: What its body names as the model.
        """
        caller, guarding = caller_of(request), self.common
        route = route_of(self._settings.routes, request.url.path, model)
        if route is not None:
            guarding = laid_over(route, guarding)
        if caller.tenant is not None:
            guarding = guarding_of(caller.tenant, guarding)
        return replace(guarding, owner=caller.owner)
