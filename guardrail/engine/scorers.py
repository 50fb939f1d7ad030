"""SCK and CONNER as scorers of the guardrail: its rows to theirs, their reports to scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from threading import BoundedSemaphore, Thread
from typing import TYPE_CHECKING

from guardrail.core.errors import GuardrailError
from guardrail.core.types import Evidence, Passage, Score, Triple, linearise
from guardrail.engine.scoring import ScoringRequest

if TYPE_CHECKING:
    from judges.base import CausalLM, NLIJudge
    from judges.conner import ConnerInput, ConnerReport, ConnerScorer
    from judges.sck import SCKInput, SCKReport, SCKScorer

__all__ = [
    "ConnerGuardScorer",
    "SCKGuardScorer",
    "conner_input",
    "conner_scorer",
    "evidence_texts",
    "sck_input",
    "sck_scorer",
]

FACTS_PER_TEXT = 12
"""Facts of one entity that are read together, so that a sentence with several facts can be
entailed by one piece of evidence (CONNER eq. 1 takes the maximum over pieces)."""


def evidence_texts(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """Evidence as texts: passages as they are, the facts of an entity in groups."""
    texts = [piece.text for piece in evidence if isinstance(piece, Passage)]
    triples = [piece for piece in evidence if isinstance(piece, Triple)]
    for _, group in groupby(triples, key=lambda triple: triple.subject):
        facts = list(group)
        texts += [
            linearise(facts[start : start + FACTS_PER_TEXT])
            for start in range(0, len(facts), FACTS_PER_TEXT)
        ]
    return tuple(texts)


def conner_scorer(nli: NLIJudge | None = None, causal: CausalLM | None = None) -> ConnerGuardScorer:
    """CONNER with the shipped encoder; perspectives that need a causal model only with one.

    Args:
        nli: The guardrail's NLI judge.
        causal: Tells token likelihoods; see ``judges.causal_lm``.
    """
    from judges.conner import ConnerModels, ConnerScorer
    from judges.encoder import create_encoder

    encoder = create_encoder()
    models = ConnerModels(
        nli=nli, encoder=encoder, relevance=encoder, discourse=encoder, causal=causal
    )
    return ConnerGuardScorer(ConnerScorer(models))


READ_AHEAD = 4
"""Most threads that encode ahead of ``score``; a pass of the guardrail starts two."""


class ConnerGuardScorer:
    """The six perspectives on an answer, which takes the place of the knowledge (CONNER 3)."""

    name = "conner"

    def __init__(self, scorer: ConnerScorer) -> None:
        self._scorer = scorer

    def score(self, batch: Sequence[ScoringRequest]) -> list[Mapping[str, Score]]:
        """Score n answers by what they were judged against."""
        reports = self._scorer.score([conner_input(request) for request in batch])
        return [_conner_scores(report) for report in reports]


def conner_input(request: ScoringRequest, reference: str | None = None) -> ConnerInput:
    """An answer as CONNER's knowledge; with a reference, its validity is judged as well."""
    from judges.conner import ConnerInput

    return ConnerInput(
        query=request.question,
        knowledge=request.answer.text,
        sentences=tuple(sentence.text for sentence in request.answer.sentences),
        evidence=evidence_texts(request.evidence),
        answer=None if reference is None else request.answer.text,
        reference=reference,
    )


def _conner_scores(report: ConnerReport) -> dict[str, Score]:
    return {
        "conner": report.quality,
        "conner.factuality": report.factuality,
        "conner.non_verified": report.non_verified,
        "conner.factual_inconsistent": report.factual_inconsistent,
        "conner.relevance": report.relevance,
        "conner.coherence_sentence": report.coherence_sentence,
        "conner.coherence_paragraph": report.coherence_paragraph,
        "conner.informativeness": report.informativeness,
    }


def sck_scorer(nli: NLIJudge | None = None) -> SCKGuardScorer:
    """SCK with the shipped encoder; the guardrail's own verdicts serve as KG-AttrScore.

    Args:
        nli: Judge of sentences that come without a verdict.
    """
    from judges.encoder import create_encoder
    from judges.sck import SCKScorer

    return SCKGuardScorer(SCKScorer(create_encoder(), nli))


class SCKGuardScorer:
    """Structure, content and knowledge of an answer (SCK eq. 5)."""

    name = "sck"

    def __init__(self, scorer: SCKScorer) -> None:
        self._scorer = scorer
        self._ahead = BoundedSemaphore(READ_AHEAD)

    def warm_up(self) -> None:
        """Load encoder and judge.

        Raises:
            JudgeError: A model cannot be loaded.
        """
        self._scorer.warm_up()

    def read_ahead(self, batch: Sequence[ScoringRequest]) -> None:
        """Begin to encode n answers; while they are parsed, cores are idle.

        Where many callers do so at once, no core is: ``score`` encodes what is left out.
        """
        if self._ahead.acquire(blocking=False):
            Thread(target=self._encode, args=(batch,), name="sck-ahead", daemon=True).start()

    def _encode(self, batch: Sequence[ScoringRequest]) -> None:
        try:
            with suppress(GuardrailError):  # ``score`` asks again, and tells
                self._scorer.read_ahead([sck_input(request) for request in batch])
        finally:
            self._ahead.release()

    def score(self, batch: Sequence[ScoringRequest]) -> list[Mapping[str, Score]]:
        """Score n answers by what they were judged against, and by how they were parsed."""
        docs = {text: doc for request in batch for text, doc in request.docs.items()}
        reports = self._scorer.score([sck_input(request) for request in batch], docs)
        return [_sck_scores(report) for report in reports]


def _sck_scores(report: SCKReport) -> dict[str, Score]:
    """The scores by name; the whole one names the intent, by which reports group answers."""
    from judges.sck.explanation import intent_line

    whole = report.score
    notes = (*whole.evidence, intent_line(report.structure))
    return report.scores | {"sck": whole.model_copy(update={"evidence": notes})}


def sck_input(request: ScoringRequest, reference: str | None = None) -> SCKInput:
    """An answer with its verdicts, links and evidence as SCK reads it."""
    from judges.sck import SCKInput

    return SCKInput(
        question=request.question,
        answer=request.answer.text,
        sentences=request.answer.sentences,
        entities=request.entities,
        evidence=request.evidence,
        reference=reference,
    )
