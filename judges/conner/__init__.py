"""CONNER: six perspectives on generated knowledge (Chen et al., EMNLP 2023)."""

from judges.conner.report import (
    Aggregation,
    ConnerInput,
    ConnerReport,
    ConnerSettings,
    Perspective,
    QualityWeights,
    SentenceFactuality,
    rank,
)
from judges.conner.scorer import ConnerModels, ConnerScorer

__all__ = [
    "Aggregation",
    "ConnerInput",
    "ConnerModels",
    "ConnerReport",
    "ConnerScorer",
    "ConnerSettings",
    "Perspective",
    "QualityWeights",
    "SentenceFactuality",
    "rank",
]
