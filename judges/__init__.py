"""Judges: NLI and attribution back ends, the shipped models, and the papers' scores."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judges.base import AttributionItem, AttributionJudge, NLIJudge, Pair
    from judges.encoder import create_encoder
    from judges.registry import create_attribution, create_nli, register
    from judges.service import AttributionService, JudgeService

__all__ = [
    "AttributionItem",
    "AttributionJudge",
    "AttributionService",
    "JudgeService",
    "NLIJudge",
    "Pair",
    "create_attribution",
    "create_encoder",
    "create_nli",
    "register",
]

_HOMES = {
    "AttributionItem": "judges.base",
    "AttributionJudge": "judges.base",
    "AttributionService": "judges.service",
    "JudgeService": "judges.service",
    "NLIJudge": "judges.base",
    "Pair": "judges.base",
    "create_attribution": "judges.registry",
    "create_encoder": "judges.encoder",
    "create_nli": "judges.registry",
    "register": "judges.registry",
}


def __getattr__(name: str) -> Any:
    """Load public names when first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
