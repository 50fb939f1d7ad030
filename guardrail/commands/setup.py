"""What the commands' options make: the configuration, the guardrail and the graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from guardrail.config import GuardrailConfig
from guardrail.core.errors import ConfigError
from guardrail.core.types import as_strictness
from guardrail.policy import policy_named

if TYPE_CHECKING:
    from guardrail.guard import Guardrail
    from kg import KnowledgeGraph

__all__ = ["build_config", "build_guard", "configured_graph"]


def build_config(
    config: Path | None = None,
    *,
    kg: str | None = None,
    judge: str | None = None,
    policy: str | None = None,
    strictness: str | None = None,
    evidence: Sequence[Path] | None = None,
) -> GuardrailConfig:
    """The configuration of a command: file and environment, then the command's own options.

    Raises:
        ConfigError: A setting or a name is unknown.
    """
    settings = GuardrailConfig.from_toml(config) if config else GuardrailConfig.from_env()
    changes: dict[str, object] = {}
    if kg is not None:
        changes["graph"] = settings.graph.model_copy(update={"location": kg})
    if evidence:
        changes["evidence"] = tuple(evidence)
    if judge is not None:
        changes["judge"] = judge
    if policy is not None:
        changes["policy"] = policy_named(policy)
    if strictness is not None:
        changes["strictness"] = as_strictness(strictness)
        if policy is None and settings.policy.strictness is not None:
            # A policy's own wins over the settings', but not over what is asked for now.
            changes["policy"] = settings.policy.model_copy(update={"strictness": None})
    return settings.model_copy(update=changes)


def build_guard(settings: GuardrailConfig) -> Guardrail:
    """A loaded guardrail.

    It is loaded before any row is read, so that a mistake in an option stops the command instead
    of failing every row.

    Raises:
        GuardrailError: A part cannot be loaded.
    """
    from guardrail.guard import Guardrail

    guard = Guardrail(settings)
    try:
        guard.warm_up()
    except BaseException:
        guard.close()
        raise
    return guard


def configured_graph(kg: str | None) -> KnowledgeGraph:
    """The graph of ``--kg``, else of the environment, else the shipped one.

    Raises:
        ConfigError: The settings say that there is no graph.
        KnowledgeGraphError: It cannot be opened.
    """
    from kg import open_graphs

    settings = build_config(kg=kg).graph
    if settings.location == "none":
        raise ConfigError("the settings name no graph (none); give one with --kg")
    return open_graphs(settings.location, profile=settings.profile, settings=settings.endpoint)
