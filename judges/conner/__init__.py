"""CONNER: six perspectives on generated knowledge (Chen et al., EMNLP 2023)."""

from judges.conner.report import (
    Aggregation,
    ConnerInput,
    ConnerReport,
    ConnerSettings,
    Perspective,
    QualityWeights,
    SentenceFactuality,
)
from judges.conner.scorer import ConnerModels, ConnerScorer
from judges.conner.selection import Selected, quality, rank, select_demonstrations, select_knowledge

__all__ = [
    "Aggregation",
    "ConnerInput",
    "ConnerModels",
    "ConnerReport",
    "ConnerScorer",
    "ConnerSettings",
    "Perspective",
    "QualityWeights",
    "Selected",
    "SentenceFactuality",
    "quality",
    "rank",
    "select_demonstrations",
    "select_knowledge",
]
