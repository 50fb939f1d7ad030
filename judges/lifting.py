"""Any NLI judge as an attribution judge: the answer's sub-facts, judged one by one (CAQA 3.2).

The share of supported sub-facts is what CAQA's fine-grained evaluation (5.2, Table 7) compares
with FActScore.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.text.lexicon import lexicon
from guardrail.core.types import Category, Complexity, Judgement, NLIScores
from judges.base import AttributionItem, JudgeAround, NLIJudge, Pair
from judges.batching import sentence_ends

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PHRASE_WORDS = 4
"""Up to this many words a part of a list is a bare value; the question makes it a claim."""


def sub_facts(answer: str) -> tuple[str, ...]:
    """Split an answer into the claims it makes: sentences, clauses, values of a bare list.

    The split is by punctuation and conjunctions alone, without a parser: a clause is cut off
    where at least three words follow a comma with a conjunction, or a pronoun or auxiliary verb
    follows "and". Commas separate values only in an answer that is a plain list of short
    phrases.
    """
    facts = [
        clause.strip()
        for sentence in _sentences(answer)
        for clause in _clause_end().split(" ".join(sentence.split()))
        if clause and clause.strip(" .;,")
    ]
    if len(facts) == 1 and not facts[0].endswith((".", "!", "?")):
        parts = re.split(r",\s+(?:and\s+)?|\s+and\s+", facts[0])
        values = [value.strip() for value in parts if value.strip()]
        if len(values) > 1 and all(len(value.split()) <= PHRASE_WORDS for value in values):
            return tuple(values)
    return tuple(facts)


@cache
def _clause_end() -> re.Pattern[str]:
    """What stands between two clauses that claim something each."""
    words = lexicon("function_words")
    joins, openers = "|".join(words["clause_joins"]), "|".join(words["clause_openers"])
    return re.compile(
        r"\s*;\s+"
        rf"|,\s+(?:{joins})\s+(?=\w+\s+\w+\s+\w+)"
        rf"|,?\s+(?:and|but)\s+(?=(?:{openers})\s+\w+)"
    )


NEUTRAL = NLIScores(entailment=0.0, neutral=1.0, contradiction=0.0)
"""Scores of a pair with a blank text."""


def nli_scores(probabilities: NDArray[np.float64]) -> NLIScores:
    """Scores from the probabilities of entailment, neutral and contradiction, [3]."""
    entailment, neutral, contradiction = probabilities.tolist()
    return NLIScores(entailment=entailment, neutral=neutral, contradiction=contradiction)


def attribution_pair(item: AttributionItem) -> Pair:
    """Evidence and answered question as a pair, blank where there is no answer."""
    if not item.answer.strip():
        return Pair("", "")
    return Pair(" ".join(item.evidence), f"{item.question} {item.answer}")


class Attribution(NamedTuple):
    """Outputs of a judge's heads for an item.

    Attributes:
        categories: Probabilities in the order of ``Category``, [4]; None for a blank text.
        complexity: Probabilities in the order of ``Complexity``, [4]; None without such a head.
        known: NLI of the whole pair, if the judge read it at once.
    """

    categories: NDArray[np.float64] | None = None
    complexity: NDArray[np.float64] | None = None
    known: NLIScores | None = None


def attributed(
    judge: NLIJudge, items: Sequence[AttributionItem], rows: Sequence[Attribution]
) -> list[Judgement]:
    """Judgements of n items from a judge's heads (CAQA 3.2, 3.3).

    The share of supported sub-facts is 1 for supportive and 0 for irrelevant items; for the others
    each sub-fact of the answer is judged by NLI. The category has the last word: of the n sub-facts
    of a contradictory answer at most n - 1 are supported.

    Args:
        judge: Judges evidence against each sub-fact.
        items: The answers and their evidence.
        rows: The outputs of its heads for each.
    """
    certain = {category: float(category is Category.IRRELEVANT) for category in Category}
    scores = [
        certain
        if row.categories is None
        else dict(zip(Category, row.categories.tolist(), strict=True))
        for row in rows
    ]
    categories = [max(score, key=score.__getitem__) for score in scores]
    shares = [float(category is Category.SUPPORTIVE) for category in categories]
    open_ = (Category.PARTIALLY_SUPPORTIVE, Category.CONTRADICTORY)
    partial = [i for i, category in enumerate(categories) if category in open_]
    known: dict[Pair, NLIScores] = {}
    for i in partial:
        if (nli := rows[i].known) is not None:
            premise, hypothesis = attribution_pair(items[i])
            known[Pair(premise, hypothesis.strip())] = nli
    for i, found in zip(
        partial, _judge_facts(judge, [items[i] for i in partial], known), strict=True
    ):
        supported = sum(score.label == "entailment" for score in found)
        most = len(found) - (categories[i] is Category.CONTRADICTORY)
        shares[i] = min(supported, most) / len(found) if found else 0.0
    return [
        Judgement(
            category=category,
            scores=score,
            complexity=None
            if row.complexity is None
            else tuple(Complexity)[int(row.complexity.argmax())],
            supported_share=share,
        )
        for category, score, row, share in zip(categories, scores, rows, shares, strict=True)
    ]


class LiftedJudge(JudgeAround[NLIJudge]):
    """Reads CAQA categories from an NLI judge.

    With sub-facts taken as independent, an answer is contradictory where any is contradicted;
    otherwise supportive where all are entailed, irrelevant where none is, and partially
    supportive in between. It has no complexity.

    Args:
        inner: Judges evidence (premise) against each sub-fact (hypothesis).
    """

    @property
    def name(self) -> str:
        """Name and version of the NLI judge underneath."""
        return f"lifted:{self._inner.name}"

    def attribute(self, items: Sequence[AttributionItem]) -> list[Judgement]:
        """Judge n items; see ``AttributionJudge``."""
        return [_judgement(scores) for scores in _judge_facts(self._inner, items, {})]


def _judge_facts(
    judge: NLIJudge, items: Sequence[AttributionItem], known: Mapping[Pair, NLIScores]
) -> list[list[NLIScores]]:
    pairs = [list(_pairs(item)) for item in items]
    asked = list(dict.fromkeys(p for group in pairs for p in group if p not in known))
    scores = dict(known)
    if asked:
        scores.update(zip(asked, judge.judge(asked), strict=True))
    return [[scores[pair] for pair in group] for group in pairs]


def _pairs(item: AttributionItem) -> Iterator[Pair]:
    evidence = " ".join(item.evidence)
    for fact in sub_facts(item.answer):
        bare = len(fact.split()) <= PHRASE_WORDS and not fact.endswith(".")
        yield Pair(evidence, f"{item.question} {fact}" if bare and item.question else fact)


def _judgement(scores: Sequence[NLIScores]) -> Judgement:
    if not scores:
        certain = {category: float(category is Category.IRRELEVANT) for category in Category}
        return Judgement(category=Category.IRRELEVANT, scores=certain, supported_share=0.0)
    untouched = math.prod(1 - score.contradiction for score in scores)
    entailed = [score.entailment / max(score.entailment + score.neutral, 1e-12) for score in scores]
    every = math.prod(entailed)
    none = math.prod(1 - share for share in entailed)
    chances = {
        Category.SUPPORTIVE: untouched * every,
        Category.PARTIALLY_SUPPORTIVE: untouched * max(0.0, 1 - every - none),
        Category.CONTRADICTORY: 1 - untouched,
        Category.IRRELEVANT: untouched * none,
    }
    total = sum(chances.values())
    probabilities = {category: min(1.0, p / total) for category, p in chances.items()}
    supported = sum(score.label == "entailment" for score in scores)
    return Judgement(
        category=max(probabilities, key=probabilities.__getitem__),
        scores=probabilities,
        supported_share=supported / len(scores),
        rationale=f"{supported} of {len(scores)} sub-facts entailed by the evidence",
    )


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for match in sentence_ends(text):
        yield text[start : match.end()].strip()
        start = match.end()
    yield text[start:].strip()
