"""The value objects that every part of the guardrail passes to the next.

All are frozen pydantic models: hashable where their fields are, comparable by value,
JSON in and out with ``model_dump_json`` / ``model_validate_json``.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import groupby
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

__all__ = [
    "Action",
    "AttributedAnswer",
    "Candidate",
    "Category",
    "Citation",
    "Complexity",
    "Entity",
    "Evidence",
    "GuardedAnswer",
    "Judgement",
    "LinkedEntity",
    "Mention",
    "NLIScores",
    "Passage",
    "Problem",
    "Score",
    "ScoreCard",
    "Sentence",
    "Span",
    "SpanKind",
    "Subgraph",
    "Triple",
    "Value",
    "linearise",
]

Probability = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class Value(BaseModel):
    """Base of all value objects: frozen, strict about unknown fields, no NaN, no infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


# --- knowledge ---------------------------------------------------------------------------


class Entity(Value):
    """A node of the knowledge graph.

    Attributes:
        id: Short identifier, ``Q212657`` for Wikidata, else the IRI.
        label: Preferred name.
        types: Ids of the classes the node is an instance of; empty when unknown.
        aliases: Other names, without the label.
        description: One line on the entity, where the graph has one.
        url: Page a reader can open.
        prominence: Number of triples the node takes part in; breaks ties in re-ranking.
    """

    id: str
    label: str
    types: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    description: str | None = None
    url: str | None = None
    prominence: int = Field(default=0, ge=0)


class Citation(Value):
    """One cited triple as it stands in a marker: entity, property and value (KaLMA 4.2)."""

    entity: str
    property: str
    value: str


class Triple(Value):
    """One fact: subject, property and value by their labels, with ids where the graph has them.

    Inline triples of a caller have labels only.
    """

    subject: str
    property: str
    value: str
    subject_id: str | None = None
    property_id: str | None = None
    value_id: str | None = None

    @builtins.property  # the field of that name shadows it here
    def text(self) -> str:
        """The fact as flat text: subject, property and value (KaLMA 3.3)."""
        return f"{self.subject}, {self.property}: {self.value}."

    @builtins.property
    def citation(self) -> Citation:
        """The marker that cites this fact; the entity is the id where there is one."""
        return Citation(
            entity=self.subject_id or self.subject, property=self.property, value=self.value
        )


class Passage(Value):
    """A piece of text that serves as evidence where there is no graph."""

    text: str
    id: str | None = None
    title: str | None = None
    url: str | None = None


Evidence = Triple | Passage


class Subgraph(Value):
    """The one-hop neighbourhood of an entity (KaLMA 3.1).

    Attributes:
        entity: The node in the centre.
        triples: Facts whose subject is the entity, in the graph's stable order.
        incoming: Facts whose value is the entity.
        truncated: True when the graph held more facts than the caller's limit.
    """

    entity: Entity
    triples: tuple[Triple, ...] = ()
    incoming: tuple[Triple, ...] = ()
    truncated: bool = False


def linearise(triples: Iterable[Triple]) -> str:
    """Write triples as the flat text that judges read as premise (KaLMA 3.3).

    Neighbouring triples of one subject share a sentence:
    ``Artemisia Gentileschi, place of birth: Rome, occupation: painter.``
    """
    sentences = []
    for subject, group in groupby(triples, key=lambda triple: triple.subject):
        facts = ", ".join(f"{triple.property}: {triple.value}" for triple in group)
        sentences.append(f"{subject}, {facts}.")
    return " ".join(sentences)


# --- linking -----------------------------------------------------------------------------


class Mention(Value):
    """A stretch of text that may name an entity.

    Attributes:
        text: The surface form, possessive ``'s`` removed.
        start: Offset of the first character.
        end: Offset past the last character.
        ner: The tagger's entity type (``PERSON``, …); None when only the label index found it.
    """

    text: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    ner: str | None = None


class Candidate(Value):
    """One node considered for a mention, with the counts that decided (KaLMA 3.2).

    Attributes:
        entity: The node.
        matches: Neighbour values found exactly in the question.
        score: What the candidates were ordered by, higher first.
    """

    entity: Entity
    matches: tuple[str, ...] = ()
    score: FiniteFloat = 0.0


class LinkedEntity(Value):
    """An entity that was linked, and why.

    Attributes:
        mention: Where it stands in the text; for an entity reached over a relation,
            the words that name the relation.
        entity: The chosen node.
        matched: How it was found: ``label``, ``alias``, ``partial name``, ``list``,
            ``relation: father`` and so on.
        candidates: All nodes considered, best first.
    """

    mention: Mention
    entity: Entity
    matched: str
    candidates: tuple[Candidate, ...] = ()


# --- judging -----------------------------------------------------------------------------


class NLIScores(Value):
    """Calibrated probabilities that a premise entails, leaves open or contradicts a hypothesis."""

    entailment: Probability
    neutral: Probability
    contradiction: Probability

    @property
    def label(self) -> str:
        """The likeliest of ``entailment``, ``neutral`` and ``contradiction``."""
        return max(("entailment", "neutral", "contradiction"), key=lambda name: getattr(self, name))


class Category(StrEnum):
    """How evidence bears on an answer (CAQA 3.2)."""

    SUPPORTIVE = "supportive"
    PARTIALLY_SUPPORTIVE = "partially_supportive"
    CONTRADICTORY = "contradictory"
    IRRELEVANT = "irrelevant"


class Complexity(StrEnum):
    """The reasoning that joins the evidence (CAQA 3.3)."""

    SINGLE = "single"
    UNION = "union"
    INTERSECTION = "intersection"
    CONCATENATION = "concatenation"


class Judgement(Value):
    """An attribution judge's verdict on (question, answer, evidence) (CAQA 3).

    Attributes:
        category: The likeliest category.
        scores: Probability of each category.
        complexity: The reasoning needed; None where the judge does not tell.
        supported_share: Share of the answer's sub-facts that the evidence supports, in [0, 1];
            None where the judge does not tell.
        rationale: What the verdict rests on, for a person to read.
    """

    category: Category
    scores: Mapping[Category, Probability]
    complexity: Complexity | None = None
    supported_share: Probability | None = None
    rationale: str | None = None


class Score(Value):
    """A number with what it was computed from, or the reason why there is none.

    Attributes:
        value: The number, None when it cannot be computed.
        reason: Why there is no value; set exactly when ``value`` is None.
        evidence: What the number rests on, for a person to read.
    """

    value: FiniteFloat | None = None
    reason: str | None = None
    evidence: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _value_or_reason(self) -> Self:
        if (self.value is None) == (self.reason is None):
            raise ValueError("a score has either a value or a reason for having none")
        return self


class ScoreCard(Value):
    """All scores of one answer.

    Attributes:
        overall: What candidates are ranked by, in [0, 1].
        scores: Every score by name: ``supported_share``, ``na_share``, ``sck``,
            ``sck.knowledge``, ``conner.factuality``, …; policies set thresholds on these names.
    """

    overall: Score
    scores: Mapping[str, Score] = Field(default_factory=dict)


# --- answers -----------------------------------------------------------------------------


class SpanKind(StrEnum):
    """What the evidence says of a phrase."""

    SUPPORTED = "supported"
    NA = "na"
    CONTRADICTED = "contradicted"


class Span(Value):
    """A phrase of the clean answer text, with the triple that supports or contradicts it.

    Offsets count characters of the whole clean answer, not of the sentence.
    """

    text: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    kind: SpanKind
    triple: Triple | None = None


class Sentence(Value):
    """A sentence of the answer and what the evidence says of it.

    Attributes:
        text: The clean sentence, without markers.
        start: Offset of its first character in the clean answer.
        end: Offset past its last character.
        category: The verdict; None for a sentence that makes no claim to check.
        na: True when a claim in it lacks support (KaLMA 2.1, conscious incompetence).
        citations: The cited triples, in the order of the phrases they support.
        spans: Phrases by support, in order, not overlapping.
        judgement: The attribution judge's verdict behind ``category``.
        note: What a reader should know, such as a citation dropped and why.
    """

    text: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    category: Category | None = None
    na: bool = False
    citations: tuple[Citation, ...] = ()
    spans: tuple[Span, ...] = ()
    judgement: Judgement | None = None
    note: str | None = None


class AttributedAnswer(Value):
    """An answer split into sentences, each grounded in evidence.

    Attributes:
        text: The clean answer, without markers.
        marked: The answer with ``[Q…, property: value]`` and ``[NA]`` markers.
        sentences: In order; their offsets index ``text``.
    """

    text: str
    marked: str
    sentences: tuple[Sentence, ...] = ()


class Action(StrEnum):
    """What the policy did with the answer."""

    PASS = "pass"
    ANNOTATE = "annotate"
    REGENERATE = "regenerate"
    FILTER = "filter"
    REFUSE = "refuse"
    UNVERIFIED = "unverified"


class Problem(Value):
    """Something that went wrong in a part, without stopping the whole.

    Attributes:
        part: ``kg``, ``judge``, ``model``, ``deadline``, ``records``, ``input``, …
        message: What happened and what to do next.
    """

    part: str
    message: str


class GuardedAnswer(Value):
    """What the guardrail returns for one answer.

    Attributes:
        id: The caller's id, or one made here.
        index: Place of a ranked answer among the candidates as they were given or sampled,
            counted from 0; 0 for an answer that was checked alone.
        question: The question as given.
        text: The clean text to show.
        marked: The same with markers.
        action: What the policy did.
        reasons: Why, one line each.
        sentences: The sentences of ``text``.
        entities: The linked entities, each with how it was found.
        evidence: What the answer was judged against.
        scorecard: All scores.
        original: The answer as it came in, before the policy changed anything.
        attempts: Number of model calls spent; 0 for an answer that was handed in.
        versions: Names and versions of model, judge, graph and policy.
        timings_ms: Wall time by stage, milliseconds.
        errors: What went wrong in a part.
    """

    id: str
    index: int = Field(default=0, ge=0)
    question: str
    text: str
    marked: str
    action: Action
    reasons: tuple[str, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    entities: tuple[LinkedEntity, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    scorecard: ScoreCard
    original: str | None = None
    attempts: int = Field(default=0, ge=0)
    versions: Mapping[str, str] = Field(default_factory=dict)
    timings_ms: Mapping[str, FiniteFloat] = Field(default_factory=dict)
    errors: tuple[Problem, ...] = ()
