"""What CONNER reads and returns: typed rows, settings and a report with every part."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from guardrail.core.types import NLIScores, Score, Value

__all__ = [
    "Aggregation",
    "ConnerInput",
    "ConnerReport",
    "ConnerSettings",
    "Perspective",
    "QualityWeights",
    "SentenceFactuality",
]


class Aggregation(StrEnum):
    """How the factuality of sentences becomes that of a text (eq. 1)."""

    MIN = "min"
    MEAN = "mean"
    MAX = "max"


class Perspective(StrEnum):
    """The perspectives that can be asked for; coherence is two (eq. 3 and 4)."""

    FACTUALITY = "factuality"
    RELEVANCE = "relevance"
    COHERENCE_SENTENCE = "coherence_sentence"
    COHERENCE_PARAGRAPH = "coherence_paragraph"
    INFORMATIVENESS = "informativeness"
    HELPFULNESS = "helpfulness"
    VALIDITY = "validity"


class QualityWeights(Value):
    """The coefficients γ of the four intrinsic perspectives (eq. 9); equal unless told."""

    factuality: float = 0.25
    relevance: float = 0.25
    coherence: float = 0.25
    informativeness: float = 0.25


class ConnerSettings(Value):
    """The settings of the released scripts, with the paper's values as defaults.

    Attributes:
        aggregation: Over sentences, in eq. 1.
        evidence_per_sentence: The most relevant pieces of evidence read per sentence.
        word_for_word: Whether a sentence that stands in its evidence word for word is taken as
            entailed, in eq. 1, without asking the judge; one that refers back, with *he* or *this*,
            only after the sentence that it follows there, too.
        perplexity_cap: A sentence's perplexity counts as at most this.
        informativeness_words: Knowledge is cut to this many words for eq. 5.
        informativeness_prompt: Stands before the question in eq. 5.
        helpfulness_words: Knowledge is cut to this many words for eq. 6.
        irrelevant_samples: Number u of irrelevant knowledge texts in eq. 6.
        seed: Chooses the irrelevant texts.
        weights: γ of eq. 9.
        perspectives: Those to compute; the others have no value and cost nothing.
    """

    aggregation: Aggregation = Aggregation.MIN
    evidence_per_sentence: int = Field(default=5, ge=1)
    word_for_word: bool = True
    perplexity_cap: float = Field(default=200.0, ge=1.0)
    informativeness_words: int = Field(default=300, ge=1)
    informativeness_prompt: str = "Generate a Wikipedia to answer the given question."
    helpfulness_words: int = Field(default=500, ge=1)
    irrelevant_samples: int = Field(default=5, ge=1)
    seed: int = 0
    weights: QualityWeights = QualityWeights()
    perspectives: frozenset[Perspective] = frozenset(Perspective)


class ConnerInput(Value):
    """One row to score.

    Attributes:
        query: The question.
        knowledge: The text to judge: generated knowledge, or an answer in its place.
        sentences: The sentences of ``knowledge``, in order.
        evidence: Texts to check it against; empty where there are none.
        answer: The answer whose generation the knowledge should help (eq. 6), and the one
            judged for validity (eq. 7, 8).
        reference: The gold answer a* of eq. 7; for an open answer one more piece of evidence, as
            in the released script.
        answer_kind: ``span`` for a short answer (eq. 7), ``open`` for a sentence (eq. 8).
    """

    query: str
    knowledge: str
    sentences: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    answer: str | None = None
    reference: str | None = None
    answer_kind: Literal["span", "open"] = "span"


class SentenceFactuality(Value):
    """A sentence with the piece of evidence that entails it most.

    ``scores`` reads as factual-consistent (entailment), non-verified (neutral) and
    factual-inconsistent (contradiction).
    """

    sentence: str
    evidence: str
    scores: NLIScores


class ConnerReport(Value):
    """The six perspectives of one row, all in [0, 1], with their parts.

    Attributes:
        factuality: The factual-consistent component (eq. 1).
        non_verified: The neutral component.
        factual_inconsistent: The contradicted component.
        sentences: The parts of eq. 1.
        relevance: eq. 2.
        coherence_sentence: Mean of 1/PPL over sentences (eq. 3), perplexities capped.
        coherence_sentence_uncapped: The same without a cap, as eq. 3 is printed; it still orders
            texts that a small model finds so unlikely that the cap makes them equal.
        perplexities: Capped perplexity of each sentence.
        coherence_paragraph: eq. 4.
        informativeness: eq. 5.
        helpfulness: eq. 6, clipped at 0.
        helpfulness_unclipped: eq. 6 before the maximum with 0 (Table 16).
        validity: eq. 7 or 8.
        quality: Q_know, eq. 9, over those of its four perspectives that have a value.
    """

    factuality: Score
    non_verified: Score
    factual_inconsistent: Score
    sentences: tuple[SentenceFactuality, ...] = ()
    relevance: Score
    coherence_sentence: Score
    coherence_sentence_uncapped: Score
    perplexities: tuple[float, ...] = ()
    coherence_paragraph: Score
    informativeness: Score
    helpfulness: Score
    helpfulness_unclipped: Score
    validity: Score
    quality: Score
