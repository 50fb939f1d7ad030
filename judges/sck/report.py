"""What SCK reads and what it reports: every number beside what it was computed from."""

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
        sentences: The answer's sentences. Where they carry a ``category``, the verdict is taken
            over; where none does, the scorer's judge gives one. Empty: the scorer splits.
        entities: Entities linked in the question and in the answer, as far as they are known.
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
    """A name in the answer, and where the evidence knows it from.

    Attributes:
        text: The name as it stands.
        entity_id: The linked node, where there is one.
        found_in: What verifies it: ``linked``, ``triple``, ``passage``; None: not verifiable.
    """

    text: str
    entity_id: str | None = None
    found_in: str | None = None


class EntityRelevance(Value):
    """How near a linked entity's description is to the question (eq. 2).

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
        triples: The triples it rests on.
        scores: The NLI probabilities behind it; None where the verdict was handed in.
    """

    text: str
    value: int = Field(ge=-1, le=1)
    rationale: str
    triples: tuple[Triple, ...] = ()
    scores: NLIScores | None = None


class KnowledgeReport(Value):
    """K (eq. 3).

    Attributes:
        score: K in [0, 1].
        parts: ``ve``, ``er`` and ``kg_attr`` with their weights.
        er_paper: The sum of eq. 2 as printed, not bounded.
        kg_attr_mean: Mean of the sentence values, in [-1, 1].
        names: The answer's names (VE).
        entities: The linked entities (ER).
        sentences: The sentence verdicts (KG-Attr).
    """

    score: Score
    parts: tuple[Weighted, ...]
    er_paper: Score
    kg_attr_mean: Score
    names: tuple[NamedEntity, ...]
    entities: tuple[EntityRelevance, ...]
    sentences: tuple[SentenceVerdict, ...]


class Feature(Value):
    """One feature of Table 2: what the answer shows, what its question's intent expects."""

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


class KeyEntity(Value):
    """An entity the answer should mention, and whether it does."""

    text: str
    entity_id: str | None = None
    found: bool


class ContentReport(Value):
    """C (eq. 4): the share of the key entities that the answer mentions.

    Attributes:
        score: C in [0, 1].
        source: Where the key entities come from: ``reference`` or ``question``.
        entities: The key entities.
    """

    score: Score
    source: str
    entities: tuple[KeyEntity, ...]


class SCKReport(Value):
    """SCK of one answer (eq. 5) with everything it was computed from.

    Attributes:
        score: SCK in [0, 1].
        parts: ``structure``, ``content``, ``knowledge`` with the weights of the intent.
        structure: S.
        content: C.
        knowledge: K.
        warnings: What a reader should know of this answer or question.
    """

    score: Score
    parts: tuple[Weighted, ...]
    structure: StructureReport
    content: ContentReport
    knowledge: KnowledgeReport
    warnings: tuple[str, ...] = ()

    @property
    def scores(self) -> dict[str, Score]:
        """Every score by its name on a score card.

        ``sck``, ``sck.structure``, ``sck.content``, ``sck.knowledge``, and below these
        ``sck.structure.format``, ``sck.knowledge.ve`` and so on.
        """
        named = {"sck": self.score, "sck.knowledge.er_paper": self.knowledge.er_paper}
        named |= {f"sck.{part.name}": part.score for part in self.parts}
        named |= {f"sck.knowledge.{part.name}": part.score for part in self.knowledge.parts}
        named |= {
            f"sck.structure.{feature.name}": feature.part.score
            for feature in self.structure.features
        }
        return named
