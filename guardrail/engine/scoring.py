"""Score cards: what an answer's sentences say in numbers, joined by further scorers by name."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast, runtime_checkable

from guardrail.core.errors import ConfigError
from guardrail.core.plugins import NOWHERE, made_part, named_part, reporting
from guardrail.core.types import (
    AttributedAnswer,
    Category,
    Evidence,
    LinkedEntity,
    Problem,
    Score,
    ScoreCard,
    Sentence,
    SpanKind,
)
from guardrail.core.workers import InThread, called, off_loop
from guardrail.policy import CLAIM_SCORES
from judges.registry import hint

if TYPE_CHECKING:
    from spacy.tokens import Doc

SCORERS = {
    "sck": "guardrail.scorers:sck_scorer",
    "conner": "guardrail.scorers:conner_scorer",
    "quality": "guardrail.models.quality:quality_scorer",
    "relevance": "guardrail.scorers:relevance_scorer",
}
"""Scorers by name, loaded when first named: ``module:factory``."""

PARTIAL_CREDIT = 0.75
"""A sentence that lacks support in part earns at most this share of a supported one."""

NO_CLAIM = "the answer makes no claim that could be checked"


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
        parts: What the factory may ask for by keyword: ``graph``, ``nli``, ``attribution``.

    Raises:
        ConfigError: There is no such scorer; the message names the nearest.
    """
    factory = named_part("scorers", SCORERS.get(name, name))
    if factory is None:
        raise ConfigError(f"there is no scorer {name!r}; {hint(name, SCORERS)}; or {NOWHERE}")
    wanted = inspect.signature(factory).parameters
    make = partial(factory, **{key: part for key, part in parts.items() if key in wanted})
    return cast("Scorer", made_part("scorers", name, make, ("name", "score")))


async def score_answers(
    batch: Sequence[ScoringRequest], scorers: Sequence[Scorer], in_thread: InThread
) -> tuple[list[ScoreCard], list[Problem]]:
    """Score n answers; a scorer that fails is reported and left out.

    Args:
        batch: The answers.
        scorers: Called in order, in addition to the scores of the sentences.
        in_thread: Runs a scorer that blocks.

    Returns:
        n score cards in order, and what went wrong.
    """
    rows = await off_loop(lambda: [sentence_scores(each.answer.sentences) for each in batch])
    problems: list[Problem] = []
    for scorer in scorers:
        with reporting(problems, f"scorer {scorer.name}", f"scorer {scorer.name!r}"):
            found = [
                {name: Score.model_validate(score) for name, score in scores.items()}
                for scores in await called(in_thread, scorer.score, batch)
            ]
            for row, scores in list(zip(rows, found, strict=True)):
                row.update(scores)
    return [ScoreCard(overall=row.pop("overall"), scores=row) for row in rows], problems


def sentence_scores(sentences: Sequence[Sentence]) -> dict[str, Score]:
    """The scores that follow from the sentences alone.

    ``overall`` is the mean over claims of 1 for a supportive sentence, the supported share of
    its phrases (at most 0.75) for a partly supported one, and 0 otherwise, less the share of
    contradicted claims. ``supported_share``, ``na_share`` and ``contradicted_share`` are shares
    of the claims; ``citations`` counts different citations; ``grounded`` is their number times
    ``overall``, so that of two answers the one with more supported facts is better, unless more
    of it lacks support.
    """
    claims = [sentence for sentence in sentences if sentence.category is not None]
    cited = {citation for sentence in sentences for citation in sentence.citations}
    count = Score(value=float(len(cited)))
    if not claims:
        none = Score(reason=NO_CLAIM)
        return dict.fromkeys(CLAIM_SCORES, none) | {"citations": count}
    total = len(claims)
    supported = [claim for claim in claims if claim.category is Category.SUPPORTIVE]
    against = [claim for claim in claims if claim.category is Category.CONTRADICTORY]
    lacking = [claim for claim in claims if claim.na]
    mean = sum(map(_credit, claims)) / total
    judged = [claim.support for claim in claims if claim.support is not None]
    overall = max(0.0, mean - len(against) / total)
    evidence = (
        f"{len(supported)} of {total} claims supported",
        f"{len(lacking)} lack support, {len(against)} contradicted",
    )
    return {
        "overall": Score(value=overall, evidence=evidence),
        "grounded": Score(
            value=overall * len(cited), evidence=(f"facts cited: {len(cited)}", *evidence)
        ),
        "supported_share": Score(value=len(supported) / total),
        "na_share": Score(
            value=len(lacking) / total, evidence=tuple(item.text for item in lacking)
        ),
        "contradicted_share": Score(
            value=len(against) / total, evidence=tuple(item.text for item in against)
        ),
        "entailment": Score(value=sum(judged) / len(judged))
        if judged
        else Score(reason="no judge was asked"),
        "citations": count,
    }


def sentence_card(sentences: Sequence[Sentence]) -> ScoreCard:
    """The score card that follows from the sentences alone."""
    scores = sentence_scores(sentences)
    return ScoreCard(overall=scores.pop("overall"), scores=scores)


def _credit(sentence: Sentence) -> float:
    if sentence.category is Category.SUPPORTIVE:
        return 1.0
    if sentence.category is not Category.PARTIALLY_SUPPORTIVE:
        return 0.0
    supported = sum(span.kind is SpanKind.SUPPORTED for span in sentence.spans)
    return PARTIAL_CREDIT * supported / max(1, len(sentence.spans))
