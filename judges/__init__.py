"""Judges: NLI and attribution back ends, the shipped models, and the papers' scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.core.lazy import loaded_on_use

if TYPE_CHECKING:
    from judges.base import AttributionItem, AttributionJudge, NLIJudge, Pair
    from judges.encoder import create_encoder
    from judges.registry import create_attribution, create_nli, register
    from judges.service import JudgeService

__all__ = [
    "AttributionItem",
    "AttributionJudge",
    "JudgeService",
    "NLIJudge",
    "Pair",
    "create_attribution",
    "create_encoder",
    "create_nli",
    "register",
]

_HOMES = {
    "judges.base": "AttributionItem AttributionJudge NLIJudge Pair",
    "judges.service": "JudgeService",
    "judges.registry": "create_attribution create_nli register",
    "judges.encoder": "create_encoder",
}

__getattr__, __dir__ = loaded_on_use(__name__, _HOMES)
