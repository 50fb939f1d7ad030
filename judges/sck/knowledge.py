"""Knowledge score: verifiable entities, their relevance, and attribution (SCK 2.1, eq. 1-3)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Generic, NamedTuple, TypeVar

from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.types import (
    Category,
    Evidence,
    NLIScores,
    Passage,
    Score,
    Sentence,
    SpanKind,
    Triple,
    linearise,
)
from judges.base import NLIJudge, Pair
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

__all__ = [
    "UNSUPPORTED",
    "DescribedEntity",
    "attribute",
    "described",
    "jaccard",
    "score_knowledge",
    "verified",
]

DESCRIPTION_FACTS = 5
"""Facts that describe an entity without a description in the graph."""

MAX_TRIPLES = 8
"""Triples in the premise of a sentence."""

MAX_PASSAGE_SENTENCES = 3
"""Sentences of passages in the premise of a sentence."""

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
        sentences=verdicts or (),
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


def _attribution(
    item: SCKInput, verdicts: tuple[SentenceVerdict, ...] | None
) -> tuple[Score, Score]:
    """KG-Attr for decisions and the raw mean of eq. 3.

    The first is the mean over claims, at least 0, so that an answer without support earns
    nothing; the second is the mean over all sentences, in [-1, 1].
    """
    if not verdicts:
        reason = "no judge" if item.evidence else "there is no evidence"
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

VALUES = {
    Category.SUPPORTIVE: 1,
    Category.PARTIALLY_SUPPORTIVE: 0,
    Category.IRRELEVANT: 0,
    Category.CONTRADICTORY: -1,
}
SUPPORT = {Category.SUPPORTIVE: 1.0, Category.PARTIALLY_SUPPORTIVE: 0.5}
LABELS = {
    "entailment": (1, "entails it"),
    "neutral": (0, "leaves it open"),
    "contradiction": (-1, "contradicts it"),
}
NAMES = {1: "attributable", 0: "extrapolatory", -1: "contradictory"}

_BOUNDARY = re.compile(r"(?<=[.!?])[\"”’')]*\s+(?=\S)|\n+")
Item = TypeVar("Item")


class _Claim(NamedTuple):
    """A sentence for the judge, with its premise."""

    row: int
    place: int
    sentence: str
    triples: tuple[Triple, ...]
    premise: str


def attribute(
    batch: Sequence[SCKInput], judge: NLIJudge | None
) -> list[tuple[SentenceVerdict, ...] | None]:
    """Judge the sentences of n answers in one batch.

    Verdicts of the caller are used where there are any. Otherwise an NLI judge reads the evidence
    that shares most words with the sentence as premise and the sentence as hypothesis.

    Returns:
        The verdicts of each answer; None for an answer that would need a judge and lacks judge or
        evidence.
    """
    results: list[list[SentenceVerdict | None]] = []
    claims: list[_Claim] = []
    for row, item in enumerate(batch):
        if any(sentence.category is not None for sentence in item.sentences):
            results.append([_of_caller(entry, item.evidence) for entry in item.sentences])
            continue
        texts = [sentence.text for sentence in item.sentences] or _split(item.answer)
        results.append([None] * len(texts))
        if item.evidence and judge is not None:
            claims += _claims(row, item, texts)
    pairs = [Pair(claim.premise, claim.sentence) for claim in claims if claim.premise]
    scores = iter(judge.judge(pairs) if judge is not None and pairs else ())
    for claim in claims:
        found = _from_nli(claim, next(scores)) if claim.premise else _silent(claim)
        results[claim.row][claim.place] = found
    return [None if None in verdicts else tuple(filter(None, verdicts)) for verdicts in results]


def _split(answer: str) -> list[str]:
    """Split an answer at sentence ends and line ends."""
    return [piece.strip() for piece in _BOUNDARY.split(answer) if piece.strip()]


def _silent(claim: _Claim) -> SentenceVerdict:
    why = "extrapolatory: no evidence shares a word with it"
    return SentenceVerdict(text=claim.sentence, value=0, rationale=why)


def _from_nli(claim: _Claim, scores: NLIScores) -> SentenceVerdict:
    value, says = LABELS[scores.label]
    certainty = getattr(scores, scores.label)
    return SentenceVerdict(
        text=claim.sentence,
        value=value,
        support=float(value == 1),
        rationale=f"{NAMES[value]}: the evidence {says} ({certainty:.2f}): {claim.premise}",
        triples=claim.triples,
        scores=scores,
    )


def _of_caller(sentence: Sentence, evidence: Sequence[Evidence]) -> SentenceVerdict:
    """A verdict of the caller with the triples that its citations and spans name."""
    if sentence.category is None:
        none = "extrapolatory: it makes no claim to check"
        return SentenceVerdict(text=sentence.text, value=0, support=None, rationale=none)
    value = VALUES[sentence.category]
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
        support=SUPPORT.get(sentence.category, 0.0),
        rationale=f"{NAMES[value]}: {why}",
        triples=named,
    )


def _claims(row: int, item: SCKInput, texts: Sequence[str]) -> Iterator[_Claim]:
    """The sentences of an answer, each with the evidence that shares most words with it."""
    triples = [entry for entry in item.evidence if isinstance(entry, Triple)]
    passages = [entry.text for entry in item.evidence if isinstance(entry, Passage)]
    pieces = list(dict.fromkeys(piece for text in passages for piece in _split(text)))
    near_triples = _Nearest(triples, [triple.text for triple in triples])
    near_pieces = _Nearest(pieces, pieces)
    for place, text in enumerate(texts):
        near = tuple(near_triples.best(text, MAX_TRIPLES))
        premise = [linearise(near)] if near else []
        premise += near_pieces.best(text, MAX_PASSAGE_SENTENCES)
        yield _Claim(row, place, text, near, " ".join(premise))


class _Nearest(Generic[Item]):
    """An index of items by the words of their texts."""

    def __init__(self, items: Sequence[Item], texts: Sequence[str]) -> None:
        self._items = items
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            for word in _content_words(text):
                self._places[word].append(place)

    def best(self, text: str, most: int) -> list[Item]:
        """The items that share most words with a text, in input order."""
        words = _content_words(text)
        shared = Counter(place for word in words for place in self._places.get(word, ()))
        top = nsmallest(most, shared, key=lambda place: (-shared[place], place))
        return [self._items[place] for place in sorted(top)]


def _content_words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - lexicon_set("function_words", "stop_words")
