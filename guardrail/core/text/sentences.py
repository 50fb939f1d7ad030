"""Sentence splitting for answers of language models: prose, lists, headings, tables.

It is linear in the text, keeps "Dr.", "U.S.", initials and decimals whole, and treats list items,
headings and table rows as sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from guardrail.core.text.dates import calendar_words
from guardrail.core.text.letters import hides_letters
from guardrail.core.text.lexicon import lexicon_set

__all__ = ["Stretch", "code_blocks", "split_sentences"]

MAX_SENTENCE_CHARS = 2_000
"""Longer stretches without a full stop are cut at white space, so that one sentence is always
small enough for a judge."""

LIST_MARKER = re.compile(
    r"[ \t]*(?:>[ \t]?)*(?:[-*+•‣◦–—][ \t]+|\(?\d{1,3}[.)][ \t]+|#{1,6}[ \t]+)?"
)
FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[ \t]*[\w+#.-]*")
"""The line that opens or closes a block of code: signs, and at most a language's name. A line that
says more is text like any other, which nobody may hide from the judge between such signs."""
RULE = re.compile(r"[ \t|:*_=+-]*$")
# What belongs to the sentence that it follows: quotes, and marks such as .[^2], .【1†a】 and .²
MARKS = r"[\"'”’»」』）)\]*_`~]{0,4}+(?:\[[^\[\]\n]{1,40}\]|【[^【】\n]{1,60}】|[⁰¹²³⁴-⁹]){0,8}+"
TAGS = r"(?:</[A-Za-z][^<>\n]{0,60}>|<br ?/?>)(?:</?[A-Za-z][^<>\n]{0,60}>){0,8}+"
END = re.compile(
    rf"(?<![.!?…])[.!?…]++{MARKS}(?:{TAGS}|(?=\s))|[。！？｡]++{MARKS}"
    r"|(?<=[a-z0-9]{2})\.(?=[A-Z][a-z]* )"
)
LAST_WORD = re.compile(r"[^\s(\[\"'“‘*_]+$")
DOTTED = re.compile(r"(?:\w\.)+\w")
NEXT_WORD = re.compile(r"[\s\"'“‘(\[*_]*(\S+)")


class Stretch(NamedTuple):
    """A piece of a longer text: ``text == whole[start:end]``."""

    text: str
    start: int
    end: int


def split_sentences(text: str) -> list[Stretch]:
    """Split a text into sentences, in order, not overlapping, none blank.

    White space, list markers, heading marks and code fences between sentences belong to none. The
    time is linear in the text.
    """
    return [
        piece
        for start, end in _blocks(text)
        for first, last in _boundaries(text, start, end)
        for piece in _trimmed(text, first, last)
    ]


def code_blocks(text: str) -> list[tuple[int, int]]:
    """The offsets of what stands between code fences, in order; an open fence holds the rest."""
    blocks: list[tuple[int, int]] = []
    opened: int | None = None
    position = 0
    for line in text.splitlines(keepends=True):
        start, position = position, position + len(line)
        if not FENCE.fullmatch(line.rstrip()):
            continue
        if opened is None:
            opened = position
        else:
            blocks.append((opened, start))
            opened = None
    return blocks if opened is None else [*blocks, (opened, len(text))]


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of paragraphs, list items, headings and table rows."""
    block: tuple[int, int] | None = None
    position = 0
    for line in text.splitlines(keepends=True):
        start, position = position, position + len(line)
        body = line.rstrip()
        marker = LIST_MARKER.match(body)
        indent = marker.end() if marker else 0
        if FENCE.fullmatch(body) or RULE.fullmatch(body):
            if block:
                yield block
            block = None
            continue
        opens = indent > 0 and body[:indent].strip() != ""
        if block and not opens and _continues(text[block[1] - 1], body):
            block = (block[0], start + len(body))
            continue
        if block:
            yield block
        block = (start + indent, start + len(body))
    if block:
        yield block


def _continues(tail: str, line: str) -> bool:
    """Whether a line only wraps the block that ends in ``tail`` instead of starting a new one."""
    if line.lstrip().startswith("|") or tail in ".!?:|":
        return False
    return line.lstrip()[:1].islower() or tail in ",;-–—("


def _boundaries(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    first = start
    for match in END.finditer(text, start, end):
        if _ends_sentence(text, first, match, end):
            yield first, match.end()
            first = match.end()
    yield first, end


def _ends_sentence(text: str, first: int, match: re.Match[str], end: int) -> bool:
    following = NEXT_WORD.match(text, match.end(), min(end, match.end() + 80))
    if following is None or match.group()[0] in "。！？｡":
        return True
    word = following.group(1)
    plain = word.strip(".,;:!?\"'”’)*_").lower()
    opener = plain in lexicon_set("abbreviations", "openers") and word[0].isupper()
    if not (text[match.end()].isspace() or match.group().endswith(">")):
        return opener
    if word[0].islower():
        return False
    if not match.group().startswith(".") or match.group().startswith(".."):
        return True
    before = LAST_WORD.search(text, max(first, match.start() - 24), match.start())
    last = before.group().lower() if before else ""
    if last in lexicon_set("abbreviations", "titles"):
        return False
    if last in lexicon_set("abbreviations", "references"):
        return not word[0].isdigit()
    if last in lexicon_set("abbreviations", "finals"):
        # A day, a month or a time zone goes on with a time of day.
        times = calendar_words() | lexicon_set("abbreviations", "zones")
        return opener or not (plain in times or word[0] in "-–0123456789" or word[:2].isupper())
    closer = last in lexicon_set("abbreviations", "closers") or DOTTED.fullmatch(last)
    if closer or (len(last) == 1 and last.isalpha()):
        return opener
    return not (last.isdigit() and match.start() - len(last) == first)


def _trimmed(text: str, start: int, end: int) -> Iterator[Stretch]:
    while start < end:
        stop = min(end, start + MAX_SENTENCE_CHARS)
        if stop < end and (space := text.rfind(" ", start + 1, stop)) > 0:
            stop = space
        piece = text[start:stop]
        left = len(piece) - len(piece.lstrip())
        body = piece.strip()
        if any(map(str.isalnum, body)) or hides_letters(body):
            yield Stretch(body, start + left, start + left + len(body))
        start = stop
