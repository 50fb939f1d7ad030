"""KaLMA's metrics of citations, on any rows (KaLMA 4.2–4.4).

The metrics read parsed answers: sentences with the citations written in them. What is averaged
over nothing is ``None`` with a reason, never 0. All values are shares in [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Protocol

from pydantic import Field

from guardrail.core.text.dates import Agreement, agreement, find_dates, parse_date
from guardrail.core.text.words import fold, number_of, tokenise
from guardrail.core.types import Citation, Score, Value
from judges.base import NLIJudge, Pair

__all__ = [
    "Aligner",
    "CitationScores",
    "CitedAnswer",
    "CitedSentence",
    "ContainmentAligner",
    "EitherAligner",
    "KalmaScores",
    "MacroScores",
    "MicroScores",
    "NLIAligner",
    "NotAvailableScores",
    "WrittenFormAligner",
    "alignment",
    "citation_scores",
    "kalma_scores",
    "not_available_scores",
]

NUMBER_WORDS = 4
"""Words that a number takes at most in a sentence: *twenty one thousand*."""


class CitedSentence(Value):
    """A clean sentence and what its markers say.

    Attributes:
        text: The sentence without markers.
        citations: As written, repeated ones repeated; a part that is missing is "".
        na: True where the sentence holds an ``[NA]``.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    na: bool = False


class CitedAnswer(Value):
    """One answer with what it is measured against.

    Attributes:
        sentences: The answer.
        graph: The retrieved triples.
        minimum: The minimum knowledge set, the triples a full answer needs.
        absent: Triples of the minimum set that were taken out of the graph (4.4).
    """

    sentences: tuple[CitedSentence, ...] = ()
    graph: frozenset[Citation] = frozenset()
    minimum: frozenset[Citation] = frozenset()
    absent: tuple[Citation, ...] = ()

    @property
    def citations(self) -> tuple[Citation, ...]:
        """All citations in the order of the text."""
        return tuple(citation for sentence in self.sentences for citation in sentence.citations)


class MicroScores(Value):
    """Averages over all citations, or all triples of the minimum sets (4.2)."""

    correctness: Score
    precision: Score
    recall: Score
    f1: Score


class MacroScores(Value):
    """Averages over answers of each answer's own precision and recall (4.2)."""

    precision: Score
    recall: Score
    f1: Score


class CitationScores(Value):
    """Citation quality (4.2)."""

    micro: MicroScores
    macro: MacroScores


class NotAvailableScores(Value):
    """How well ``[NA]`` marks what the graph lacks (4.4)."""

    precision: Score
    recall: Score
    f1: Score


class KalmaScores(Value):
    """All model-free scores of a set of answers, and those of an NLI judge where one was given.

    Attributes:
        answers: Number of answers.
        citations: Number of citations in them.
        micro: Over citations.
        macro: Over answers.
        alignment_containment: Share of citations whose value is in their sentence, case
            folded (the rule of the paper's released evaluation).
        alignment_written: The same, accepting dates and numbers in another written form, as
            ``8 July 1593`` for ``1593-07-08``.
        alignment_released: Share whose value is in their sentence or, failing that, that
            their sentence entails: the released evaluation's whole rule.
        alignment: Share of citations that their sentence entails (4.3).
    """

    answers: int = Field(ge=0)
    citations: int = Field(ge=0)
    micro: MicroScores
    macro: MacroScores
    alignment_containment: Score
    alignment_written: Score
    alignment_released: Score
    alignment: Score


class Aligner(Protocol):
    """Tells whether sentences entail citations."""

    def entails(self, pairs: Sequence[tuple[str, Citation]]) -> list[bool]:
        """Judge n (sentence, citation) pairs, in order.

        Raises:
            JudgeError: A judge behind it failed.
        """
        ...


class ContainmentAligner:
    """Entailed if the sentence contains the cited value, case folded; needs no model."""

    def entails(self, pairs: Sequence[tuple[str, Citation]]) -> list[bool]:
        """Judge n pairs; a citation without a value is never entailed."""
        return [
            bool(citation.value) and citation.value.casefold() in sentence.casefold()
            for sentence, citation in pairs
        ]


class WrittenFormAligner:
    """Entailed if the sentence contains the cited value in any written form; needs no model.

    Case and accents do not count. A date must be as complete as in the citation: a year
    alone does not contain ``1593-07-08``. Adjectives (*Italian* for Italy), surnames and other
    words for a value are not forms of it.
    """

    def entails(self, pairs: Sequence[tuple[str, Citation]]) -> list[bool]:
        """Judge n pairs; a citation without a value is never entailed."""
        return [_written(sentence, citation.value) for sentence, citation in pairs]


class NLIAligner:
    """Entailed when an NLI judge says so (4.3, appendix A.3).

    The premise is the sentence, the hypothesis ``relation: value``.
    """

    def __init__(self, judge: NLIJudge) -> None:
        self._judge = judge

    def entails(self, pairs: Sequence[tuple[str, Citation]]) -> list[bool]:
        """Judge n pairs; a citation without relation or value is never entailed."""
        readable = [bool(citation.property and citation.value) for _, citation in pairs]
        verdicts = iter(
            self._judge.judge(
                [
                    Pair(sentence, f"{citation.property}: {citation.value}")
                    for (sentence, citation), can in zip(pairs, readable, strict=True)
                    if can
                ]
            )
        )
        return [can and next(verdicts).label == "entailment" for can in readable]


class EitherAligner:
    """Entailed when the first aligner says so, else when the second does."""

    def __init__(self, first: Aligner, second: Aligner) -> None:
        self._first = first
        self._second = second

    def entails(self, pairs: Sequence[tuple[str, Citation]]) -> list[bool]:
        """Judge n pairs."""
        found = self._first.entails(pairs)
        refused = [pair for pair, entailed in zip(pairs, found, strict=True) if not entailed]
        second = iter(self._second.entails(refused))
        return [entailed or next(second) for entailed in found]


def kalma_scores(answers: Sequence[CitedAnswer], judge: NLIJudge | None = None) -> KalmaScores:
    """Score a set of answers.

    Raises:
        JudgeError: The judge failed.
    """
    scores = citation_scores(answers)
    entailed = released = _none("no NLI judge given")
    if judge is not None:
        nli = NLIAligner(judge)
        entailed = alignment(answers, nli)
        released = alignment(answers, EitherAligner(ContainmentAligner(), nli))
    return KalmaScores(
        answers=len(answers),
        citations=sum(len(answer.citations) for answer in answers),
        micro=scores.micro,
        macro=scores.macro,
        alignment_containment=alignment(answers, ContainmentAligner()),
        alignment_written=alignment(answers, WrittenFormAligner()),
        alignment_released=released,
        alignment=entailed,
    )


def citation_scores(answers: Sequence[CitedAnswer]) -> CitationScores:
    """Correctness, precision, recall and F1, micro and macro (4.2).

    A citation is correct when it is complete and equals a retrieved triple; precise when it is
    correct and in the minimum set. A triple of the minimum set is recalled when a correct
    citation hits it. Answers without citations count for recall but not for macro precision;
    answers without a minimum set count for correctness alone.
    """
    cited = correct = measured = precise = needed = recalled = 0
    precisions: list[float] = []
    recalls: list[float] = []
    for answer in answers:
        citations = answer.citations
        right = [citation for citation in citations if _correct(citation, answer.graph)]
        hits = [citation for citation in right if citation in answer.minimum]
        found = answer.minimum.intersection(right)
        cited += len(citations)
        correct += len(right)
        if not answer.minimum:
            continue
        measured += len(citations)
        precise += len(hits)
        needed += len(answer.minimum)
        recalled += len(found)
        recalls.append(len(found) / len(answer.minimum))
        if citations:
            precisions.append(len(hits) / len(citations))
    lacking = "no citations" if needed else "no minimum sets"
    precision = _share(precise, measured, lacking)
    recall = _share(recalled, needed, "no minimum sets")
    macro_precision = _share(sum(precisions), len(precisions), lacking)
    macro_recall = _share(sum(recalls), len(recalls), "no minimum sets")
    return CitationScores(
        micro=MicroScores(
            correctness=_share(correct, cited, "no citations"),
            precision=precision,
            recall=recall,
            f1=_f1(precision, recall),
        ),
        macro=MacroScores(
            precision=macro_precision,
            recall=macro_recall,
            f1=_f1(macro_precision, macro_recall),
        ),
    )


def alignment(answers: Iterable[CitedAnswer], aligner: Aligner) -> Score:
    """The share of sentence–citation pairs in which the sentence entails the citation (4.3)."""
    pairs = [
        (sentence.text, citation)
        for answer in answers
        for sentence in answer.sentences
        for citation in sentence.citations
    ]
    return _share(sum(aligner.entails(pairs)), len(pairs), "no citations")


def not_available_scores(answers: Sequence[CitedAnswer], aligner: Aligner) -> NotAvailableScores:
    """Precision and recall of ``[NA]`` (4.4).

    A sentence with ``[NA]`` is precise when it entails an absent triple; an absent triple is
    recalled when a sentence with ``[NA]`` entails it.

    Raises:
        JudgeError: The aligner's judge failed.
    """
    marked = [
        (number, sentence)
        for number, answer in enumerate(answers)
        for sentence in answer.sentences
        if sentence.na
    ]
    pairs = [(s.text, triple) for number, s in marked for triple in answers[number].absent]
    verdicts = iter(aligner.entails(pairs))
    precise = 0
    recalled: set[tuple[int, Citation]] = set()  # (number of the answer, triple)
    for number, _ in marked:
        absent_here = answers[number].absent
        entailed = list(islice(verdicts, len(absent_here)))
        precise += any(entailed)
        recalled.update(
            (number, triple)
            for triple, entails in zip(absent_here, entailed, strict=True)
            if entails
        )
    absent = sum(len(set(answer.absent)) for answer in answers)
    precision = _share(precise, len(marked), "no [NA] sentences")
    recall = _share(len(recalled), absent, "nothing was taken out of the graph")
    return NotAvailableScores(precision=precision, recall=recall, f1=_f1(precision, recall))


def _written(sentence: str, value: str) -> bool:
    if not value:
        return False
    if fold(value) in fold(sentence):
        return True
    tokens = tokenise(sentence)
    date = parse_date(value)
    if date is not None:
        year_alone = date.month is None and date.span == 1
        return (year_alone and any(token.text == str(date.year) for token in tokens)) or any(
            agreement(found_date, date) is not Agreement.CONFLICT
            and found_date.span <= date.span
            and (date.month is None or found_date.month is not None)
            and (date.day is None or found_date.day is not None)
            for found_date in find_dates(sentence)
        )
    number = number_of(tokenise(value))
    return number is not None and any(
        number_of(tokens[start:end]) == number
        for start in range(len(tokens))
        for end in range(start + 1, min(start + NUMBER_WORDS, len(tokens)) + 1)
    )


def _correct(citation: Citation, graph: frozenset[Citation]) -> bool:
    complete = bool(citation.entity and citation.property and citation.value)
    return complete and citation in graph


def _share(part: float, whole: int, reason: str) -> Score:
    if not whole:
        return _none(reason)
    return Score(value=part / whole, evidence=(f"{part:g} of {whole}",))


def _f1(precision: Score, recall: Score) -> Score:
    if precision.value is None or recall.value is None:
        return _none(precision.reason or recall.reason or "")
    total = precision.value + recall.value
    return Score(value=2 * precision.value * recall.value / total if total else 0.0)


def _none(reason: str) -> Score:
    return Score(reason=reason)
