"""SCK and CONNER as scorers of the guardrail."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from guardrail.core.types import Evidence, Passage, Score, Triple, linearise
from guardrail.engine.scoring import ScoringRequest

if TYPE_CHECKING:
    from guardrail.config import GuardrailConfig
    from judges.base import NLIJudge, RelevanceModel
    from judges.conner import ConnerInput, ConnerReport, ConnerScorer, ConnerSettings
    from judges.sck import SCKInput, SCKReport, SCKScorer

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


def conner_scorer(
    nli: NLIJudge | None = None, config: GuardrailConfig | None = None
) -> ConnerGuardScorer:
    """CONNER with the shipped encoder and the causal language model of ``model.causal_lm``.

    Args:
        nli: The guardrail's NLI judge.
        config: Names the causal language model; without one, sentence coherence and
            informativeness have no value.

    Raises:
        ConfigError: The causal language model has an unknown scheme.
    """
    from judges.conner import ConnerSettings, Perspective

    # Without a reference, validity would repeat factuality, and helpfulness has no answer.
    perspectives = frozenset(Perspective) - {Perspective.VALIDITY, Perspective.HELPFULNESS}
    settings = ConnerSettings(perspectives=perspectives)
    return ConnerGuardScorer(open_conner(nli, config, settings=settings))


def open_conner(
    nli: NLIJudge | None,
    config: GuardrailConfig | None,
    *,
    settings: ConnerSettings | None = None,
    pool: Sequence[str] = (),
) -> ConnerScorer:
    """The CONNER scorer of a configuration.

    Args:
        nli: The NLI judge.
        config: Names the causal language model.
        settings: The paper's by default.
        pool: Irrelevant knowledge for helpfulness (eq. 6); by default the handbook of the
            invented company that ships with the package, on which no real question bears.

    Raises:
        ConfigError: The causal language model has an unknown scheme.
    """
    from guardrail.company import handbook
    from judges.causal_lm import create_causal_lm
    from judges.conner import ConnerModels, ConnerScorer
    from judges.encoder import create_encoder

    encoder = create_encoder()
    name, url = (None, None) if config is None else (config.model.causal_lm, config.model.base_url)
    models = ConnerModels(
        nli=nli,
        encoder=encoder,
        relevance=encoder,
        discourse=encoder,
        causal=None if name is None else create_causal_lm(name, base_url=url),
    )
    return ConnerScorer(
        models, settings, irrelevant_pool=pool or [passage.text for passage in handbook()]
    )


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
    """An answer in the place of CONNER's knowledge.

    With a reference, validity judges the answer against it, and helpfulness asks whether the
    answer helps to generate it.
    """
    from judges.conner import ConnerInput

    return ConnerInput(
        query=request.question,
        knowledge=request.answer.text,
        sentences=tuple(sentence.text for sentence in request.answer.sentences),
        evidence=evidence_texts(request.evidence),
        answer=request.answer.text,
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
    """SCK with the shipped encoder; the guardrail's own verdicts serve as KG-AttrScore."""
    from judges.encoder import create_encoder
    from judges.sck import SCKScorer

    return SCKGuardScorer(SCKScorer(create_encoder(), nli))


class SCKGuardScorer:
    """Structure, content and knowledge of an answer (SCK eq. 5)."""

    name = "sck"

    def __init__(self, scorer: SCKScorer) -> None:
        self._scorer = scorer

    def warm_up(self) -> None:
        """Load encoder and judge.

        Raises:
            JudgeError: A model cannot be loaded.
        """
        self._scorer.warm_up()

    def score(self, batch: Sequence[ScoringRequest]) -> list[Mapping[str, Score]]:
        """Score n answers by what they were judged against, and by how they were parsed."""
        docs = {text: doc for request in batch for text, doc in request.docs.items()}
        reports = self._scorer.score([sck_input(request) for request in batch], docs)
        return [_sck_scores(report) for report in reports]


def _sck_scores(report: SCKReport) -> dict[str, Score]:
    """The scores by name; ``sck`` names the intent, which reports use to group answers."""
    whole = report.score
    notes = (*whole.evidence, report.structure.intent_line)
    return report.scores | {"sck": whole.model_copy(update={"evidence": notes})}


def sck_input(request: ScoringRequest, reference: str | None = None) -> SCKInput:
    """An answer with its verdicts, links and evidence as input of SCK."""
    from judges.sck import SCKInput

    return SCKInput(
        question=request.question,
        answer=request.answer.text,
        sentences=request.answer.sentences,
        entities=request.entities,
        evidence=request.evidence,
        reference=reference,
    )


RELEVANCE_SLOPE, RELEVANCE_OFFSET = 23.1, -5.7
"""Log-odds of relevance by the cosine of question and answer, fitted by logistic regression on 300
questions of Natural Questions (CONNER's sample), each with its own passage and with another's."""


def relevance_scorer() -> RelevanceScorer:
    """Answer relevance with the shipped encoder."""
    from judges.encoder import create_encoder

    return RelevanceScorer(create_encoder())


class RelevanceScorer:
    """Probability that an answer addresses its question, whatever the evidence says of it."""

    name = "relevance"

    def __init__(self, encoder: RelevanceModel) -> None:
        self._encoder = encoder

    def score(self, batch: Sequence[ScoringRequest]) -> list[Mapping[str, Score]]:
        """Score n answers; one without a question has no value."""
        cosines = self._encoder.relevance([(item.question, item.answer.text) for item in batch])
        return [
            {"relevance": _relevance(cosine) if item.question.strip() else NO_QUESTION}
            for item, cosine in zip(batch, cosines, strict=True)
        ]


NO_QUESTION = Score(reason="there is no question")


def _relevance(cosine: float) -> Score:
    log_odds = RELEVANCE_SLOPE * cosine + RELEVANCE_OFFSET
    return Score(value=1.0 / (1.0 + math.exp(-log_odds)))
