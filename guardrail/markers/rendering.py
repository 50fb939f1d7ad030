"""Attributed sentences to marked text, and answers without some of their sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import groupby, zip_longest

from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.types import AttributedAnswer, Citation, Sentence, Span, SpanKind
from guardrail.markers.grammar import Marker, insert

OUTSIDE = re.compile(
    r"(?:\w|[\u0300-\u036f]|[-'’/](?=\w))*"
    r"(?:[`*_~]+(?!\w)|\]\([^\s()]*\)|\](?![\[(]))*"
)
"""The rest of a word, the marks that close emphasis or code, and of a link its target: between a
phrase and its marker. Marks before a word would open something."""

UNCARRIED = frozenset({SpanKind.NA, SpanKind.CONTRADICTED})
"""Kinds of phrases that ``[NA]`` stands behind."""

DOTTED = re.compile(r"\b(?<!\b\w\.)(?:\w\.)++\w$")
"""An abbreviation without its last stop, which is not the sentence's alone: *a.m*, *U.S*."""


def marked_text(text: str, sentences: Sequence[Sentence]) -> str:
    """Write the markers of all sentences into the clean text.

    A citation stands behind the phrase it supports, that of a passage behind the last one, else
    at the sentence's end where nothing lacks support; ``[NA]`` stands behind what lacks support or
    is contradicted: once where several such phrases follow each other as one claim, as in *born
    in Paris [NA]*, and at the end of a sentence in which nothing is supported. ``[corrected]``
    stands behind words that the guardrail wrote, after their citation.
    """
    return insert(text, [mark for sentence in sentences for mark in markers_of(sentence)]).marked


def markers_of(sentence: Sentence, *, at_end: bool = False) -> list[Marker]:
    """The markers of one sentence, as ``marked_text`` writes them; offsets are the answer's.

    Args:
        sentence: The sentence.
        at_end: Whether a sentence that is supported as the model wrote it has all citations at its
            end, and one in which nothing is supported a single ``[NA]``.
    """
    marks: list[Marker] = []
    mended: list[Marker] = []
    unplaced = dict.fromkeys(sentence.citations)
    stop = sentence.start + _stop(sentence.text)
    kinds = {span.kind for span in sentence.spans}
    if at_end and kinds <= {SpanKind.SUPPORTED} and not sentence.na:
        return [Marker(citations=tuple(unplaced), at=stop)] if unplaced else []
    refused = kinds == {SpanKind.NA} if sentence.na else at_end and set() < kinds <= UNCARRIED
    if refused and not unplaced:
        return [Marker(na=True, at=stop)]
    for span, following in zip_longest(sentence.spans, sentence.spans[1:]):
        if span.kind in UNCARRIED:
            if following is not None and _one_claim(sentence, span, following):
                continue
            at = _outside(sentence, min(span.end, max(stop, span.start + 1)))
            if not any(mark.na and mark.at == at for mark in marks[-1:]):
                marks.append(Marker(na=True, at=at))
            continue
        corrected = span.kind is SpanKind.CORRECTED
        if corrected and following is not None and _same_fact(span, following):
            continue
        # What no one phrase of the sentence tells, such as a denial, is marked at its end.
        citation = span.triple and span.triple.citation
        at = _outside(sentence, span.end if citation else stop)
        if citation in unplaced:
            del unplaced[citation]
            marks.append(Marker(citations=(citation,), at=at))
        if corrected:
            mended.append(Marker(corrected=True, at=at))
    for at, citations in groupby(unplaced, key=lambda item: _place(item, sentence, stop)):
        marks.append(Marker(citations=tuple(citations), at=_outside(sentence, at)))
    if sentence.na and not any(mark.na for mark in marks):
        marks.append(Marker(na=True, at=stop))
    return [*marks, *mended]


@cache
def _rest_of_name() -> re.Pattern[str]:
    """The rest of a name or an abbreviation behind a phrase that is its beginning: *Mary* of *Mary
    W. Shelley*, *U.S* of *U.S. Navy*.
    """
    joins = "|".join(sorted(lexicon_set("names", "particles") | {"of", "the"}))
    return re.compile(rf"(?:\.(?=\w)\w*)*\.?(?:[ -](?:(?:{joins}) )?[A-Z][\w'’-]*\.?)+")


def _same_fact(span: Span, following: Span) -> bool:
    """Whether two corrections are of one fact, so that one mark behind the last is enough."""
    return following.kind is SpanKind.CORRECTED and following.triple == span.triple


def _outside(sentence: Sentence, at: int) -> int:
    """Past what belongs to a phrase without being part of it: ``**Paris** [NA]``."""
    place = at - sentence.start
    word = re.search(r"(?<![\w.'’-])[\w.'’-]++$", sentence.text[:place])
    if word is not None and word[0][:1].isupper():
        # A sentence's own end is no part of a name.
        name = _rest_of_name().match(sentence.text, place, _stop(sentence.text))
        place = place if name is None else name.end()
    elif re.search(r"(?:^|\b[a-z]+ )[\d.,]*\d$", sentence.text[:place]):
        # The number is no part of a name; it may count something: *42 rooms*.
        noun = re.compile(r" ([a-z]{2,})\b").match(sentence.text, place)
        if noun is not None and noun[1] not in lexicon_set("function_words", "stop_words"):
            place = noun.end()
    place += _abbreviated(sentence.text, place)
    rest = OUTSIDE.match(sentence.text, place)
    return sentence.start + (place if rest is None else rest.end())


def _stop(text: str) -> int:
    """Where a sentence's last marker goes: before its closing signs, behind an abbreviation."""
    words = len(text.rstrip(".!?…:;,|*_`~ \t"))
    return words + _abbreviated(text, words)


def _abbreviated(text: str, place: int) -> bool:
    """Whether the stop at a place belongs to an abbreviation before it."""
    return text.startswith(".", place) and DOTTED.search(text, 0, place) is not None


def _place(citation: Citation, sentence: Sentence, stop: int) -> int:
    """Where a citation stands that no span has for itself."""
    supported = [span for span in sentence.spans if span.kind not in UNCARRIED]
    value = citation.value.casefold()
    same = [item.end for item in supported if item.triple and item.text.casefold() in value]
    carried = [span for span in supported if span.kind is SpanKind.SUPPORTED]
    by_passage = [item.end for item in carried if item.triple is None]
    anywhere = [item.end for item in supported] if sentence.na else []
    if by_passage and citation.property == "passage":
        return max(by_passage)
    return max(same or by_passage or anywhere, default=stop)


def _one_claim(sentence: Sentence, span: Span, following: Span) -> bool:
    between = sentence.text[span.end - sentence.start : following.start - sentence.start]
    return following.kind in UNCARRIED and lexicon_set("function_words", "within_claim").issuperset(
        re.sub("[`*_~]", "", between).casefold().split()  # without emphasis and code
    )


def without_sentences(answer: AttributedAnswer, remove: Sequence[Sentence]) -> AttributedAnswer:
    """The answer without some of its sentences; all offsets are moved to the shorter text.

    A list item or line that becomes empty goes with its sentence.
    """
    if not remove:
        return answer
    text = answer.text
    cuts: list[tuple[int, int]] = []
    for sentence in sorted(remove, key=lambda item: item.start):
        start, end = sentence.start, sentence.end
        line = text.rfind("\n", 0, start) + 1
        stop = text.find("\n", end)
        stop = len(text) if stop < 0 else stop
        floor = max(line, cuts[-1][1] if cuts else 0)
        alone = not any(sign.isalnum() for sign in text[floor:start]) or _is_number(
            text[floor:start]
        )
        if alone and not text[end:stop].strip() and floor == line:
            start, end = line, min(stop + 1, len(text))
        else:
            while end < stop and text[end] in " \t":
                end += 1
        cuts.append((max(start, cuts[-1][1] if cuts else 0), end))
    kept_text, moves = _cut(text, cuts)
    gone = {id(sentence) for sentence in remove}
    sentences = tuple(
        shifted(sentence, _shift(moves, sentence.start))
        for sentence in answer.sentences
        if id(sentence) not in gone
    )
    trimmed = kept_text.rstrip()
    return AttributedAnswer(
        text=trimmed, marked=marked_text(trimmed, sentences), sentences=sentences
    )


def _is_number(head: str) -> bool:
    return head.strip().rstrip(".)").lstrip("(").isdigit()


def _cut(text: str, cuts: Sequence[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    parts, moves, position, gone = [], [], 0, 0
    for start, end in cuts:
        parts.append(text[position:start])
        gone += end - start
        moves.append((end, gone))
        position = end
    parts.append(text[position:])
    return "".join(parts), moves


def _shift(moves: Sequence[tuple[int, int]], place: int) -> int:
    shift = 0
    for end, gone in moves:
        if place >= end:
            shift = gone
    return shift


def shifted(sentence: Sentence, by: int) -> Sentence:
    """The sentence in a text that begins ``by`` characters later, with its spans and findings."""
    if by == 0:
        return sentence
    moved: dict[str, object] = {"start": sentence.start - by, "end": sentence.end - by}
    for name in ("spans", "findings"):
        moved[name] = tuple([
            item.model_copy(update={"start": item.start - by, "end": item.end - by})
            for item in getattr(sentence, name)
        ])  # fmt: skip
    return sentence.model_copy(update=moved)
