"""SCK: interpretable scoring of answers by structure, content and knowledge (Alonso et al.)."""

from judges.sck.report import (
    FeatureWeights,
    Intent,
    KnowledgeWeights,
    PartWeights,
    SCKInput,
    SCKReport,
    SCKSettings,
)
from judges.sck.scorer import SCKScorer

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
