"""Any NLI judge as an attribution judge: the answer's sub-facts, judged one by one (CAQA 3.2).

The share of supported sub-facts is what CAQA's fine-grained evaluation (5.2, Table 7) compares
with FActScore.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from guardrail.core.text.lexicon import lexicon
from guardrail.core.types import Category, Judgement, NLIScores
from judges.base import AttributionItem, JudgeAround, NLIJudge, Pair
from judges.selection import sentence_ends

__all__ = ["LiftedJudge", "sub_facts", "supported_shares"]

_LIST_JOINT = re.compile(r",\s+(?:and\s+)?|\s+and\s+")

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
        values = [value.strip() for value in _LIST_JOINT.split(facts[0]) if value.strip()]
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


def supported_shares(
    judge: NLIJudge,
    items: Sequence[AttributionItem],
    known: Mapping[Pair, NLIScores] = MappingProxyType({}),
) -> list[float]:
    """Share of each answer's sub-facts that the evidence entails; 0 where there is none.

    Args:
        judge: Judges evidence against each sub-fact.
        items: The answers and their evidence.
        known: What the judge said of pairs already; they are not asked for again.
    """
    return [
        sum(score.label == "entailment" for score in scores) / len(scores) if scores else 0.0
        for scores in _judge_facts(judge, items, known)
    ]


class LiftedJudge(JudgeAround[NLIJudge]):
    """Reads CAQA categories from an NLI judge.

    With sub-facts taken as independent, an answer is contradictory where any is contradicted;
    otherwise supportive where all are entailed, irrelevant where none is, and partially
    supportive in between. It tells no complexity.

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
