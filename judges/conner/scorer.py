"""CONNER's six perspectives for batches of rows, each by the available models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from guardrail.core.errors import GuardrailError
from guardrail.core.text.sentences import split_sentences
from guardrail.core.types import Score
from judges.base import CausalLM, NLIJudge, Pair
from judges.conner.factuality import aggregate, choose_evidence, sentence_factuality, stated
from judges.conner.likelihoods import LIKELIHOOD, NOT_REQUESTED, LikelihoodPlan
from judges.conner.report import (
    ConnerInput,
    ConnerReport,
    ConnerSettings,
    Perspective,
    QualityWeights,
    SentenceFactuality,
)

if TYPE_CHECKING:
    from judges.encoder import OnnxEncoder

FACTUAL = ("factuality", "non_verified", "factual_inconsistent")

Progress = Callable[[int, int], None]
Rows = Sequence[ConnerInput]
Model = TypeVar("Model")
_Fields = dict[str, object]
"""Fields of a ``ConnerReport``."""


class ConnerModels(NamedTuple):
    """The models behind the perspectives; without its model a perspective has no value.

    Attributes:
        nli: Factuality and validity.
        encoder: Relevance, paragraph coherence, and the choice of evidence where there is more than
            the settings allow.
        causal: Sentence coherence, informativeness, helpfulness.
    """

    nli: NLIJudge | None = None
    encoder: OnnxEncoder | None = None
    causal: CausalLM | None = None


class ConnerScorer:
    """Scores generated knowledge, or an answer in its place, from six perspectives.

    Args:
        models: The available models.
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
        self, rows: Rows, progress: Progress | None = None, *, rows_per_call: int = 512
    ) -> list[ConnerReport]:
        """Score n rows; a model that fails gives its perspectives a reason in place of a value.

        Args:
            rows: What to score.
            progress: Called with (rows done, rows in all) after each block of at most 64 rows.
            rows_per_call: Rows whose texts go to the causal model together; by default enough to
                share irrelevant texts.
        """
        reports: list[ConnerReport] = []
        block = 64
        for start in range(0, len(rows), rows_per_call):
            together = rows[start : start + rows_per_call]
            likelihood = self._likelihood(together)
            for at in range(0, len(together), block):
                part = slice(at, at + block)
                reports += self._block(together[part], likelihood[part])
                if progress is not None:
                    progress(len(reports), len(rows))
        return reports

    def _block(self, rows: Rows, likelihood: Sequence[_Fields]) -> list[ConnerReport]:
        models, of = self.models, Perspective
        columns = [
            likelihood,
            self._column(rows, of.FACTUALITY, models.nli, "NLI judge", self._factuality),
            self._column(rows, of.RELEVANCE, models.encoder, "encoder", _relevance),
            self._column(rows, of.COHERENCE_PARAGRAPH, models.encoder, "encoder", _coherence),
            self._column(rows, of.VALIDITY, models.nli, "NLI judge", self._validity),
        ]
        reports = []
        for parts in zip(*columns, strict=True):
            fields: _Fields = {"quality": Score(reason="not yet computed")}
            for part in parts:
                fields |= part
            report = ConnerReport.model_validate(fields)
            quality = _quality(report, self.settings.weights)
            reports.append(report.model_copy(update={"quality": quality}))
        return reports

    def _column(
        self,
        rows: Rows,
        perspective: Perspective,
        model: Model | None,
        what: str,
        compute: Callable[[Model, Rows], Sequence[_Fields | Score]],
    ) -> list[_Fields]:
        """The fields of a perspective for n rows; the reason if it cannot be computed.

        Args:
            rows: The rows.
            perspective: Which perspective.
            model: The model that it needs.
            what: The model in words.
            compute: Computes the fields, or the score of the only field.
        """
        names = FACTUAL if perspective is Perspective.FACTUALITY else (perspective.value,)
        if perspective not in self.settings.perspectives:
            reason = NOT_REQUESTED
        elif model is None:
            reason = f"no {what} is configured"
        else:
            try:
                found = compute(model, rows)
            except GuardrailError as error:
                reason = str(error)
            else:
                return [{names[0]: one} if isinstance(one, Score) else one for one in found]
        return [_missing(names, reason)] * len(rows)

    def _factuality(self, nli: NLIJudge, rows: Rows) -> list[_Fields]:
        texts = [(row.sentences, row.evidence) for row in rows]
        literal = self.settings.word_for_word
        found = [stated(*text) if literal else [None] * len(text[0]) for text in texts]
        limit = self.settings.evidence_per_sentence
        evidence = choose_evidence(self.models.encoder, texts, found, limit)
        read = [(own, pieces) for (own, _), pieces in zip(texts, evidence, strict=True)]
        judged = sentence_factuality(nli, read, found)
        return [self._joined(row, parts) for row, parts in zip(rows, judged, strict=True)]

    def _joined(self, row: ConnerInput, parts: tuple[SentenceFactuality, ...]) -> _Fields:
        if not row.evidence or not parts:
            return _missing(FACTUAL, "no sentences" if row.evidence else "no evidence")
        whole = aggregate(parts, self.settings.aggregation)
        basis = tuple(f"{part.scores.entailment:.4f} {part.sentence}" for part in parts)
        return {
            "factuality": Score(value=whole.entailment, evidence=basis),
            "non_verified": Score(value=whole.neutral),
            "factual_inconsistent": Score(value=whole.contradiction),
            "sentences": parts,
        }

    def _validity(self, nli: NLIJudge, rows: Rows) -> list[Score]:
        """Eq. 7 for span answers; eq. 8 for open ones, as the mean over their sentences."""
        texts = [_open_answer(row) for row in rows]
        unread: list[list[str | None]] = [[None] * len(sentences) for sentences, _ in texts]
        limit = self.settings.evidence_per_sentence
        evidence = choose_evidence(self.models.encoder, texts, unread, limit)
        # For each row, and each sentence of its answer, the pairs whose best entailment counts.
        groups = [
            _span_pairs(row)
            or [
                [Pair(premise=piece, hypothesis=sentence) for piece in pieces]
                for sentence, pieces in zip(sentences, chosen, strict=True)
            ]
            for row, (sentences, _), chosen in zip(rows, texts, evidence, strict=True)
        ]
        flat = [pair for sentences in groups for pairs in sentences for pair in pairs]
        scores = iter(nli.judge(flat) if flat else [])
        missing = {"open": "no evidence", "span": "no reference answer"}
        return [
            Score(value=fmean(max(next(scores).entailment for _ in pairs) for pairs in sentences))
            if sentences
            else Score(reason=missing[row.kind] if row.answer else "no answer")
            for row, sentences in zip(rows, groups, strict=True)
        ]

    def _likelihood(self, rows: Rows) -> list[_Fields]:
        if self.models.causal is None:
            reason = "no causal language model is configured"
            return [_missing(LIKELIHOOD, reason)] * len(rows)
        plans = [LikelihoodPlan.of(row, self.settings, self.irrelevant_pool) for row in rows]
        pairs = list(dict.fromkeys(pair for plan in plans for pair in plan.pairs))
        try:
            likelihoods = self.models.causal.loglikelihoods(pairs) if pairs else []
        except GuardrailError as error:
            return [_missing(LIKELIHOOD, str(error))] * len(rows)
        found = dict(zip(pairs, likelihoods, strict=True))
        return [plan.scores(found) for plan in plans]


def _missing(names: Sequence[str], reason: str) -> _Fields:
    return {name: Score(reason=reason) for name in names}


def _relevance(model: OnnxEncoder, rows: Rows) -> list[Score]:
    values = model.relevance([(row.query, row.knowledge) for row in rows])
    return [
        Score(value=value)
        if row.query.strip() and row.knowledge.strip()
        else Score(reason="no question or no text")
        for row, value in zip(rows, values, strict=True)
    ]


def _coherence(model: OnnxEncoder, rows: Rows) -> list[Score]:
    values = iter(model.coherence([row.sentences for row in rows if len(row.sentences) > 1]))
    few = Score(reason="fewer than two sentences")
    return [Score(value=next(values)) if len(row.sentences) > 1 else few for row in rows]


def _span_pairs(row: ConnerInput) -> list[list[Pair]]:
    """(q, a*) as premise and (q, a) as hypothesis of a span (eq. 7); none for an open answer."""
    given = (row.answer or "").strip() and (row.reference or "").strip()
    if row.kind != "span" or not given:
        return []
    return [[Pair(premise=f"{row.query} {row.reference}", hypothesis=f"{row.query} {row.answer}")]]


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


def _quality(report: ConnerReport, weights: QualityWeights) -> Score:
    """Q_know = γᵀ·(factuality, relevance, paragraph coherence, informativeness) (eq. 9).

    A perspective without a value is left out of sum and total weight, so that texts scored with
    the same models stay comparable.
    """
    parts = [
        ("factuality", weights.factuality, report.factuality.value),
        ("relevance", weights.relevance, report.relevance.value),
        ("coherence", weights.coherence, report.coherence_paragraph.value),
        ("informativeness", weights.informativeness, report.informativeness.value),
    ]
    present = [(name, weight, value) for name, weight, value in parts if value is not None]
    total = sum(weight for _, weight, _ in present)
    if not total:
        return Score(reason="no intrinsic perspective with a weight has a value")
    scale = sum(weight for _, weight, _ in parts) / total
    return Score(
        value=scale * sum(weight * value for _, weight, value in present),
        evidence=tuple(f"{weight:g} × {name} {value:.4f}" for name, weight, value in present),
    )
