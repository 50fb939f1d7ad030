"""References to sources, such as ``[1]`` and ``【4:0†source】``, and broken markers: no claims."""

from __future__ import annotations

import re
from collections.abc import Set

from guardrail.core.text.lexicon import lexicon_set

__all__ = ["source_numbers", "without_references", "without_ruins"]

ONE = r"(?:\[\^?\d{1,3}(?:(?:, ?|[-–])\d{1,3}){0,9}\]|【\d{1,3}(?::\d{1,3})?†[^\s【】]{1,60}】)"
"""Numbers of sources in brackets, and the form of OpenAI's file search."""

BRACKET = re.compile(r"\[[^\[\]]*\]")

REFERENCES = re.compile(rf"(?m){ONE}(?: ?{ONE})*+(?=[^\S\n]*+(?:[.,;:!?)\]\"'’”*_]|$))")
"""References in a row at the end of a phrase."""

OPENING = re.compile(rf"\s*+{ONE}(?: ?{ONE})*+(?=\s|$)")
"""The same before a sentence, or alone."""

LAST_WORD = re.compile(r"([\w'’-]{1,40})[\"'’”)\]%°*_.,;!?]{0,9}\s?$")
"""The word that references stand behind, with the signs that close it."""

NEAR = 60
"""Characters before references that are looked at."""


def without_references(text: str, sources: int) -> str:
    """Blank references, offsets kept: the number of a source is nothing that a sentence tells.

    They stand alone, before a sentence, or behind a word at the end of a phrase. A number that no
    source has, or that the phrase lacks without it, as in *it lasts for [9]*, stays.

    Args:
        text: A sentence.
        sources: Pieces of evidence that the answer could refer to.
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
        code = text.count("`", text.rfind("\n", 0, run.start()) + 1, run.start()) % 2
        if code or not (_names_sources(run[0], sources) and _ends_phrase(text, run.start())):
            continue
        for one in BRACKET.finditer(text, run.start(), run.end()):
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
    last = LAST_WORD.search(text[max(0, place - NEAR) : place])
    return last is not None and last[1].casefold() not in lexicon_set(
        "function_words", "stop_words"
    )


MARKER_START = re.compile(r"\[([^\[\],]{1,200}), (?=[^\[\]:]{1,200}: )")
"""What opens a marker: an entity, and a property before a colon."""

IDENTIFIER = re.compile(r"[QPL]\d+")


def without_ruins(text: str, entities: Set[str]) -> str:
    """Blank markers that could not be read, offsets kept.

    From where a bracket names an entity to where it is closed, or to the sentence's end, no value
    counts as stated.

    Args:
        text: A sentence.
        entities: Labels and ids of the entities that the evidence is about.
    """
    parts = []
    position = 0
    for match in MARKER_START.finditer(text):
        entity = match.group(1)
        if match.start() < position or not (entity in entities or IDENTIFIER.fullmatch(entity)):
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
