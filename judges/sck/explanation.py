"""Explains an SCK score in plain text."""

from __future__ import annotations

from collections.abc import Sequence

from guardrail.core.types import Score
from judges.sck.report import SCKReport, StructureReport, Weighted

__all__ = ["explain", "intent_line"]


def explain(report: SCKReport) -> str:
    """Explain a score down to sentence, entity and feature."""
    structure, content, knowledge = report.structure, report.content, report.knowledge
    features = [feature.part for feature in structure.features]
    lines = [
        f"SCK {_number(report.score)}: {_sum(report.parts)}",
        intent_line(structure),
        f"Structure {_number(structure.score)}: {_sum(features)}",
    ]
    lines += [
        f"  {feature.name} {_number(feature.part.score)}: found {feature.found}; "
        f"expected {feature.expected}"
        for feature in structure.features
    ]
    lines.append(f"Content {_number(content.score)}: key entities of the {content.source}")
    lines += [
        f"  {'found' if entity.found else 'missing'}: {entity.text}" for entity in content.entities
    ]
    lines.append(f"Knowledge {_number(knowledge.score)}: {_sum(knowledge.parts)}")
    lines += [
        f"  {name.text}: " + (f"verified ({name.found_in})" if name.found_in else "not verifiable")
        for name in knowledge.names
    ]
    lines += [
        f"  {entity.label}: shares {entity.jaccard:.2f} of its words with the question, "
        f"cosine {entity.cosine:.2f}"
        for entity in knowledge.entities
    ]
    lines += [
        f'  {verdict.value:+d} "{verdict.text}" {verdict.rationale}'
        for verdict in knowledge.sentences
    ]
    lines += [f"Note: {warning}" for warning in report.warnings]
    return "\n".join(lines)


def intent_line(structure: StructureReport) -> str:
    """Name the question's intent and its probability."""
    certainty = structure.question_intents.get(structure.intent, 0.0)
    return f"Intent of the question: {structure.intent} ({certainty:.2f})"


def _number(score: Score) -> str:
    return f"none ({score.reason})" if score.value is None else f"{score.value:.2f}"


def _sum(parts: Sequence[Weighted]) -> str:
    terms = [
        f"{part.share:.2f} x {part.name} {part.score.value:.2f}"
        for part in parts
        if part.score.value is not None
    ]
    return " + ".join(terms) or "no part has a value"
