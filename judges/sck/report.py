"""Input, weights and report of SCK; every number comes with what it was computed from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from guardrail.core.errors import ConfigError
from guardrail.core.types import (
    Evidence,
    LinkedEntity,
    Probability,
    Score,
    Sentence,
    Triple,
    Value,
)


class Intent(StrEnum):
    """What a question asks for (the NFQA taxonomy and factoid); ``NONE``: it is no question."""

    INSTRUCTION = "instruction"
    REASON = "reason"
    EVIDENCE = "evidence-based"
    COMPARISON = "comparison"
    EXPERIENCE = "experience"
    DEBATE = "debate"
    FACTOID = "factoid"
    NONE = "not-a-question"


class SCKInput(Value):
    """One answer to score.

    Attributes:
        question: The question; may be empty.
        answer: The answer, without citation markers, Markdown as it stands.
        sentences: The answer's judged sentences; those without a category make no claim.
        entities: Known entities of the question and of the answer.
        evidence: Triples and passages to judge against.
        reference: A reference answer, where there is one.
    """

    question: str
    answer: str
    sentences: tuple[Sentence, ...] = ()
    entities: tuple[LinkedEntity, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    reference: str | None = None


# --- Weights ------------------------------------------------------------------------------------


class PartWeights(Value):
    """Weights of S, C and K in SCK (eq. 5), not all zero.

    Attributes:
        structure: α.
        content: β.
        knowledge: γ.
        reason: The rationale.
    """

    structure: float = Field(ge=0)
    content: float = Field(ge=0)
    knowledge: float = Field(ge=0)
    reason: str = ""


class KnowledgeWeights(Value):
    """Weights of VE, ER and KG-Attr in K (eq. 3); the paper's are equal."""

    ve: float = Field(default=1 / 3, ge=0)
    er: float = Field(default=1 / 3, ge=0)
    kg_attr: float = Field(default=1 / 3, ge=0)


class FeatureWeights(Value):
    """Weights of the features in S; equal by default, since the paper gives none."""

    length: float = Field(default=1 / 6, ge=0)
    tense: float = Field(default=1 / 6, ge=0)
    keywords: float = Field(default=1 / 6, ge=0)
    pronoun: float = Field(default=1 / 6, ge=0)
    format: float = Field(default=1 / 6, ge=0)
    alignment: float = Field(default=1 / 6, ge=0)


def _row(structure: float, content: float, knowledge: float, reason: str) -> PartWeights:
    return PartWeights(structure=structure, content=content, knowledge=knowledge, reason=reason)


TABLE_3: Mapping[Intent, PartWeights] = {
    Intent.INSTRUCTION: _row(0.5, 0.2, 0.3, "answer structure > KG matching > entity mentioning"),
    Intent.REASON: _row(0.5, 0.3, 0.2, "keywords of the feature table are useful"),
    Intent.EVIDENCE: _row(0.2, 0.3, 0.5, "no salient structure, knowledge is more important"),
    Intent.COMPARISON: _row(0.5, 0.3, 0.2, "the structure of a comparison is easy to capture"),
    Intent.EXPERIENCE: _row(0.4, 0.5, 0.1, "entity matching > structure > KG matching"),
    Intent.DEBATE: _row(0.4, 0.4, 0.2, "can hardly be grounded by a KG"),
    Intent.FACTOID: _row(0.1, 0.1, 0.8, "KG matching > others"),
    Intent.NONE: _row(1 / 3, 1 / 3, 1 / 3, "no intent was found, so all parts count alike"),
}
"""The paper's heuristic weights by intent; equal ones without an intent."""


class SCKSettings(NamedTuple):
    """Weights; the defaults are the paper's.

    Attributes:
        parts: Weights of S, C and K by intent; equal ones for an intent that is missing.
        knowledge: Weights of VE, ER and KG-Attr.
        features: Weights of the structure features.
    """

    parts: Mapping[Intent, PartWeights] = TABLE_3
    knowledge: KnowledgeWeights = KnowledgeWeights()
    features: FeatureWeights = FeatureWeights()


def load_weights(path: Path) -> dict[Intent, PartWeights]:
    """Read weights by intent, as written by ``training.sck_weights --out``.

    Raises:
        ConfigError: The file cannot be read, or an intent or a weight is wrong.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return {Intent(name): PartWeights.model_validate(row) for name, row in rows.items()}
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{path} holds no SCK weights: {error}") from error


# --- Report -------------------------------------------------------------------------------------


class Weighted(Value):
    """A part of a score.

    Attributes:
        name: Which part.
        score: Its value in [0, 1], or why it has none.
        weight: Its weight as configured.
        share: Its weight among the parts that have a value; 0 where it has none. The score is
            the sum of ``share * score.value``.
    """

    name: str
    score: Score
    weight: float = Field(ge=0)
    share: Probability


def combine(
    parts: Sequence[tuple[str, Score, float]], *, what: str
) -> tuple[Score, tuple[Weighted, ...]]:
    """Weighted mean of the parts that have a value.

    Args:
        parts: Name, score and weight of each part.
        what: Name of the whole, for the reason if no part has a value.

    Returns:
        The mean, and each part with its share of the total weight.
    """
    total = sum(weight for _, score, weight in parts if score.value is not None)
    weighted = tuple(
        Weighted(
            name=name,
            score=score,
            weight=weight,
            share=weight / total if total > 0 and score.value is not None else 0.0,
        )
        for name, score, weight in parts
    )
    if total <= 0:
        reasons = "; ".join(f"{name}: {score.reason or 'weight 0'}" for name, score, _ in parts)
        return Score(reason=f"no part of {what} has a value ({reasons})"), weighted
    present = [
        (part.name, part.share, part.score.value)
        for part in weighted
        if part.score.value is not None
    ]
    value = sum(share * value for _, share, value in present)
    terms = tuple(f"{share:.3f} x {name} {value:.3f}" for name, share, value in present)
    return Score(value=min(1.0, max(0.0, value)), evidence=terms), weighted


class NamedEntity(Value):
    """A name in the answer and the evidence that verifies it.

    Attributes:
        text: The name as written.
        entity_id: The linked node, where there is one.
        found_in: What verifies it: ``linked``, ``triple``, ``passage``; None: not verifiable.
    """

    text: str
    entity_id: str | None = None
    found_in: str | None = None


class EntityRelevance(Value):
    """Similarity of a linked entity's description to the question (eq. 2).

    Attributes:
        entity_id: The node.
        label: Its name.
        description: The text compared with the question.
        jaccard: Shared words over all words, in [0, 1].
        cosine: Cosine of the two embeddings, in [-1, 1].
    """

    entity_id: str
    label: str
    description: str
    jaccard: Probability
    cosine: float = Field(ge=-1.0, le=1.0)


class SentenceVerdict(Value):
    """KG-AttrScore of one sentence (SCK 2.1.3).

    Attributes:
        text: The sentence.
        value: 1 attributable, 0 extrapolatory, -1 contradictory.
        rationale: Why, naming the triples or the passage.
        support: 1 where the evidence supports the sentence, 0.5 where it supports a part, 0 where
            it does not; None for a sentence without a claim.
        triples: The supporting or conflicting triples.
    """

    text: str
    value: int = Field(ge=-1, le=1)
    support: Probability | None = 0.0
    rationale: str
    triples: tuple[Triple, ...] = ()


class KnowledgeReport(Value):
    """K (eq. 3).

    Attributes:
        score: K in [0, 1], the product's reading; 0 where the evidence supports no claim.
        paper: Eq. 3 as printed: weighted sum of VE, ``er_paper`` and ``kg_attr_mean``, not
            bounded; an undefined part counts 0.
        parts: ``ve``, ``er`` and ``kg_attr`` with their weights.
        er_paper: The sum of eq. 2 as printed, not bounded.
        kg_attr_mean: Mean of the values of all sentences, in [-1, 1].
        names: The answer's names (VE).
        entities: The linked entities (ER).
        sentences: The sentence verdicts (KG-Attr).
    """

    score: Score
    paper: Score
    parts: tuple[Weighted, ...]
    er_paper: Score
    kg_attr_mean: Score
    names: tuple[NamedEntity, ...]
    entities: tuple[EntityRelevance, ...]
    sentences: tuple[SentenceVerdict, ...]

    @property
    def unsupported(self) -> bool:
        """True if the sentences were judged, some make claims, and the evidence supports none."""
        claims = [verdict for verdict in self.sentences if verdict.support is not None]
        return bool(claims) and not any(verdict.support for verdict in claims)


class Feature(Value):
    """One feature of Table 2: found in the answer, expected for the question's intent."""

    name: str
    found: str
    expected: str
    part: Weighted


class StructureReport(Value):
    """S (SCK 2.2).

    Attributes:
        score: S in [0, 1].
        intent: The question's intent.
        question_intents: Probability of each intent, of the question.
        answer_intents: The same for the answer after alignment.
        features: The features of Table 2 and the agreement of the two distributions.
    """

    score: Score
    intent: Intent
    question_intents: Mapping[str, Probability]
    answer_intents: Mapping[str, Probability]
    features: tuple[Feature, ...]

    @property
    def intent_line(self) -> str:
        """The question's intent and its probability, as a line of text."""
        certainty = self.question_intents.get(self.intent, 0.0)
        return f"Intent of the question: {self.intent} ({certainty:.2f})"


class KeyEntity(Value):
    """An entity the answer should mention, and whether it does."""

    text: str
    entity_id: str | None = None
    found: bool


class ContentReport(Value):
    """C (eq. 4): the share of the key entities that the answer mentions.

    Attributes:
        score: C in [0, 1].
        source: Source of the key entities: ``reference``, ``question`` or ``evidence``.
        entities: The key entities.
    """

    score: Score
    source: str
    entities: tuple[KeyEntity, ...]


class SCKReport(Value):
    """SCK of one answer (eq. 5) with everything it was computed from.

    Attributes:
        score: SCK in [0, 1], used for decisions; 0 where the evidence supports no claim.
        paper: Eq. 5 with S, C and K as the paper defines them, not bounded; an undefined part
            counts 0.
        parts: ``structure``, ``content``, ``knowledge`` with the weights of the intent.
        structure: S.
        content: C.
        knowledge: K.
        warnings: Unusual properties of the answer or the question.
    """

    score: Score
    paper: Score
    parts: tuple[Weighted, ...]
    structure: StructureReport
    content: ContentReport
    knowledge: KnowledgeReport
    warnings: tuple[str, ...] = ()

    @property
    def scores(self) -> dict[str, Score]:
        """Every score by its name on a score card.

        ``sck`` (the product's) and ``sck_paper`` (eq. 5 as printed), ``sck.structure``,
        ``sck.content``, ``sck.knowledge``, and their parts, such as ``sck.structure.format``.
        """
        named = {
            "sck": self.score,
            "sck_paper": self.paper,
            "sck.knowledge.paper": self.knowledge.paper,
            "sck.knowledge.er_paper": self.knowledge.er_paper,
        }
        named |= {f"sck.{part.name}": part.score for part in self.parts}
        named |= {f"sck.knowledge.{part.name}": part.score for part in self.knowledge.parts}
        features = [feature.part for feature in self.structure.features]
        return named | {f"sck.structure.{part.name}": part.score for part in features}
