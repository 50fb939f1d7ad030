"""What holds for some calls of the gateway alone: a policy, a strictness, a dry run.

Sections say it, of a tenant or of a route, and each lays what it says over what held before: the
gateway's settings, then the route's, then the tenant's, then what the request may name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import BeforeValidator, field_validator, model_validator

from chains.gateway.protocols import PROTOCOLS
from guardrail import STRICT, Policy
from guardrail.core.fields import did_you_mean, in_short
from guardrail.core.types import OwnStrictness, Value
from guardrail.policy import policy_named

if TYPE_CHECKING:
    from chains.openai_text import Guarding

__all__ = ["Judged", "Route", "Routes", "in_dry_run", "laid_over", "route_of", "without_effect"]

ANSWERS = ("/v1/chat/completions", "/v1/responses")
"""Paths of calls whose answers are judged before they leave."""
TEXTS = ("/v1/checks", "/v1/rank", PROTOCOLS["fms"][0])
"""Those of calls that hand over texts: they name no model, and their caller decides what to do."""


class Judged(Value):
    """How some answers are judged; what is None is as it was before.

    Attributes:
        policy: A policy's name, or a table of what differs from the one that held before.
        strictness: How sure the judge must be.
        dry_run: Whether these answers leave as the model wrote them.
    """

    policy: str | Mapping[str, object] | None = None
    strictness: OwnStrictness = None
    dry_run: bool | None = None

    @model_validator(mode="after")
    def _known_policy(self) -> Self:
        self.policy_over(STRICT)
        return self

    def policy_over(self, before: Policy) -> Policy:
        """The policy of these answers.

        Raises:
            ConfigError: It names a policy, a field or a value that there is not.
        """
        policy, dry_run = before, self.dry_run
        if isinstance(self.policy, str):
            policy = policy_named(self.policy)
        elif self.policy is not None:
            changes = dict(self.policy)
            base = changes.pop("base", None)
            policy = (policy_named(str(base)) if base else before).changed(**changes)
            dry_run = policy.dry_run if dry_run is None and "dry_run" in changes else dry_run
        policy = policy.changed(dry_run=before.dry_run if dry_run is None else dry_run)
        return policy.changed(strictness=self.strictness) if self.strictness else policy


class Route(Judged):
    """Some calls, and how their answers are judged.

    Attributes:
        paths: Paths of calls, such as ``/v1/responses``; empty for any.
        models: Models that requests name, with ``*`` and ``?`` as in names of files; empty for
            any.
    """

    paths: tuple[str, ...] = ()
    models: tuple[str, ...] = ()

    @field_validator("paths", "models", mode="before")
    @classmethod
    def _one(cls, names: object) -> object:
        return (names,) if isinstance(names, str) else names

    @model_validator(mode="after")
    def _some_calls(self) -> Self:
        if not self.paths and not self.models:
            raise ValueError("name the calls that it is for, with paths or models")
        return self

    def takes(self, path: str, model: object) -> bool:
        """Whether a call goes this way.

        Args:
            path: Of the call.
            model: What its body names as the model; None where there is none.
        """
        named = isinstance(model, str) and any(fnmatchcase(model, like) for like in self.models)
        there = path.rstrip("/") in {known.rstrip("/") for known in self.paths}
        return (named or not self.models) and (there or not self.paths)


def _by_pattern(value: object) -> object:
    """Routes as a table, or as ``MODEL=POLICY`` and ``/PATH=POLICY``, in a list or with commas."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        return value
    found: dict[str, dict[str, str]] = {}
    for item in filter(None, map(str.strip, map(str, items))):
        pattern, _, policy = item.rpartition("=")
        calls = "paths" if pattern.startswith("/") else "models"
        found[pattern.strip()] = {calls: pattern.strip(), "policy": policy.strip()}
    return found


Routes = Annotated[Mapping[str, Route], BeforeValidator(_by_pattern)]
"""The type of the setting that names routes."""


def route_of(routes: Mapping[str, Route], path: str, model: object) -> Route | None:
    """The first route that takes a call; None where none does."""
    return next((route for route in routes.values() if route.takes(path, model)), None)


def without_effect(route: Route, protocols: Collection[str]) -> str | None:
    """Why a route does not do what it says; None where it does.

    Args:
        route: The route.
        protocols: Names of the protocols that are served.
    """
    off = {path: name for name, (path, _) in PROTOCOLS.items() if name not in protocols}
    judged = {*ANSWERS, *TEXTS, *(path for path, _ in PROTOCOLS.values())} - off.keys()
    for path in (known.rstrip("/") for known in route.paths):
        if path in off:
            return f"{path} is not served; switch on the protocol {off[path]!r}"
        if path not in judged:
            near = did_you_mean(path, sorted(judged))
            return f"nothing is judged at {in_short(path)}; {near}"
        if path in TEXTS and route.policy is not None:
            return (
                f"what is handed over at {path} is its caller's to act on, whose request names the "
                "policy; a route gives it strictness and dry_run alone"
            )
        if path in TEXTS and route.models:
            return f"calls of {path} name no model"
    return None


def in_dry_run(guarding: Guarding, dry_run: bool) -> Guarding:
    """The same guarding, of which every policy is in a dry run, or none is."""
    return replace(
        guarding,
        policy=guarding.policy.changed(dry_run=dry_run),
        checks_policy=guarding.checks_policy.changed(dry_run=dry_run),
    )


def laid_over(judged: Judged, before: Guarding) -> Guarding:
    """How answers are guarded of which a section says something of its own.

    The policy of texts that a caller has already keeps its name: what to do with them is the
    caller's to decide.
    """
    policy = judged.policy_over(before.policy)
    checks = before.checks_policy
    if judged.strictness:
        checks = checks.changed(strictness=judged.strictness)
    return in_dry_run(replace(before, policy=policy, checks_policy=checks), policy.dry_run)
