"""Input and report of SCK; every number comes with what it was computed from."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from guardrail.core.types import (
    Evidence,
    LinkedEntity,
    NLIScores,
    Probability,
    Score,
    Sentence,
    Triple,
    Value,
)
from judges.sck.intents import Intent

__all__ = [
    "ContentReport",
    "EntityRelevance",
    "Feature",
    "KeyEntity",
    "KnowledgeReport",
    "NamedEntity",
    "SCKInput",
    "SCKReport",
    "SentenceVerdict",
    "StructureReport",
    "Weighted",
]


class SCKInput(Value):
    """One answer to score.

    Attributes:
        question: The question; may be empty.
        answer: The answer, without citation markers, Markdown as it stands.
        sentences: The answer's sentences. If any carries a ``category``, these verdicts are
            used; otherwise the scorer's judge reads each sentence. Empty: the scorer splits.
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
        scores: The judge's NLI probabilities; None for a verdict of the caller.
    """

    text: str
    value: int = Field(ge=-1, le=1)
    support: Probability | None = 0.0
    rationale: str
    triples: tuple[Triple, ...] = ()
    scores: NLIScores | None = None


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
        named |= {
            f"sck.structure.{feature.name}": feature.part.score
            for feature in self.structure.features
        }
        return named
