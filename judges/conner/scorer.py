"""CONNER's six perspectives for batches of rows, each from the models at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from guardrail.core.errors import GuardrailError
from guardrail.core.types import Score
from judges.base import (
    CausalLM,
    DiscourseModel,
    NLIJudge,
    Pair,
    RelevanceModel,
    SentenceEncoder,
    TokenLikelihoods,
)
from judges.conner.factuality import aggregate, choose_evidence, sentence_factuality
from judges.conner.likelihoods import (
    first_words,
    helpfulness,
    informativeness,
    informativeness_pair,
    irrelevant_knowledge,
    perplexity,
    sentence_coherence,
    uncapped_coherence,
)
from judges.conner.report import (
    ConnerInput,
    ConnerReport,
    ConnerSettings,
    Perspective,
    SentenceFactuality,
)
from judges.conner.selection import quality
from judges.conner.statements import stated

__all__ = ["ConnerModels", "ConnerScorer"]

ROWS_PER_CALL = 512
"""Rows whose texts the causal model is given at once, unless told. Among so many it meets each text
of a pool of irrelevant knowledge several times."""
ROWS_PER_BLOCK = 64
"""Rows whose inputs the other models are given at once."""

NOT_ASKED = "this perspective was not asked for"

Progress = Callable[[int, int], None]


class ConnerModels(NamedTuple):
    """The models behind the perspectives; a missing one leaves its perspective without value.

    Attributes:
        nli: Factuality and validity.
        encoder: Chooses evidence where there is more than the settings allow.
        relevance: Relevance.
        discourse: Paragraph coherence.
        causal: Sentence coherence, informativeness, helpfulness.
    """

    nli: NLIJudge | None = None
    encoder: SentenceEncoder | None = None
    relevance: RelevanceModel | None = None
    discourse: DiscourseModel | None = None
    causal: CausalLM | None = None


class ConnerScorer:
    """Scores generated knowledge, or answers in its place, from six perspectives.

    Args:
        models: What is at hand.
        settings: The paper's values unless told.
        irrelevant_pool: Texts from which eq. 6 samples its irrelevant knowledge.
    """

    def __init__(
        self,
        models: ConnerModels,
        settings: ConnerSettings | None = None,
        *,
        irrelevant_pool: Sequence[str] = (),
    ) -> None:
        self.models = models
        self.settings = settings or ConnerSettings()
        self.irrelevant_pool = tuple(irrelevant_pool)

    def score(
        self,
        rows: Sequence[ConnerInput],
        progress: Progress | None = None,
        *,
        rows_per_call: int = ROWS_PER_CALL,
    ) -> list[ConnerReport]:
        """Score n rows; every model is called once per block of rows, for all of them.

        Args:
            rows: What to score.
            progress: Told (rows done, rows in all) after each block of at most 64 rows. The
                causal model, which comes first, tells its own: see ``create_causal_lm``.
            rows_per_call: Rows whose texts the causal model is given at once. Among more rows it
                finds more texts that start alike, which it reads once.
        """
        reports: list[ConnerReport] = []
        for start in range(0, len(rows), rows_per_call):
            together = rows[start : start + rows_per_call]
            likelihood = self._likelihood_scores(together)
            for at in range(0, len(together), ROWS_PER_BLOCK):
                part = slice(at, at + ROWS_PER_BLOCK)
                reports += self._score_block(together[part], likelihood[part])
                if progress is not None:
                    progress(len(reports), len(rows))
        return reports

    def _score_block(
        self, rows: Sequence[ConnerInput], likelihood: Sequence[_Likelihood]
    ) -> list[ConnerReport]:
        factual = self._factuality(rows)
        relevance = self._relevance(rows)
        paragraph = self._paragraph_coherence(rows)
        validity = self._validity(rows)
        reports = []
        for index in range(len(rows)):
            report = ConnerReport(
                **factual[index]._asdict(),
                **likelihood[index]._asdict(),
                relevance=relevance[index],
                coherence_paragraph=paragraph[index],
                validity=validity[index],
                quality=Score(reason="not yet computed"),
            )
            reports.append(
                report.model_copy(update={"quality": quality(report, self.settings.weights)})
            )
        return reports

    def _asked(self, perspective: Perspective) -> bool:
        return perspective in self.settings.perspectives

    def _factuality(self, rows: Sequence[ConnerInput]) -> list[_Factual]:
        if not self._asked(Perspective.FACTUALITY):
            return [_no_factuality(NOT_ASKED)] * len(rows)
        if self.models.nli is None:
            return [_no_factuality("no NLI judge is configured")] * len(rows)
        texts = [(row.sentences, row.evidence) for row in rows]
        encoder, limit = self.models.encoder, self.settings.evidence_per_sentence
        literal = self.settings.word_for_word
        found = [stated(*text) if literal else [None] * len(text[0]) for text in texts]
        try:
            if encoder is not None:
                evidence = choose_evidence(encoder, texts, found, limit)
            else:
                evidence = [[tuple(pieces)] * len(sentences) for sentences, pieces in texts]
            read = [(own, pieces) for (own, _), pieces in zip(texts, evidence, strict=True)]
            judged = sentence_factuality(self.models.nli, read, found)
        except GuardrailError as error:
            return [_no_factuality(str(error))] * len(rows)
        return [self._join_sentences(row, parts) for row, parts in zip(rows, judged, strict=True)]

    def _join_sentences(self, row: ConnerInput, parts: tuple[SentenceFactuality, ...]) -> _Factual:
        if not row.evidence:
            return _no_factuality("no evidence")
        if not parts:
            return _no_factuality("no sentences")
        whole = aggregate(parts, self.settings.aggregation)
        basis = tuple(f"{part.scores.entailment:.4f} {part.sentence}" for part in parts)
        return _Factual(
            factuality=Score(value=whole.entailment, evidence=basis),
            non_verified=Score(value=whole.neutral),
            factual_inconsistent=Score(value=whole.contradiction),
            sentences=parts,
        )

    def _relevance(self, rows: Sequence[ConnerInput]) -> list[Score]:
        model = self.models.relevance
        if not self._asked(Perspective.RELEVANCE):
            return [Score(reason=NOT_ASKED)] * len(rows)
        if model is None:
            return [Score(reason="no relevance model is configured")] * len(rows)
        try:
            values = model.relevance([(row.query, row.knowledge) for row in rows])
        except GuardrailError as error:
            return [Score(reason=str(error))] * len(rows)
        return [
            Score(value=value)
            if row.query.strip() and row.knowledge.strip()
            else Score(reason="no question or no text")
            for row, value in zip(rows, values, strict=True)
        ]

    def _paragraph_coherence(self, rows: Sequence[ConnerInput]) -> list[Score]:
        model = self.models.discourse
        if not self._asked(Perspective.COHERENCE_PARAGRAPH):
            return [Score(reason=NOT_ASKED)] * len(rows)
        if model is None:
            return [Score(reason="no discourse model is configured")] * len(rows)
        several = [row for row in rows if len(row.sentences) > 1]
        try:
            values = iter(model.coherence([row.sentences for row in several]))
        except GuardrailError as error:
            return [Score(reason=str(error))] * len(rows)
        return [
            Score(value=next(values))
            if len(row.sentences) > 1
            else Score(reason="fewer than two sentences")
            for row in rows
        ]

    def _likelihood_scores(self, rows: Sequence[ConnerInput]) -> list[_Likelihood]:
        if self.models.causal is None:
            return [_no_likelihood("no causal language model is configured")] * len(rows)
        plans = [self._plan(row) for row in rows]
        pairs = list(dict.fromkeys(pair for plan in plans for pair in plan.pairs()))
        try:
            likelihoods = self.models.causal.loglikelihoods(pairs) if pairs else []
            found = dict(zip(pairs, likelihoods, strict=True))
        except GuardrailError as error:
            return [_no_likelihood(str(error))] * len(rows)
        return [self._from_likelihoods(plan, found) for plan in plans]

    def _plan(self, row: ConnerInput) -> _Plan:
        helps = self._asked(Perspective.HELPFULNESS)
        asks = helps and row.answer is not None and bool(row.answer.strip())
        pool = self.irrelevant_pool if asks else ()
        irrelevant = irrelevant_knowledge(pool, row.query, row.knowledge, self.settings)
        sentences = row.sentences if self._asked(Perspective.COHERENCE_SENTENCE) else ()
        informative = self._asked(Perspective.INFORMATIVENESS)
        words = self.settings.helpfulness_words
        return _Plan(
            sentences=tuple(("", sentence) for sentence in sentences),
            knowledge=informativeness_pair(row.query, row.knowledge, self.settings)
            if informative
            else None,
            helped=_answer_pair(row, row.knowledge, words) if asks else None,
            unhelped=tuple(_answer_pair(row, text, words) for text in irrelevant) if asks else (),
        )

    def _from_likelihoods(
        self, plan: _Plan, found: dict[tuple[str, str], TokenLikelihoods]
    ) -> _Likelihood:
        capped = [perplexity(found[pair], self.settings.perplexity_cap) for pair in plan.sentences]
        perplexities = tuple(value for value in capped if value is not None)
        no_sentence = self._unless("no sentences", Perspective.COHERENCE_SENTENCE)
        uncapped = uncapped_coherence([found[pair] for pair in plan.sentences])
        informative = None if plan.knowledge is None else informativeness(found[plan.knowledge])
        if plan.helped is None:
            help_raw, help_reason = None, self._unless("no answer", Perspective.HELPFULNESS)
        elif not plan.unhelped:
            help_raw, help_reason = None, "no pool of irrelevant knowledge"
        else:
            help_raw = helpfulness(found[plan.helped], [found[pair] for pair in plan.unhelped])
            help_reason = "the answer has no likelihood to improve"
        return _Likelihood(
            coherence_sentence=_score(
                sentence_coherence(perplexities) if perplexities else None, no_sentence
            ),
            coherence_sentence_uncapped=_score(uncapped, no_sentence),
            perplexities=perplexities,
            informativeness=_score(
                informative, self._unless("no text", Perspective.INFORMATIVENESS)
            ),
            helpfulness=_score(None if help_raw is None else max(0.0, help_raw), help_reason),
            helpfulness_unclipped=_score(help_raw, help_reason),
        )

    def _unless(self, reason: str, perspective: Perspective) -> str:
        """Why a perspective has no value: it was not asked for, else the reason."""
        return reason if self._asked(perspective) else NOT_ASKED

    def _validity(self, rows: Sequence[ConnerInput]) -> list[Score]:
        """Eq. 7 for span answers, eq. 8 for open ones."""
        if not self._asked(Perspective.VALIDITY):
            return [Score(reason=NOT_ASKED)] * len(rows)
        if self.models.nli is None:
            return [Score(reason="no NLI judge is configured")] * len(rows)
        pairs = [_validity_pairs(row) for row in rows]
        flat = [pair for own in pairs for pair in own]
        try:
            scores = iter(self.models.nli.judge(flat) if flat else [])
        except GuardrailError as error:
            return [Score(reason=str(error))] * len(rows)
        return [
            Score(value=max(next(scores).entailment for _ in own))
            if own
            else Score(reason=_validity_reason(row))
            for row, own in zip(rows, pairs, strict=True)
        ]


class _Factual(NamedTuple):
    factuality: Score
    non_verified: Score
    factual_inconsistent: Score
    sentences: tuple[SentenceFactuality, ...] = ()


class _Likelihood(NamedTuple):
    coherence_sentence: Score
    coherence_sentence_uncapped: Score
    informativeness: Score
    helpfulness: Score
    helpfulness_unclipped: Score
    perplexities: tuple[float, ...] = ()


class _Plan(NamedTuple):
    """The likelihoods one row needs, as (prefix, continuation) pairs."""

    sentences: tuple[tuple[str, str], ...]
    knowledge: tuple[str, str] | None
    helped: tuple[str, str] | None
    unhelped: tuple[tuple[str, str], ...]

    def pairs(self) -> list[tuple[str, str]]:
        single = [pair for pair in (self.knowledge, self.helped) if pair is not None]
        return [*self.sentences, *single, *self.unhelped]


def _answer_pair(row: ConnerInput, knowledge: str, words: int) -> tuple[str, str]:
    knowledge = first_words(knowledge, words)
    return f"{knowledge}\n\nQuestion: {row.query}\n\nAnswer:", f" {row.answer}"


def _validity_pairs(row: ConnerInput) -> list[Pair]:
    if not row.answer:
        return []
    if row.answer_kind == "open":
        pieces = (*row.evidence, row.reference) if row.reference else row.evidence
        return [Pair(premise=piece, hypothesis=row.answer) for piece in pieces]
    if not row.reference:
        return []
    return [Pair(premise=f"{row.query} {row.reference}", hypothesis=f"{row.query} {row.answer}")]


def _validity_reason(row: ConnerInput) -> str:
    if not row.answer:
        return "no answer"
    return "no evidence" if row.answer_kind == "open" else "no reference answer"


def _no_factuality(reason: str) -> _Factual:
    missing = Score(reason=reason)
    return _Factual(missing, missing, missing)


def _no_likelihood(reason: str) -> _Likelihood:
    missing = Score(reason=reason)
    return _Likelihood(missing, missing, missing, missing, missing)


def _score(value: float | None, reason: str) -> Score:
    return Score(reason=reason) if value is None else Score(value=value)
