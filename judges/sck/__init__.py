"""SCK: interpretable scoring of answers by structure, content and knowledge (Alonso et al.)."""

from judges.sck.intents import Intent
from judges.sck.report import SCKInput, SCKReport
from judges.sck.scorer import SCKScorer, SCKSettings
from judges.sck.weights import FeatureWeights, KnowledgeWeights, PartWeights

__all__ = [
    "FeatureWeights",
    "Intent",
    "KnowledgeWeights",
    "PartWeights",
    "SCKInput",
    "SCKReport",
    "SCKScorer",
    "SCKSettings",
]
