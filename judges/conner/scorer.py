"""CONNER's six perspectives for batches of rows, each by the models at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from guardrail.core.errors import GuardrailError
from guardrail.core.text.sentences import split_sentences
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
"""Rows whose texts go to the causal model together; so many share irrelevant texts."""
ROWS_PER_BLOCK = 64
"""Rows whose inputs go to the other models together."""

NOT_REQUESTED = "this perspective was not requested"

FACTUAL = ("factuality", "non_verified", "factual_inconsistent")
LIKELIHOOD = (
    "coherence_sentence", "coherence_sentence_uncapped", "informativeness", "helpfulness",
    "helpfulness_unclipped",
)  # fmt: skip
"""Fields of a report without a value if a model is missing."""

Progress = Callable[[int, int], None]
_Fields = dict[str, object]
"""Fields of a ``ConnerReport``."""
Likelihoods = Mapping[tuple[str, str], TokenLikelihoods]


class ConnerModels(NamedTuple):
    """The models behind the perspectives; without its model a perspective has no value.

    Attributes:
        nli: Factuality and validity.
        encoder: Choice of evidence where there is more than the settings allow.
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
    """Scores generated knowledge, or an answer in its place, from six perspectives.

    Args:
        models: The models at hand.
        settings: The paper's values by default.
        irrelevant_pool: Texts from which eq. 6 samples irrelevant knowledge.
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
        """Score n rows; a model that fails gives its perspectives a reason in place of a value.

        Args:
            rows: What to score.
            progress: Called with (rows done, rows in all) after each block of at most 64 rows.
            rows_per_call: Rows whose texts go to the causal model together.
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
        self, rows: Sequence[ConnerInput], likelihood: Sequence[_Fields]
    ) -> list[ConnerReport]:
        columns = zip(
            self._factuality(rows),
            likelihood,
            self._relevance(rows),
            self._paragraph_coherence(rows),
            self._validity(rows),
            strict=True,
        )
        reports = []
        for factual, likely, relevance, paragraph, validity in columns:
            other = {
                "relevance": relevance,
                "coherence_paragraph": paragraph,
                "validity": validity,
                "quality": Score(reason="not yet computed"),
            }
            parts = ConnerReport.model_validate(factual | likely | other)
            whole = quality(parts, self.settings.weights)
            reports.append(parts.model_copy(update={"quality": whole}))
        return reports

    def _without(self, perspective: Perspective, model: object, what: str) -> str | None:
        """Why a perspective has no value in any row; None if it can be computed."""
        if perspective not in self.settings.perspectives:
            return NOT_REQUESTED
        return None if model is not None else f"no {what} is configured"

    def _factuality(self, rows: Sequence[ConnerInput]) -> list[_Fields]:
        nli = self.models.nli
        reason = self._without(Perspective.FACTUALITY, nli, "NLI judge")
        if reason is not None or nli is None:
            return [_no_factuality(reason or "")] * len(rows)
        texts = [(row.sentences, row.evidence) for row in rows]
        literal = self.settings.word_for_word
        found = [stated(*text) if literal else [None] * len(text[0]) for text in texts]
        try:
            if self.models.encoder is not None:
                limit = self.settings.evidence_per_sentence
                evidence = choose_evidence(self.models.encoder, texts, found, limit)
            else:
                evidence = [[tuple(pieces)] * len(sentences) for sentences, pieces in texts]
            read = [(own, pieces) for (own, _), pieces in zip(texts, evidence, strict=True)]
            judged = sentence_factuality(nli, read, found)
        except GuardrailError as error:
            return [_no_factuality(str(error))] * len(rows)
        return [self._joined(row, parts) for row, parts in zip(rows, judged, strict=True)]

    def _joined(self, row: ConnerInput, parts: tuple[SentenceFactuality, ...]) -> _Fields:
        if not row.evidence or not parts:
            return _no_factuality("no sentences" if row.evidence else "no evidence")
        whole = aggregate(parts, self.settings.aggregation)
        basis = tuple(f"{part.scores.entailment:.4f} {part.sentence}" for part in parts)
        return {
            "factuality": Score(value=whole.entailment, evidence=basis),
            "non_verified": Score(value=whole.neutral),
            "factual_inconsistent": Score(value=whole.contradiction),
            "sentences": parts,
        }

    def _relevance(self, rows: Sequence[ConnerInput]) -> list[Score]:
        model = self.models.relevance
        reason = self._without(Perspective.RELEVANCE, model, "relevance model")
        if reason is not None or model is None:
            return [Score(reason=reason)] * len(rows)
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
        reason = self._without(Perspective.COHERENCE_PARAGRAPH, model, "discourse model")
        if reason is not None or model is None:
            return [Score(reason=reason)] * len(rows)
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

    def _validity(self, rows: Sequence[ConnerInput]) -> list[Score]:
        """Eq. 7 for span answers; eq. 8 for open ones, as the mean over their sentences."""
        reason = self._without(Perspective.VALIDITY, self.models.nli, "NLI judge")
        if reason is not None or self.models.nli is None:
            return [Score(reason=reason)] * len(rows)
        try:
            groups = self._validity_pairs(rows)
        except GuardrailError as error:
            return [Score(reason=str(error))] * len(rows)
        flat = [pair for sentences in groups for pairs in sentences for pair in pairs]
        try:
            scores = iter(self.models.nli.judge(flat) if flat else [])
        except GuardrailError as error:
            return [Score(reason=str(error))] * len(rows)
        return [
            Score(value=fmean(max(next(scores).entailment for _ in pairs) for pairs in sentences))
            if sentences
            else Score(reason=_no_validity(row))
            for row, sentences in zip(rows, groups, strict=True)
        ]

    def _validity_pairs(self, rows: Sequence[ConnerInput]) -> list[list[list[Pair]]]:
        """For each row, and each sentence of its answer, the pairs whose best entailment counts."""
        texts = [_open_answer(row) for row in rows]
        if self.models.encoder is None:
            evidence = [[tuple(pieces)] * len(sentences) for sentences, pieces in texts]
        else:
            unread: list[list[str | None]] = [[None] * len(sentences) for sentences, _ in texts]
            limit = self.settings.evidence_per_sentence
            evidence = choose_evidence(self.models.encoder, texts, unread, limit)
        return [
            [_span_pairs(row)]
            if row.kind == "span" and _span_pairs(row)
            else [
                [Pair(premise=piece, hypothesis=sentence) for piece in pieces]
                for sentence, pieces in zip(sentences, chosen, strict=True)
            ]
            for row, (sentences, _), chosen in zip(rows, texts, evidence, strict=True)
        ]

    def _likelihood_scores(self, rows: Sequence[ConnerInput]) -> list[_Fields]:
        if self.models.causal is None:
            return [_no_likelihood("no causal language model is configured")] * len(rows)
        plans = [self._plan(row) for row in rows]
        pairs = list(dict.fromkeys(pair for plan in plans for pair in plan.pairs()))
        try:
            likelihoods = self.models.causal.loglikelihoods(pairs) if pairs else []
        except GuardrailError as error:
            return [_no_likelihood(str(error))] * len(rows)
        found = dict(zip(pairs, likelihoods, strict=True))
        return [self._from_likelihoods(plan, found) for plan in plans]

    def _plan(self, row: ConnerInput) -> _Plan:
        requested, words = self.settings.perspectives, self.settings.helpfulness_words
        answer = row.reference if (row.reference or "").strip() else row.answer
        helped: tuple[tuple[str, str], ...] = ()
        if Perspective.HELPFULNESS in requested and answer and answer.strip():
            others = irrelevant_knowledge(
                self.irrelevant_pool, row.query, row.knowledge, self.settings
            )
            helped = tuple(
                (f"{first_words(text, words)}\n\nQuestion: {row.query}\n\nAnswer:", f" {answer}")
                for text in (row.knowledge, *others)
            )
        return _Plan(
            sentences=tuple(("", sentence) for sentence in row.sentences)
            if Perspective.COHERENCE_SENTENCE in requested
            else (),
            knowledge=informativeness_pair(row.query, row.knowledge, self.settings)
            if Perspective.INFORMATIVENESS in requested
            else None,
            helped=helped,
        )

    def _from_likelihoods(self, plan: _Plan, found: Likelihoods) -> _Fields:
        def score(value: float | None, perspective: Perspective, reason: str) -> Score:
            if value is not None:
                return Score(value=value)
            asked = perspective in self.settings.perspectives
            return Score(reason=reason if asked else NOT_REQUESTED)

        sentences = [found[pair] for pair in plan.sentences]
        cap = self.settings.perplexity_cap
        capped = tuple(value for each in sentences if (value := perplexity(each, cap)) is not None)
        informed = None if plan.knowledge is None else informativeness(found[plan.knowledge])
        helps, missing = None, "no answer"
        if plan.helped:
            helps = helpfulness(found[plan.helped[0]], [found[pair] for pair in plan.helped[1:]])
            missing = "the answer has no likelihood to improve"
            if len(plan.helped) == 1:
                missing = "no pool of irrelevant knowledge"
        clipped = None if helps is None else max(0.0, helps)
        by_sentence, helpful = Perspective.COHERENCE_SENTENCE, Perspective.HELPFULNESS
        coherence = sentence_coherence(capped) if capped else None
        return {
            "coherence_sentence": score(coherence, by_sentence, "no sentences"),
            "coherence_sentence_uncapped": score(
                uncapped_coherence(sentences), by_sentence, "no sentences"
            ),
            "perplexities": capped,
            "informativeness": score(informed, Perspective.INFORMATIVENESS, "no text"),
            "helpfulness": score(clipped, helpful, missing),
            "helpfulness_unclipped": score(helps, helpful, missing),
        }


class _Plan(NamedTuple):
    """The likelihoods that one row needs, as (prefix, continuation) pairs.

    ``helped`` holds the answer after the row's knowledge, then after each irrelevant text.
    """

    sentences: tuple[tuple[str, str], ...]
    knowledge: tuple[str, str] | None
    helped: tuple[tuple[str, str], ...]

    def pairs(self) -> list[tuple[str, str]]:
        single = [] if self.knowledge is None else [self.knowledge]
        return [*self.sentences, *single, *self.helped]


def _span_pairs(row: ConnerInput) -> list[Pair]:
    """(q, a*) as premise and (q, a) as hypothesis (eq. 7)."""
    if not (row.answer or "").strip() or not (row.reference or "").strip():
        return []
    return [Pair(premise=f"{row.query} {row.reference}", hypothesis=f"{row.query} {row.answer}")]


def _open_answer(row: ConnerInput) -> tuple[list[str], list[str]]:
    """Sentences and evidence of an open answer (eq. 8); none for a span.

    A gold answer is evidence as it is, and after the question, since a short one is no sentence.
    """
    if row.kind == "span" or not (row.answer or "").strip():
        return [], []
    gold = (row.reference or "").strip()
    pieces = [*row.evidence, *([gold, f"{row.query} {gold}"] if gold else [])]
    sentences = [each.text for each in split_sentences(row.answer or "")]
    return (sentences, pieces) if pieces else ([], [])


def _no_validity(row: ConnerInput) -> str:
    if not row.answer:
        return "no answer"
    return "no evidence" if row.kind == "open" else "no reference answer"


def _no_factuality(reason: str) -> _Fields:
    return {name: Score(reason=reason) for name in FACTUAL}


def _no_likelihood(reason: str) -> _Fields:
    return {name: Score(reason=reason) for name in LIKELIHOOD}
