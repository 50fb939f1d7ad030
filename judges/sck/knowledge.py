"""Knowledge score: verifiable entities, their relevance, and attribution (SCK 2.1, eq. 1-3)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from guardrail.core.types import (
    Category,
    Evidence,
    Passage,
    Score,
    Sentence,
    SpanKind,
    Triple,
    linearise,
)
from judges.sck.language import Name, fold, occurs
from judges.sck.report import (
    EntityRelevance,
    KnowledgeReport,
    KnowledgeWeights,
    NamedEntity,
    SCKInput,
    SentenceVerdict,
    combine,
)

UNSUPPORTED = "the evidence supports no claim of the answer"


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

    def place(name: Name) -> str | None:
        if name.entity_id is not None:
            return "linked"
        if name.forms & in_triples:
            return "triple"
        read = any(occurs(form, passage) for form in name.forms for passage in passages)
        return "passage" if read else None

    return tuple(
        NamedEntity(text=name.text, entity_id=name.entity_id, found_in=place(name))
        for name in names
    )


def described(item: SCKInput, names: Sequence[Name]) -> list[DescribedEntity]:
    """The linked entities among an answer's names, with the graph's description of each.

    An entity without a description is described by its first five facts; one without facts is left
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
        about = entity.description or ", ".join(facts[:5])
        if about:
            found[entity.id] = DescribedEntity(entity.id, entity.label, f"{entity.label}, {about}")
    return list(found.values())


def jaccard(left: str, right: str) -> float:
    """Shared words over all words, case folded; 0 where neither has a word."""
    first, second = (set(re.findall(r"\w+", text.casefold())) for text in (left, right))
    return len(first & second) / len(first | second) if first | second else 0.0


def score_knowledge(
    item: SCKInput,
    names: tuple[NamedEntity, ...],
    entities: Sequence[DescribedEntity],
    cosines: Mapping[tuple[str, str], float],
    verdicts: tuple[SentenceVerdict, ...],
    weights: KnowledgeWeights,
) -> KnowledgeReport:
    """Compute K (eq. 3).

    Args:
        item: The answer.
        names: Its names, verified or not.
        entities: Its linked entities with their descriptions.
        cosines: Cosine of (question, description).
        verdicts: Its judged sentences.
        weights: Weights of the three parts.
    """
    question = item.question.strip()
    relevance = tuple(
        EntityRelevance(
            **entity._asdict(),
            jaccard=jaccard(item.question, entity.description),
            cosine=max(-1.0, min(1.0, cosines[item.question, entity.description])),
        )
        for entity in (entities if question else ())
    )
    if relevance:
        sums = [entity.jaccard + entity.cosine for entity in relevance]
        mean = sum(total / 2 for total in sums) / len(sums)
        er, er_paper = Score(value=max(0.0, min(1.0, mean))), Score(value=sum(sums))
    else:
        no_entity = "no linked entity of the answer has a description"
        er = er_paper = Score(reason=no_entity if question else "no question")
    kg_attr, raw = _attribution(item, verdicts)
    ve = _verifiable(item, names)
    score, parts = combine(
        [("ve", ve, weights.ve), ("er", er, weights.er), ("kg_attr", kg_attr, weights.kg_attr)],
        what="the knowledge score",
    )
    paper = (
        weights.ve * (ve.value or 0.0)
        + weights.er * (er_paper.value or 0.0)
        + weights.kg_attr * (raw.value or 0.0)
    )
    report = KnowledgeReport(
        score=score,
        paper=Score(value=paper),
        parts=parts,
        er_paper=er_paper,
        kg_attr_mean=raw,
        names=names,
        entities=relevance,
        sentences=verdicts,
    )
    if not item.evidence and not item.entities:
        score = Score(reason="there is no evidence")
    elif report.unsupported:
        score = Score(value=0.0, evidence=(UNSUPPORTED,))
    return report.model_copy(update={"score": score})


def _verifiable(item: SCKInput, names: tuple[NamedEntity, ...]) -> Score:
    if not names:
        return Score(reason="no entities")
    if not item.evidence and not item.entities:
        return Score(reason="there is no evidence")
    known = sum(name.found_in is not None for name in names)
    missing = tuple(f"not verifiable: {name.text}" for name in names if name.found_in is None)
    counted = (f"{known} of {len(names)} names are verifiable", *missing)
    return Score(value=known / len(names), evidence=counted)


def _attribution(item: SCKInput, verdicts: tuple[SentenceVerdict, ...]) -> tuple[Score, Score]:
    """KG-Attr for decisions and the raw mean of eq. 3.

    The first is the mean over claims, at least 0, so that an answer without support earns
    nothing; the second is the mean over all sentences, in [-1, 1].
    """
    if not verdicts:
        reason = "no sentence was judged" if item.evidence else "there is no evidence"
        missing = Score(reason=reason if item.answer.strip() else "the answer is empty")
        return missing, missing
    values = [verdict.value for verdict in verdicts]
    mean = Score(value=sum(values) / len(values))
    claims = [verdict.value for verdict in verdicts if verdict.support is not None]
    if not claims:
        return Score(reason="the answer makes no claim"), mean
    summary = ", ".join(f"{values.count(value)} {name}" for value, name in NAMES.items())
    return Score(value=max(0.0, sum(claims) / len(claims)), evidence=(summary,)), mean


# --- KG-AttrScore (SCK 2.1.3) -------------------------------------------------------------------

NAMES = {1: "attributable", 0: "extrapolatory", -1: "contradictory"}


def attribute(item: SCKInput) -> tuple[SentenceVerdict, ...]:
    """The verdicts of an answer's sentences; none if no sentence was judged."""
    if all(sentence.category is None for sentence in item.sentences):
        return ()
    return tuple(_verdict(sentence, item.evidence) for sentence in item.sentences)


def _verdict(sentence: Sentence, evidence: Sequence[Evidence]) -> SentenceVerdict:
    """A sentence's verdict with the triples that its citations and spans name."""
    if sentence.category is None:
        none = "extrapolatory: it makes no claim to check"
        return SentenceVerdict(text=sentence.text, value=0, support=None, rationale=none)
    value, support = {
        Category.SUPPORTIVE: (1, 1.0),
        Category.PARTIALLY_SUPPORTIVE: (0, 0.5),
        Category.IRRELEVANT: (0, 0.0),
        Category.CONTRADICTORY: (-1, 0.0),
    }[sentence.category]
    cited = set(sentence.citations)
    triples = [item for item in evidence if isinstance(item, Triple) and item.citation in cited]
    against = [
        span.triple
        for span in sentence.spans
        if span.kind is SpanKind.CONTRADICTED and span.triple is not None
    ]
    named = tuple(dict.fromkeys(against if value < 0 and against else triples))
    if named:
        verb = {1: "supported by", 0: "supported in part by", -1: "contradicted by"}[value]
        why = f"{verb} {linearise(named)}"
    elif sentence.judgement is not None and sentence.judgement.rationale:
        why = sentence.judgement.rationale
    else:
        why = sentence.note or f"judged {sentence.category.value.replace('_', ' ')}"
    return SentenceVerdict(
        text=sentence.text,
        value=value,
        support=support,
        rationale=f"{NAMES[value]}: {why}",
        triples=named,
    )
