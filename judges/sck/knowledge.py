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

__all__ = [
    "UNSUPPORTED",
    "DescribedEntity",
    "described",
    "jaccard",
    "score_knowledge",
    "unsupported",
    "verified",
]

DESCRIPTION_FACTS = 5
"""Facts that describe an entity without a description in the graph."""

UNSUPPORTED = "the evidence supports no claim of the answer"

_WORD = re.compile(r"\w+")


class DescribedEntity(NamedTuple):
    """A linked entity and the text that describes it."""

    entity_id: str
    label: str
    description: str


def verified(names: Sequence[Name], evidence: Sequence[Evidence]) -> tuple[NamedEntity, ...]:
    """The names of an answer, each with what verifies it (eq. 1).

    A name is verified if it is linked, if it is the subject or the value of a triple, or if a
    passage contains it.
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

    An entity without a description is described by its first facts; one without facts is left
    out.
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
    """Compute K (eq. 3).

    Args:
        item: The answer.
        names: Its names, verified or not.
        entities: Its linked entities with their descriptions.
        cosines: Cosine of (question, description).
        verdicts: Its judged sentences; None without evidence or judge.
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
    ve = _verifiable(item, names)
    score, parts = combine(
        [
            ("ve", ve, weights.ve),
            ("er", er, weights.er),
            ("kg_attr", kg_attr, weights.kg_attr),
        ],
        what="the knowledge score",
    )
    if not item.evidence and not item.entities:
        score = Score(reason="there is no evidence")
    elif unsupported(verdicts):
        score = Score(value=0.0, evidence=(UNSUPPORTED,))
    paper = (
        weights.ve * (ve.value or 0.0)
        + weights.er * (er_paper.value or 0.0)
        + weights.kg_attr * (raw.value or 0.0)
    )
    return KnowledgeReport(
        score=score,
        paper=Score(value=paper),
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
    """KG-Attr for decisions and the raw mean of eq. 3.

    The first is the mean over claims, at least 0, so that an answer without support earns
    nothing; the second is the mean over all sentences, in [-1, 1].
    """
    if not verdicts:
        if not item.answer.strip():
            reason = "the answer is empty"
        else:
            reason = "no judge" if item.evidence else "there is no evidence"
        return Score(reason=reason), Score(reason=reason)
    mean = sum(verdict.value for verdict in verdicts) / len(verdicts)
    claims = [verdict.value for verdict in verdicts if verdict.support is not None]
    counts = {value: sum(entry.value == value for entry in verdicts) for value in (1, 0, -1)}
    summary = f"{counts[1]} attributable, {counts[0]} extrapolatory, {counts[-1]} contradictory"
    if not claims:
        return Score(reason="the answer makes no claim"), Score(value=mean)
    decided = max(0.0, sum(claims) / len(claims))
    return Score(value=decided, evidence=(summary,)), Score(value=mean)


def unsupported(verdicts: Sequence[SentenceVerdict] | None) -> bool:
    """True if the sentences were judged, some make claims, and the evidence supports none."""
    claims = [verdict for verdict in verdicts or () if verdict.support is not None]
    return bool(claims) and not any(verdict.support for verdict in claims)
