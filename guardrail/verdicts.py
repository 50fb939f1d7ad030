"""Verdicts: what was decided on a draft, as the sentence that a reader sees."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from guardrail.conflicts import Conflict
from guardrail.containment import wider_text
from guardrail.drafting import Draft
from guardrail.leftovers import Leftover, unsupported
from guardrail.markers.grammar import ParsedText
from guardrail.matching import Match
from guardrail.partial import PartialSupport, WholeSupport, unaccounted
from guardrail.phrases import PhraseKind
from guardrail.support import Thresholds
from guardrail.text.values import fold, tokenise
from guardrail.types import Category, Citation, Judgement, Sentence, Span, SpanKind, Triple
from guardrail.vocabulary import cues

__all__ = ["Verdict", "sentence_of", "wants_parts"]


class Verdict(NamedTuple):
    """What the evidence says of a draft.

    Attributes:
        kept: The accepted triples.
        whole: The window of a passage that entails the whole sentence.
        conflicts: What triples contradict.
        leftovers: The factual phrases that triples do not account for, nor ``parts``.
        parts: Windows that entail parts of the sentence, where none entails the whole.
    """

    kept: tuple[Match, ...]
    whole: WholeSupport | None
    conflicts: tuple[Conflict, ...]
    leftovers: tuple[Leftover, ...]
    parts: tuple[PartialSupport, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether some evidence bears the sentence out, wholly or in part."""
        return bool(self.kept or self.whole or self.parts)

    def with_parts(self, parts: Sequence[PartialSupport]) -> Verdict:
        """The verdict where windows entail parts of the sentence, and none the whole."""
        left = tuple(unaccounted(self.leftovers, parts))
        return self._replace(whole=None, parts=tuple(parts), leftovers=left)


def wants_parts(draft: Draft, verdict: Verdict) -> bool:
    """Whether to ask if passages support a part of a sentence.

    That is where no window entails the whole for certain, and triples leave a name, date or
    number over, or support nothing.
    """
    return (
        draft.claim
        and not (verdict.whole and verdict.whole.certain)
        and not verdict.conflicts
        and (not verdict.kept or any(phrase.kind.hard for phrase in verdict.leftovers))
    )


def sentence_of(
    draft: Draft,
    verdict: Verdict,
    judgement: Judgement | None,
    answer: ParsedText,
    limits: Thresholds,
    *,
    verbatim: bool = False,
) -> Sentence:
    """The sentence with its category, citations and phrases.

    Args:
        draft: The draft.
        verdict: What was decided on it.
        judgement: The attribution judge's word, where it was asked.
        answer: The answer with the markers that stood in it.
        limits: The thresholds.
        verbatim: Cite only triples whose value stands in the sentence as the graph writes it.
    """
    stretch = draft.stretch
    in_parts = bool(verdict.parts) and not verdict.kept
    left = () if verdict.whole else verdict.leftovers
    lacking = draft.claim and (
        bool(left) if in_parts else unsupported(left, judgement, verdict.supported, limits)
    )
    shown = list(left) if lacking else []
    if lacking and not any(phrase.kind.hard for phrase in shown):
        shown = shown or [_whole(draft)]
    elif lacking:
        shown = [one for one in shown if one.kind.hard or one.certain or one.bare]
    shown = [one for one in shown if not _names_property(one, verdict.conflicts)]
    spans = _spans(draft, verdict, shown)
    category: Category | None = None
    if draft.claim:
        if verdict.conflicts:
            category = Category.CONTRADICTORY
        elif not verdict.supported:
            category = Category.IRRELEVANT
        else:
            partly = lacking or in_parts
            category = Category.PARTIALLY_SUPPORTIVE if partly else Category.SUPPORTIVE
    cited = _citations(verdict, stretch.text, verbatim=verbatim)
    return Sentence(
        text=stretch.text,
        start=stretch.start,
        end=stretch.end,
        category=category,
        na=lacking,
        citations=cited,
        spans=spans,
        judgement=judgement,
        note=_note(draft, verdict, answer, cited, verbatim),
    )


def _citations(verdict: Verdict, text: str, *, verbatim: bool) -> tuple[Citation, ...]:
    """What is cited, in the order of the sentence's text."""
    kept = [one for one in verdict.kept if not verbatim or _stands(one.triple.value, text)]
    ordered = sorted(kept, key=lambda match: (match.value_spans or match.cue_spans or ((0, 0),))[0])
    cited = [match.triple.citation for match in ordered]
    if verdict.whole is not None:
        cited.append(verdict.whole.window.citation)
    cited += [part.window.citation for part in verdict.parts]
    return tuple(dict.fromkeys(cited))


def _stands(value: str, text: str) -> bool:
    """Whether a value stands in a text as it is written, case apart, and not within a word."""
    written = re.escape(value.casefold())
    return re.search(rf"(?<!\w){written}(?!\w)", text.casefold()) is not None


def _names_property(phrase: Leftover, clashes: Sequence[Conflict]) -> bool:
    """Whether a phrase is the word of a property whose value is contradicted: *born* in Paris."""
    stems = {token.stem for token in tokenise(phrase.text)}
    return phrase.kind is PhraseKind.RELATION and any(
        stems <= cues(clash.triple.property) for clash in clashes
    )


def _whole(draft: Draft) -> Leftover:
    stretch = draft.stretch
    return Leftover(stretch.text, stretch.start, stretch.end, PhraseKind.RELATION)


def _spans(draft: Draft, verdict: Verdict, shown: Sequence[Leftover]) -> tuple[Span, ...]:
    """Phrases by support; contradictions first, then support, then what is left over."""
    text, offset = draft.stretch.text, draft.stretch.start
    wanted: list[tuple[int, int, SpanKind, Triple | None]] = [
        (clash.start, clash.end, SpanKind.CONTRADICTED, clash.triple) for clash in verdict.conflicts
    ]
    finer = {(match.finer.start, match.finer.end) for match in verdict.kept if match.finer}
    for match in verdict.kept:
        for start, end in (match.value_spans or match.cue_spans)[:1]:
            if (start, end) not in finer:
                wanted.append((start, end, SpanKind.SUPPORTED, match.triple))
    wanted += [
        (start, end, SpanKind.SUPPORTED, None)
        for part in verdict.parts
        for start, end in part.reduction.held
    ]
    wanted += [(one.start, one.end, SpanKind.NA, None) for one in shown]
    chosen: list[tuple[int, int, SpanKind, Triple | None]] = []
    for span in wanted:
        if not any(span[0] < end and start < span[1] for start, end, _, _ in chosen):
            chosen.append(span)
    return tuple(
        Span(text=text[start - offset : end - offset], start=start, end=end, kind=kind, triple=fact)
        for start, end, kind, fact in sorted(chosen, key=lambda one: one[0])
    )


def _note(
    draft: Draft,
    verdict: Verdict,
    answer: ParsedText,
    cited: Sequence[Citation],
    verbatim: bool,
) -> str | None:
    """What contradicts the sentence, which places it tells by wider ones, and what was dropped."""
    stretch = draft.stretch
    lines = [f"contradicted by: {clash.triple.text}" for clash in dict.fromkeys(verdict.conflicts)]
    lines += dict.fromkeys(
        f"{match.triple.value} lies in {wider_text(match, stretch)}"
        for match in draft.matches
        if match.wider and (match in verdict.kept or match.denied)
    )
    held = {(fold(one.property), fold(one.value)) for one in cited}
    gone = [
        f"[{one.entity}, {one.property}: {one.value}]"
        for marker in answer.within(stretch.start, stretch.end)
        for one in marker.citations
        if (fold(one.property), fold(one.value)) not in held
    ]
    if gone:
        lines.append(
            "citation dropped, since no evidence holds it or the sentence does not state it"
            f"{' word for word' if verbatim else ''}: " + " ".join(dict.fromkeys(gone))
        )
    return "; ".join(lines) or None
