"""Knowledge score: verifiable entities, their relevance, and attribution (SCK 2.1, eq. 1-3)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from guardrail.core.types import Evidence, Passage, Score, Triple
from judges.sck.content import Name, fold, occurs
from judges.sck.report import (
    EntityRelevance,
    KnowledgeReport,
    NamedEntity,
    SCKInput,
    SentenceVerdict,
)
from judges.sck.weights import KnowledgeWeights, combine

__all__ = ["DescribedEntity", "described", "jaccard", "score_knowledge", "verified"]

DESCRIPTION_FACTS = 5
"""Facts that describe an entity for which the graph has no description."""

_WORD = re.compile(r"\w+")


class DescribedEntity(NamedTuple):
    """A linked entity and the text that describes it."""

    entity_id: str
    label: str
    description: str


def verified(names: Sequence[Name], evidence: Sequence[Evidence]) -> tuple[NamedEntity, ...]:
    """Tell for each name of an answer whether the graph or a passage knows it (eq. 1).

    A name is verified when it is linked, when it is the subject or the value of a triple, or
    when it stands in a passage.
    """
    in_triples = {
        fold(part)
        for item in evidence
        if isinstance(item, Triple)
        for part in (item.subject, item.value)
    }
    passages = [fold(item.text) for item in evidence if isinstance(item, Passage)]
    entities = []
    for name in names:
        found = None
        if name.entity_id is not None:
            found = "linked"
        elif name.forms & in_triples:
            found = "triple"
        elif any(occurs(form, passage) for form in name.forms for passage in passages):
            found = "passage"
        entities.append(NamedEntity(text=name.text, entity_id=name.entity_id, found_in=found))
    return tuple(entities)


def described(item: SCKInput, names: Sequence[Name]) -> list[DescribedEntity]:
    """The linked entities among an answer's names, with the graph's description of each.

    Where the graph has none, the first facts about the entity describe it; an entity without
    either is left out.
    """
    wanted = {name.entity_id for name in names if name.entity_id}
    found: dict[str, DescribedEntity] = {}
    for linked in item.entities:
        entity = linked.entity
        if entity.id not in wanted or entity.id in found:
            continue
        facts = [
            f"{entry.property}: {entry.value}"
            for entry in item.evidence
            if isinstance(entry, Triple)
            and (entry.subject_id == entity.id or fold(entry.subject) == fold(entity.label))
        ]
        about = entity.description or ", ".join(facts[:DESCRIPTION_FACTS])
        if about:
            found[entity.id] = DescribedEntity(entity.id, entity.label, f"{entity.label}, {about}")
    return list(found.values())


def jaccard(left: str, right: str) -> float:
    """Shared words over all words, case folded; 0 where neither has a word."""
    first, second = (set(_WORD.findall(text.casefold())) for text in (left, right))
    return len(first & second) / len(first | second) if first | second else 0.0


def score_knowledge(
    item: SCKInput,
    names: tuple[NamedEntity, ...],
    entities: Sequence[DescribedEntity],
    cosines: Mapping[tuple[str, str], float],
    verdicts: tuple[SentenceVerdict, ...] | None,
    weights: KnowledgeWeights,
) -> KnowledgeReport:
    """Put K together.

    Args:
        item: The answer.
        names: Its names, verified or not.
        entities: Its linked entities with their descriptions.
        cosines: Cosine of (question, description).
        verdicts: Its sentences; None where nobody could judge them.
        weights: Weights of the three parts.
    """
    relevance = _relevance(item.question, entities, cosines)
    sums = [entity.jaccard + entity.cosine for entity in relevance]
    if sums:
        mean = sum(total / 2 for total in sums) / len(sums)
        er, er_paper = Score(value=max(0.0, min(1.0, mean))), Score(value=sum(sums))
    else:
        no_entity = "no linked entity of the answer has a description"
        er = er_paper = Score(reason=no_entity if item.question.strip() else "no question")
    kg_attr, raw = _attribution(item, verdicts)
    score, parts = combine(
        [
            ("ve", _verifiable(item, names), weights.ve),
            ("er", er, weights.er),
            ("kg_attr", kg_attr, weights.kg_attr),
        ],
        what="the knowledge score",
    )
    if not item.evidence and not item.entities:
        score = Score(reason="there is no evidence")
    return KnowledgeReport(
        score=score,
        parts=parts,
        er_paper=er_paper,
        kg_attr_mean=raw,
        names=names,
        entities=relevance,
        sentences=verdicts or (),
    )


def _verifiable(item: SCKInput, names: tuple[NamedEntity, ...]) -> Score:
    if not names:
        return Score(reason="no entities")
    if not item.evidence and not item.entities:
        return Score(reason="there is no evidence")
    known = sum(name.found_in is not None for name in names)
    missing = tuple(f"not verifiable: {name.text}" for name in names if name.found_in is None)
    counted = (f"{known} of {len(names)} names are verifiable", *missing)
    return Score(value=known / len(names), evidence=counted)


def _relevance(
    question: str,
    entities: Sequence[DescribedEntity],
    cosines: Mapping[tuple[str, str], float],
) -> tuple[EntityRelevance, ...]:
    if not question.strip():
        return ()
    return tuple(
        EntityRelevance(
            entity_id=entity.entity_id,
            label=entity.label,
            description=entity.description,
            jaccard=jaccard(question, entity.description),
            cosine=max(-1.0, min(1.0, cosines[question, entity.description])),
        )
        for entity in entities
    )


def _attribution(
    item: SCKInput, verdicts: tuple[SentenceVerdict, ...] | None
) -> tuple[Score, Score]:
    """KG-Attr for decisions, in [0, 1], and the raw mean, in [-1, 1]."""
    if not verdicts:
        if not item.answer.strip():
            reason = "the answer is empty"
        else:
            reason = "no judge" if item.evidence else "there is no evidence"
        return Score(reason=reason), Score(reason=reason)
    mean = sum(verdict.value for verdict in verdicts) / len(verdicts)
    counts = {value: sum(entry.value == value for entry in verdicts) for value in (1, 0, -1)}
    summary = f"{counts[1]} attributable, {counts[0]} extrapolatory, {counts[-1]} contradictory"
    return Score(value=(mean + 1) / 2, evidence=(summary,)), Score(value=mean)
