"""Score cards: what an answer's sentences say in numbers, and further scorers by name."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast, runtime_checkable

from guardrail.core.errors import ConfigError
from guardrail.core.plugins import NOWHERE, made_part, named_part, reporting
from guardrail.core.types import (
    AttributedAnswer,
    Evidence,
    LinkedEntity,
    Passage,
    Problem,
    Score,
    ScoreCard,
    Sentence,
    SpanKind,
    Triple,
    Verdict,
    linearise,
)
from guardrail.core.workers import InThread, called
from guardrail.policy import CLAIM_SCORES
from judges.registry import hint

if TYPE_CHECKING:
    from spacy.tokens import Doc

    from guardrail.config import GuardrailConfig
    from judges.base import NLIJudge
    from judges.conner import ConnerInput, ConnerScorer, ConnerSettings
    from judges.sck import SCKInput

SCORERS = {
    "sck": "guardrail.scorers:sck_scorer",
    "conner": "guardrail.scorers:conner_scorer",
    "quality": "guardrail.scorers:quality_scorer",
    "relevance": "guardrail.scorers:relevance_scorer",
}
"""Scorers by name, loaded when first named: ``module:factory``."""


class ScoringRequest(NamedTuple):
    """What a scorer reads of one answer.

    Attributes:
        question: The question.
        answer: The answer with its verdicts.
        evidence: What it was judged against.
        entities: What was linked in question and answer.
        docs: Question and answer, by text, as far as they are parsed.
    """

    question: str
    answer: AttributedAnswer
    evidence: tuple[Evidence, ...]
    entities: tuple[LinkedEntity, ...]
    docs: Mapping[str, Doc] = MappingProxyType({})


@runtime_checkable
class Scorer(Protocol):
    """Adds scores of its own to the card, by names that start with its name."""

    @property
    def name(self) -> str:
        """Prefix of its scores, such as ``sck``."""
        ...

    def score(
        self, batch: Sequence[ScoringRequest]
    ) -> Sequence[Mapping[str, Score]] | Awaitable[Sequence[Mapping[str, Score]]]:
        """Score n answers, in order; may be a coroutine.

        Raises:
            GuardrailError: The scorer cannot be used; the answers go on without its scores.
        """
        ...


def create_scorer(name: str, **parts: object) -> Scorer:
    """Make a scorer by its registered name, that of an installed one, or as ``module:factory``.

    Args:
        name: ``sck``, ``conner``, ``quality``, or an import path.
        parts: What the factory may ask for by keyword: ``graph``, ``nli``.

    Raises:
        ConfigError: There is no such scorer; the message names the nearest.
    """
    factory = named_part("scorers", SCORERS.get(name, name))
    if factory is None:
        raise ConfigError(f"there is no scorer {name!r}; {hint(name, SCORERS)}; or {NOWHERE}")
    wanted = inspect.signature(factory).parameters
    make = partial(factory, **{key: part for key, part in parts.items() if key in wanted})
    return cast("Scorer", made_part("scorers", name, make, ("name", "score")))


async def further_scores(
    batch: Sequence[ScoringRequest], scorers: Sequence[Scorer], in_thread: InThread
) -> tuple[list[dict[str, Score]], list[Problem]]:
    """Ask further scorers about n answers; one that fails is reported and left out.

    Returns:
        The scores of n answers by name, in order, and what went wrong.
    """
    rows: list[dict[str, Score]] = [{} for _ in batch]
    problems: list[Problem] = []
    for scorer in scorers:
        with reporting(problems, f"scorer {scorer.name}", f"scorer {scorer.name!r}"):
            found = [
                {name: Score.model_validate(score) for name, score in scores.items()}
                for scores in await called(in_thread, scorer.score, batch)
            ]
            for row, scores in list(zip(rows, found, strict=True)):
                row.update(scores)
    return rows, problems


def sentence_scores(sentences: Sequence[Sentence]) -> dict[str, Score]:
    """The scores that follow from the sentences alone.

    ``overall`` is the mean over claims of 1 for a supportive sentence, the supported share of
    its phrases (at most 0.75) for a partly supported one, and 0 otherwise, less the share of
    contradicted claims. ``supported_share``, ``na_share`` and ``contradicted_share`` are shares
    of the claims; ``citations`` counts different citations; ``grounded`` is their number times
    ``overall``, so that of two answers the one with more supported facts is better, unless more
    of it lacks support.
    """
    score = Score.model_construct  # with a value or a reason each, so that nothing is validated
    claims = [sentence for sentence in sentences if sentence.verdict is not Verdict.NO_CLAIM]
    cited = {citation for sentence in sentences for citation in sentence.citations}
    count = score(value=float(len(cited)))
    if not claims:
        none = score(reason="the answer makes no claim that could be checked")
        return dict.fromkeys(CLAIM_SCORES, none) | {"citations": count}
    total = len(claims)
    supported = [claim for claim in claims if claim.verdict is Verdict.SUPPORTED]
    against = [claim for claim in claims if claim.verdict is Verdict.CONTRADICTED]
    lacking = [claim for claim in claims if claim.na]
    mean = sum(map(_credit, claims)) / total
    judged = [claim.support for claim in claims if claim.support is not None]
    overall = max(0.0, mean - len(against) / total)
    evidence = (
        f"{len(supported)} of {total} claims supported",
        f"{len(lacking)} lack support, {len(against)} contradicted",
    )
    return {
        "overall": score(value=overall, evidence=evidence),
        "grounded": score(
            value=overall * len(cited), evidence=(f"facts cited: {len(cited)}", *evidence)
        ),
        "supported_share": score(value=len(supported) / total),
        "na_share": score(
            value=len(lacking) / total, evidence=tuple([item.text for item in lacking])
        ),
        "contradicted_share": score(
            value=len(against) / total, evidence=tuple([item.text for item in against])
        ),
        "entailment": score(value=sum(judged) / len(judged))
        if judged
        else score(reason="no judge was asked"),
        "citations": count,
    }


def score_card(sentences: Sequence[Sentence], further: Mapping[str, Score]) -> ScoreCard:
    """The scores that follow from the sentences, and further ones, which win."""
    scores = {**sentence_scores(sentences), **further}
    # Each is valid: as fields of a new model they would be checked again
    return ScoreCard.model_construct(overall=scores.pop("overall"), scores=scores)


def _credit(sentence: Sentence) -> float:
    if sentence.verdict is Verdict.SUPPORTED:
        return 1.0
    if not sentence.partial:
        return 0.0
    supported = sum(span.kind is SpanKind.SUPPORTED for span in sentence.spans)
    # A sentence that lacks support in part earns at most this share of a supported one
    return 0.75 * supported / max(1, len(sentence.spans))


def evidence_texts(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """Evidence as texts: passages as they are, the facts of an entity in groups."""
    texts = [piece.text for piece in evidence if isinstance(piece, Passage)]
    triples = [piece for piece in evidence if isinstance(piece, Triple)]
    for _, group in groupby(triples, key=lambda triple: triple.subject):
        facts = list(group)
        # Facts of one entity are read a dozen together, so that a sentence with several facts can
        # be entailed by one piece of evidence (CONNER eq. 1 takes the maximum over pieces).
        texts += [linearise(facts[start : start + 12]) for start in range(0, len(facts), 12)]
    return tuple(texts)


@dataclass(frozen=True)
class BatchScorer:
    """A scorer of functions.

    Attributes:
        name: Prefix of its scores.
        score: Scores of n answers, in order; see ``Scorer``.
        warm_up: Loads its models.
    """

    name: str
    score: Callable[[Sequence[ScoringRequest]], list[Mapping[str, Score]]]
    warm_up: Callable[[], None] = lambda: None


def conner_scorer(
    nli: NLIJudge | None = None, config: GuardrailConfig | None = None
) -> BatchScorer:
    """CONNER's perspectives on an answer, which takes the place of the knowledge (CONNER 3).

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
    scorer = open_conner(nli, config, settings=ConnerSettings(perspectives=perspectives))
    shown = (
        "factuality", "non_verified", "factual_inconsistent", "relevance", "coherence_sentence",
        "coherence_paragraph", "informativeness",
    )  # fmt: skip

    def score(batch: Sequence[ScoringRequest]) -> list[Mapping[str, Score]]:
        return [
            {"conner": report.quality} | {f"conner.{name}": getattr(report, name) for name in shown}
            for report in scorer.score([conner_input(request) for request in batch])
        ]

    return BatchScorer("conner", score)


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
        causal=None if name is None else create_causal_lm(name, base_url=url),
    )
    return ConnerScorer(
        models, settings, irrelevant_pool=pool or [passage.text for passage in handbook()]
    )


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


def sck_scorer() -> BatchScorer:
    """Structure, content and knowledge of an answer (SCK eq. 5) with the shipped encoder.

    The guardrail's own verdicts serve as KG-AttrScore. ``sck`` names the intent, and reports
    group answers by it.
    """
    from judges.encoder import create_encoder
    from judges.sck import SCKScorer

    scorer = SCKScorer(create_encoder())

    def score(batch: Sequence[ScoringRequest]) -> list[Mapping[str, Score]]:
        docs = {text: doc for request in batch for text, doc in request.docs.items()}
        cards: list[Mapping[str, Score]] = []
        for report in scorer.score([sck_input(request) for request in batch], docs):
            notes = (*report.score.evidence, report.structure.intent_line)
            whole = report.score.model_copy(update={"evidence": notes})
            cards.append(report.scores | {"sck": whole})
        return cards

    return BatchScorer("sck", score, scorer.warm_up)


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


def relevance_scorer() -> BatchScorer:
    """Probability that an answer addresses its question, whatever the evidence says of it."""
    from judges.encoder import create_encoder

    encoder = create_encoder()

    def score(batch: Sequence[ScoringRequest]) -> list[Mapping[str, Score]]:
        cosines = encoder.relevance([(item.question, item.answer.text) for item in batch])
        return [
            {
                "relevance": _relevance(cosine)
                if item.question.strip()
                else Score(reason="there is no question")
            }
            for item, cosine in zip(batch, cosines, strict=True)
        ]

    return BatchScorer("relevance", score)


def _relevance(cosine: float) -> Score:
    # Fitted by logistic regression on 300 questions of Natural Questions (CONNER's sample), each
    # with its own passage and with another's
    log_odds = 23.1 * cosine - 5.7
    return Score(value=1.0 / (1.0 + math.exp(-log_odds)))


def quality_scorer() -> BatchScorer:
    """Coherence, consistency, fluency and relevance, each from 1 to 5, and their mean (KaLMA 4.1).

    A chat model rates: that of ``OPENAI_MODEL`` at ``OPENAI_BASE_URL``, four requests an answer.
    """
    from guardrail.models import DEFAULT_OPENAI_MODEL
    from judges.text_quality import OpenAIRater, QualityItem, rate_quality

    rater = OpenAIRater(os.environ.get("OPENAI_MODEL", DEFAULT_OPENAI_MODEL))

    def score(batch: Sequence[ScoringRequest]) -> list[Mapping[str, Score]]:
        items = [
            QualityItem(item.question, item.answer.text, "\n".join(_knowledge(item.evidence)))
            for item in batch
        ]
        cards: list[Mapping[str, Score]] = []
        for ratings in rate_quality(items, rater):
            known = [one.rating.value for one in ratings.values() if one.rating.value is not None]
            whole = Score(value=fmean(known)) if known else Score(reason="no rating could be read")
            named = {f"quality.{quality}": one.rating for quality, one in ratings.items()}
            cards.append({"quality": whole} | named)
        return cards

    return BatchScorer("quality", score)


def _knowledge(evidence: Sequence[Evidence]) -> Iterator[str]:
    """The facts as one text, and the passages."""
    if triples := linearise(item for item in evidence if not isinstance(item, Passage)):
        yield triples
    yield from (item.text for item in evidence if isinstance(item, Passage) and item.text)
