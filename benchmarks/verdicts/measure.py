"""What verdicts are worth on a set: shares of what was passed, found, cited and marked rightly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.verdicts.cases import Case
from guardrail.core.text.words import tokenise
from guardrail.core.types import (
    AttributedAnswer,
    Category,
    Passage,
    Sentence,
    SpanKind,
    Triple,
    Value,
    Verdict,
)

__all__ = ["Judged", "Row", "judged", "summed"]


class Judged(NamedTuple):
    """What came out for a case.

    Attributes:
        verdict: The worst verdict on its sentences.
        sentences: Its sentences.
    """

    verdict: Verdict
    sentences: tuple[Sentence, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing in it was marked."""
        return self.verdict in (Verdict.SUPPORTED, Verdict.NO_CLAIM)

    @property
    def removed(self) -> bool:
        """Whether a contradiction in it is sure enough to act on."""
        return any(
            sentence.category is Category.CONTRADICTORY and sentence.sure
            for sentence in self.sentences
        )


class Row(Value):
    """One row of the table; None where the set does not tell.

    Attributes:
        cases: Cases judged.
        true_passed: Of supported cases, the share in which nothing was marked.
        false_passed: Of unsupported and contradicted ones, the same.
        balanced: Mean of the shares judged rightly of both, 0.5 for a coin.
        contradictions_found: Share of contradicted cases that are called so.
        contradictions_right: Of cases called contradicted, the share that is.
        true_contradicted: Share of supported cases that are called contradicted.
        true_removed: Share of supported cases that a policy which filters contradictions removes.
        small_talk: Share of cases without a claim in which nothing was marked.
        citation_precision: Of the triples and passages cited for supported cases, the share that
            people cited.
        citation_recall: Of those that people cited, the share that was.
        stated_recall: Share of triples whose value is in the text that was cited.
        span_f1: F1 of the words marked, over cases that lack support and are marked.
        milliseconds: Wall time a case.
    """

    cases: int
    true_passed: float | None
    false_passed: float | None
    balanced: float | None
    contradictions_found: float | None
    contradictions_right: float | None
    true_contradicted: float | None
    true_removed: float | None
    small_talk: float | None
    citation_precision: float | None
    citation_recall: float | None
    stated_recall: float | None
    span_f1: float | None
    milliseconds: float | None = None


BAD = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED)


def judged(case: Case, answer: AttributedAnswer) -> Judged:
    """What came out for a case; the sentences before it do not count."""
    start = len(case.before) + 1 if case.before else 0
    sentences = tuple(sentence for sentence in answer.sentences if sentence.end > start)
    found = {_verdict(sentence) for sentence in sentences}
    for verdict in (*BAD, Verdict.SUPPORTED):
        if verdict in found:
            return Judged(verdict, sentences)
    return Judged(Verdict.NO_CLAIM, sentences)


def _verdict(sentence: Sentence) -> Verdict:
    if sentence.category is None:
        return Verdict.NO_CLAIM
    if sentence.category is Category.SUPPORTIVE:
        return Verdict.SUPPORTED
    if sentence.category is Category.CONTRADICTORY:
        return Verdict.CONTRADICTED
    return Verdict.UNSUPPORTED


def summed(
    cases: Sequence[Case], found: Sequence[Judged], milliseconds: float | None = None
) -> Row:
    """The row of n cases."""
    pairs = list(zip(cases, found, strict=True))
    right = [item for case, item in pairs if case.label is Verdict.SUPPORTED]
    true = [item.passed for item in right]
    false = [item.passed for case, item in pairs if case.label in BAD]
    talk = [item.passed for case, item in pairs if case.label is Verdict.NO_CLAIM]
    against = [item.verdict for case, item in pairs if case.label is Verdict.CONTRADICTED]
    called = [case.label for case, item in pairs if item.verdict is Verdict.CONTRADICTED]
    true_passed, false_passed = _share(true), _share(false)
    both = true_passed is not None and false_passed is not None
    cited = [_cited(case, item) for case, item in pairs if case.cites is not None]
    counts = [_count_stated(case, item) for case, item in pairs if case.stated]
    spans = [
        _overlap(case, item)
        for case, item in pairs
        if case.span and case.label in BAD and not item.passed
    ]
    return Row(
        cases=len(pairs),
        true_passed=true_passed,
        false_passed=false_passed,
        balanced=0.5 * (true_passed + 1.0 - false_passed) if both else None,  # type: ignore[operator]
        contradictions_found=_share([item is Verdict.CONTRADICTED for item in against]),
        contradictions_right=_share([item is Verdict.CONTRADICTED for item in called])
        if against
        else None,
        true_contradicted=_share([item.verdict is Verdict.CONTRADICTED for item in right]),
        true_removed=_share([item.removed for item in right]),
        small_talk=_share(talk),
        citation_precision=_ratio([(hit, size) for hit, size, _, _ in cited]),
        citation_recall=_ratio([(hit, size) for _, _, hit, size in cited]),
        stated_recall=_ratio(counts),
        span_f1=_mean(spans),
        milliseconds=milliseconds,
    )


def _share(held: Sequence[bool]) -> float | None:
    return sum(held) / len(held) if held else None


def _mean(numbers: Sequence[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def _ratio(parts: Sequence[tuple[int, int]]) -> float | None:
    whole = sum(size for _, size in parts)
    return sum(hit for hit, _ in parts) / whole if whole else None


def _cited(case: Case, item: Judged) -> tuple[int, int, int, int]:
    """Citations that are right, all citations; cited of those that are right, all of those."""
    cited = [citation for sentence in item.sentences for citation in sentence.citations]
    wanted: list[tuple[str, str]] = []
    for place in case.cites or ():
        if isinstance(place, int):
            fact = case.evidence[place]
            if isinstance(fact, Triple):
                wanted.append((fact.property, fact.value))
        else:
            wanted.append(("passage", place))

    def same(citation_property: str, value: str, other: tuple[str, str]) -> bool:
        if citation_property != other[0]:
            return False
        if citation_property != "passage":
            return value == other[1]
        mine, theirs = (" ".join(text.split()).rstrip("…") for text in (value, other[1]))
        return mine in theirs or theirs in mine or theirs[:60] in mine

    right = sum(any(same(c.property, c.value, w) for w in wanted) for c in cited)
    found = sum(any(same(c.property, c.value, w) for c in cited) for w in wanted)
    return right, len(cited), found, len(wanted)


def _count_stated(case: Case, item: Judged) -> tuple[int, int]:
    cited = {citation for sentence in item.sentences for citation in sentence.citations}
    facts = [case.evidence[place] for place in case.stated or ()]
    triples = [fact for fact in facts if not isinstance(fact, Passage)]
    return sum(fact.citation in cited for fact in triples), len(triples)


def _overlap(case: Case, item: Judged) -> float:
    """F1 of the words marked in a case against those that carry its problem."""
    marked = [
        token.folded
        for sentence in item.sentences
        for span in sentence.spans
        if span.kind is not SpanKind.SUPPORTED
        for token in tokenise(span.text)
    ]
    wanted = [token.folded for token in tokenise(case.span)]
    left = list(wanted)
    hits = 0
    for word in marked:
        if word in left:
            left.remove(word)
            hits += 1
    return 2.0 * hits / (len(marked) + len(wanted)) if marked or wanted else 0.0
