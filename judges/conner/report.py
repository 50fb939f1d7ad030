"""Input, settings and report of CONNER."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from pydantic import Field

from guardrail.core.types import NLIScores, Score, Value


class Aggregation(StrEnum):
    """Aggregation of sentence factuality over a text (eq. 1)."""

    MIN = "min"
    MEAN = "mean"
    MAX = "max"


class Perspective(StrEnum):
    """The perspectives; coherence counts as two (eq. 3 and 4)."""

    FACTUALITY = "factuality"
    RELEVANCE = "relevance"
    COHERENCE_SENTENCE = "coherence_sentence"
    COHERENCE_PARAGRAPH = "coherence_paragraph"
    INFORMATIVENESS = "informativeness"
    HELPFULNESS = "helpfulness"
    VALIDITY = "validity"


class QualityWeights(Value):
    """The coefficients γ of the four intrinsic perspectives (eq. 9); equal by default."""

    factuality: float = 0.25
    relevance: float = 0.25
    coherence: float = 0.25
    informativeness: float = 0.25


class ConnerSettings(Value):
    """The settings of the released scripts, with the paper's values as defaults.

    Attributes:
        aggregation: Over sentences, in eq. 1.
        evidence_per_sentence: The most relevant pieces of evidence read per sentence.
        word_for_word: In eq. 1, a sentence that the evidence contains word for word counts as
            entailed; one that refers back (*he*, *this*) only if the evidence also contains the
            sentence before it in the same order.
        perplexity_cap: Upper bound of a sentence's perplexity.
        informativeness_words: Knowledge is cut to this many words for eq. 5.
        informativeness_prompt: Instruction before the question in eq. 5.
        helpfulness_words: Knowledge is cut to this many words for eq. 6.
        irrelevant_samples: Number u of irrelevant knowledge texts in eq. 6.
        seed: Seed of the choice of irrelevant texts.
        weights: γ of eq. 9.
        perspectives: The perspectives to compute.
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
        knowledge: The text to score: generated knowledge, or an answer in its place.
        sentences: The sentences of ``knowledge``, in order.
        evidence: Texts to check it against.
        answer: The answer judged for validity (eq. 7, 8); the one that the knowledge should help
            to generate (eq. 6) where there is no reference.
        reference: The gold answer a* of eq. 7, and the answer of eq. 6; for an open answer one
            more piece of evidence, as in the released script.
        answer_kind: ``span`` for a short answer (eq. 7), ``open`` for one in sentences (eq. 8),
            ``auto`` to decide by the lengths of answer and reference.
    """

    query: str
    knowledge: str
    sentences: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    answer: str | None = None
    reference: str | None = None
    answer_kind: Literal["auto", "span", "open"] = "auto"

    @property
    def kind(self) -> Literal["span", "open"]:
        """``span`` if answer and reference are both at most ten words long.

        99 % of CONNER's NQ answers are shorter.
        """
        if self.answer_kind != "auto":
            return self.answer_kind
        texts = (self.answer or "", self.reference or "")
        short = bool(texts[1].strip()) and all(len(text.split()) <= 10 for text in texts)
        return "span" if short else "open"


class SentenceFactuality(Value):
    """A sentence and the piece of evidence that entails it most.

    The components of ``scores`` are factual-consistent (entailment), non-verified (neutral) and
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
        coherence_sentence_uncapped: The same without a cap, as eq. 3 is printed; it also orders
            texts whose perplexity a small model puts above the cap.
        perplexities: Capped perplexity of each sentence.
        coherence_paragraph: eq. 4.
        informativeness: eq. 5.
        helpfulness: eq. 6, clipped at 0.
        helpfulness_unclipped: eq. 6 before the maximum with 0 (Table 16).
        validity: eq. 7 or 8.
        quality: Q_know, eq. 9, over its perspectives that have a value.
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


def rank(reports: Sequence[ConnerReport]) -> list[int]:
    """Places of n reports by Q_know, best first (CONNER 5).

    The first is the knowledge to choose, and the first n the demonstrations. Equals stay in order;
    reports without a value go last.
    """
    values = [report.quality.value for report in reports]
    return sorted(
        range(len(values)),
        key=lambda place: -float("inf") if (value := values[place]) is None else value,
        reverse=True,
    )
