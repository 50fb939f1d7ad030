"""Text with markers: parse, render, strip ``[Q…, property: value]``, ``[NA]``, ``[corrected]``.

``guardrail.markers.brackets`` has the grammar of one marker. Parsing is linear in the text, never
raises, and loses nothing: ``render(parse(x)) == x`` for every text. References such as ``[1]`` and
broken markers assert nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence, Set

from pydantic import Field

from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.types.knowledge import Citation, Triple
from guardrail.core.types.value import Value
from guardrail.markers.brackets import (
    CORRECTED,
    KnownFacts,
    bracket_pairs,
    read_bracket,
    write_bracket,
)


class Marker(Value):
    """One bracket of citations, ``[NA]`` or ``[corrected]``, at its place in the text.

    Attributes:
        citations: The cited triples in the order written; a part that is missing is "".
        sources: Numbers of pieces of evidence, of a bracket such as ``[2]``; counted from 1.
        na: True where the marker says that support is lacking.
        corrected: True where it says that the guardrail wrote the words before it.
        at: Offset in the clean text; the marker supports what stands before it.
        start: Offset of the bracket in the marked text.
        end: Offset past the bracket in the marked text.
        lead: White space between the clean text and the bracket.
        trail: White space after a bracket that opens a line.
        source: The bracket as it was written; None for one made here.
    """

    citations: tuple[Citation, ...] = ()
    sources: tuple[int, ...] = ()
    na: bool = False
    corrected: bool = False
    at: int = Field(ge=0)
    start: int = Field(default=0, ge=0)
    end: int = Field(default=0, ge=0)
    lead: str = " "
    trail: str = ""
    source: str | None = None


class ParsedText(Value):
    """Running text with its markers taken out."""

    clean: str
    marked: str
    markers: tuple[Marker, ...] = ()

    @property
    def citations(self) -> tuple[Citation, ...]:
        """All citations of all markers, repeated ones repeated."""
        return tuple(citation for marker in self.markers for citation in marker.citations)

    def within(self, start: int, end: int) -> tuple[Marker, ...]:
        """The markers of the sentence ``clean[start:end]``.

        A marker right after the sentence's full stop still belongs to it, and so does one that
        opens the line that the sentence opens.
        """
        opens_line = start == 0 or self.clean[start - 1] == "\n"
        after = start - 1 if opens_line else start
        first = bisect_right(self.markers, after, key=lambda marker: marker.at)
        last = bisect_right(self.markers, end, key=lambda marker: marker.at)
        return self.markers[first:last]


def render_marker(
    citations: Iterable[Citation], *, na: bool = False, corrected: bool = False
) -> str:
    """Write citations as one bracket, followed by ``[NA]`` or ``[corrected]`` where that is set."""
    bracket = write_bracket(citations, na=na)
    return " ".join(filter(None, [bracket, CORRECTED if corrected else ""]))


def parse(
    text: str, known: KnownFacts | Iterable[Triple] | None = None, *, sources: int = 0
) -> ParsedText:
    """Take the markers out of a text, in time linear in its length; never raises.

    Args:
        text: Text with or without markers.
        known: The triples that may be cited. They decide where values end that contain
            something like ``, name: ``.
        sources: Pieces of evidence that a number in brackets may cite; such a number is then a
            marker, too.
    """
    facts = known if isinstance(known, KnownFacts) or known is None else KnownFacts(known)
    markers: list[Marker] = []
    clean: list[str] = []
    length = position = 0
    line_start = True  # only markers since the line began
    numbers = source_numbers(text, sources)
    for start, end in bracket_pairs(text):
        if start < position:
            continue
        corrected = text[start:end] == CORRECTED
        content: tuple[list[Citation], bool] | None = ([], False)
        if not corrected and start not in numbers:
            content = read_bracket(text[start + 1 : end - 1], facts)
        if content is None:
            continue
        before = text[position:start]
        kept = before.rstrip(" \t")
        clean.append(kept)
        length += len(kept)
        line_start = kept.endswith("\n") if kept else line_start
        trail = " " if line_start and text.startswith(" ", end) else ""
        citations, na = content
        markers.append(
            Marker(
                citations=tuple(citations),
                sources=numbers.get(start, ()),
                na=na,
                corrected=corrected,
                at=length,
                start=start,
                end=end,
                lead=before[len(kept) :],
                trail=trail,
                source=text[start:end],
            )
        )
        position = end + len(trail)
    clean.append(text[position:])
    return ParsedText(clean="".join(clean), marked=text, markers=tuple(markers))


def render(parsed: ParsedText) -> str:
    """Put the markers back; the inverse of ``parse``."""
    parts = []
    position = 0
    for marker in parsed.markers:
        bracket = marker.source
        if bracket is None:
            bracket = render_marker(marker.citations, na=marker.na, corrected=marker.corrected)
        parts += [parsed.clean[position : marker.at], marker.lead, bracket, marker.trail]
        position = marker.at
    parts.append(parsed.clean[position:])
    return "".join(parts)


def keep(parsed: ParsedText, stretches: Iterable[tuple[int, int]]) -> ParsedText:
    """Keep only some stretches of the clean text, each with its markers and the gap before it.

    Args:
        parsed: The text.
        stretches: ``(start, end)`` of the stretches to keep, in order, such as sentences.
            The gap between a stretch and the text before it goes or stays with the stretch.
    """
    parts: list[str] = []
    markers: list[Marker] = []
    length = position = 0
    for start, end in stretches:
        gap = parsed.clean[position:start]
        gap = gap[len(gap.rstrip()) :] if parts else ""
        parts += [gap, parsed.clean[start:end]]
        shift = length + len(gap) - start
        length = end + shift
        position = end
        markers += [
            marker.model_copy(update={"at": max(start, marker.at) + shift})
            for marker in parsed.within(start, end)
        ]
    return insert("".join(parts), markers)


def insert(clean: str, markers: Sequence[Marker]) -> ParsedText:
    """Set markers into a clean text, in the order of their offsets; stable for equal ones."""
    ordered = tuple(sorted(markers, key=lambda marker: marker.at))
    draft = ParsedText(clean=clean, marked="", markers=ordered)
    return draft.model_copy(update={"marked": render(draft)})


def strip(text: str, known: KnownFacts | Iterable[Triple] | None = None) -> str:
    """The text without its markers."""
    return parse(text, known).clean


ONE = r"(?:\[\^?\d{1,3}(?:(?:, ?|[-–])\d{1,3}){0,9}\]|【\d{1,3}(?::\d{1,3})?†[^\s【】]{1,60}】)"
"""Numbers of sources in brackets, and the form of OpenAI's file search."""

REFERENCES = re.compile(
    rf"(?m)((?<=[.!?])|(?<=[.!?][\"'’”)*_ ]))?{ONE}(?: ?{ONE})*+"
    r"(?(1)(?=\s|$)|(?=[^\S\n]*+(?:[.,;:!?)\]\"'’”*_]|$)))"
)
"""References in a row at the end of a phrase, or behind a sentence (the group)."""

OPENING = re.compile(rf"\s*+{ONE}(?: ?{ONE})*+(?=\s|$)")
"""The same before a sentence, or alone."""


def without_references(text: str, sources: int) -> str:
    """Blank references, offsets kept: the number of a source is nothing that a sentence tells.

    They stand alone, before a sentence, or behind a word at the end of a phrase. A number that no
    source has, or that the phrase lacks without it, as in *it lasts for [9]*, stays.
    """

    def blank(match: re.Match[str]) -> str:
        named = _names_sources(match[0], sources) and _ends_phrase(text, match.start())
        return " " * len(match[0]) if named else match[0]

    opening = OPENING.match(text)
    start = opening.end() if opening and _names_sources(opening[0], sources) else 0
    return " " * start + REFERENCES.sub(blank, text)[start:]


def source_numbers(text: str, sources: int) -> dict[int, tuple[int, ...]]:
    """Numbers of sources that a text cites, by the offset of their bracket.

    Args:
        text: An answer; a bracket at the end of a phrase, as in *costs 60 euros [2].*, cites.
        sources: Pieces of evidence that it could refer to.
    """
    found: dict[int, tuple[int, ...]] = {}
    for run in REFERENCES.finditer(text) if sources else ():
        line = text.rfind("\n", 0, run.start()) + 1
        if text.count("`", line, run.start()) % 2 or not _names_sources(run[0], sources):
            continue
        # On a line that a reference opens, the others open sentences, too
        opens = run[1] is not None and OPENING.match(text, line)
        if opens or not _ends_phrase(text, run.start()):
            continue
        for one in re.compile(r"\[[^\[\]]*\]").finditer(text, run.start(), run.end()):
            numbers = [int(part) for part in re.findall(r"\d+", one[0])]
            first, last = numbers[0], numbers[-1]
            spanned = len(numbers) == 2 and re.search("[-–]", one[0]) and first < last
            found[one.start()] = tuple(range(first, last + 1) if spanned else numbers)
    return found


def _names_sources(references: str, sources: int) -> bool:
    """Whether all numbers are those of sources; file search numbers by a count of its own."""
    numbers = re.findall(r"\d+", re.sub("【[^】]*】", "", references))
    return all(1 <= int(number) <= sources for number in numbers)


def _ends_phrase(text: str, place: int) -> bool:
    """Whether the words before a place are whole without what follows it."""
    # The word that references stand behind, with the signs that close it
    word = r"([\w'’-]{1,40})[\"'’”)\]%°*_.,;!?]{0,9}\s?$"
    last = re.search(word, text[max(0, place - 60) : place])
    return last is not None and last[1].casefold() not in lexicon_set(
        "function_words", "stop_words"
    )


def without_ruins(text: str, entities: Set[str]) -> str:
    """Blank markers that could not be read, offsets kept.

    From where a bracket names an entity to where it is closed, or to the sentence's end, no value
    counts as stated.
    """
    parts = []
    position = 0
    # What opens a marker: an entity, and a property before a colon
    for match in re.finditer(r"\[([^\[\],]{1,200}), (?=[^\[\]:]{1,200}: )", text):
        entity = match.group(1)
        if match.start() < position or not (
            entity in entities or re.fullmatch(r"[QPL]\d+", entity)
        ):
            continue
        depth = 0
        end = len(text)
        for place in range(match.start(), len(text)):
            depth += (text[place] == "[") - (text[place] == "]")
            if depth == 0:
                end = place + 1
                break
        parts += [text[position : match.start()], " " * (end - match.start())]
        position = end
    return "".join(parts) + text[position:]
