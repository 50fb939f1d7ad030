"""Sentences of prose, lists, headings and tables, and the layout that they stand in.

Splitting is linear in the text, keeps "Dr.", "U.S.", initials and decimals whole, and treats list
items, headings and table rows as sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple

from guardrail.core.text.dates import calendar_words
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.units import unit_behind
from guardrail.core.text.words import Span, hides_letters

LIST_MARKER = re.compile(
    r"[ \t]*(?:>[ \t]?)*(?:[-*+•‣◦–—][ \t]+|\(?\d{1,3}[.)][ \t]+|#{1,6}[ \t]+)?"
)
FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[ \t]*([\w+#.-]*)")
"""The line that opens or closes a block of code: signs, and at most a language's name. A line that
says more is text like any other, which nobody may hide from the judge between such signs."""
DATA = frozenset({"yaml", "yml", "json", "toml", "ini", "properties", "csv", "tsv"})
"""Languages that state values and compute nothing."""
KEYED = re.compile(r"(?!.*\w\()\s*(?:[-*] )?[\w\"'][^:=(){}\[\];]*: \S.*|\s*")
"""A line that gives a value its name and calls no function, or an empty one."""
NAMED = re.compile(r"\s*\w[\w ./()-]{0,40}(?:: |\s?=\s?)[^\s=]")
"""A line that gives a value its name, as in a list without marks or in a file of settings."""
RULE = re.compile(r"[ \t|:*_=+-]*$")
# What belongs to the sentence that it follows: quotes, and marks such as .[^2], .【1†a】 and .²
MARKS = (
    r"[\"'”’»」』）)\]*_`~]{0,4}+"
    r"(?:\[[^\[\]\n]{1,40}\]|【[^【】\n]{1,60}】|<sup>[^<>\n]{1,20}</sup>|[⁰¹²³⁴-⁹†‡]){0,8}+"
)
TAGS = r"(?:</[A-Za-z][^<>\n]{0,60}>|<br ?/?>)(?:</?[A-Za-z][^<>\n]{0,60}>){0,8}+"
END = re.compile(
    rf"(?<![.!?…])[.!?…]++{MARKS}(?:{TAGS}|(?=\s)|(?<=[\]】>])(?=[A-Z]))|[。！？｡]++{MARKS}"
    r"|(?:(?<=[a-z0-9]{2})|(?<=[A-Z]{3}))[.!?…]++(?=[A-Z][a-z]* )"
)
PIECE = 2_000
"""Most characters of a sentence; what is longer comes apart at a space."""
WRAPPED = 160
"""Most characters of a line that an editor wrapped."""


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
    """The offsets of programs between code fences, in order; an open fence holds the rest.

    Data between fences asserts, and is no program: YAML, JSON and the like by the fence's language,
    and lines of names with their values where it names none.
    """
    blocks: list[tuple[int, int]] = []
    opened: int | None = None
    position, language = 0, ""
    for line in [*text.splitlines(keepends=True), "```"]:
        start, position = position, position + len(line)
        fence = FENCE.fullmatch(line.rstrip())
        if fence is None:
            continue
        if opened is None:
            opened, language = position, fence[1].casefold()
            continue
        stated = all(map(KEYED.fullmatch, text[opened:start].splitlines()))
        if language not in DATA and (language or not stated):
            blocks.append((opened, start))
        opened = None
    return blocks


def _blocks(text: str) -> list[tuple[int, int]]:
    """The offsets of paragraphs, list items, headings and table rows."""
    blocks = []
    block: tuple[int, int] | None = None
    position = last = 0
    for line in text.splitlines(keepends=True):
        start, position = position, position + len(line)
        body = line.rstrip()
        marker = LIST_MARKER.match(body)
        indent = marker.end() if marker else 0
        if FENCE.fullmatch(body) or RULE.fullmatch(body):
            if block:
                blocks.append(block)
            block = None
            continue
        opens = indent > 0 and body[:indent].strip() != ""
        named = block is not None and NAMED.match(body) and NAMED.match(text, block[0])
        if block and not opens and not named and _continues(text[last : block[1]], body):
            block, last = (block[0], start + len(body)), start
            continue
        if block:
            blocks.append(block)
        block, last = (start + indent, start + len(body)), start
    return [*blocks, block] if block else blocks


def _continues(before: str, line: str) -> bool:
    """Whether a line only wraps the one before it instead of starting a new block.

    It does so in lower case, and behind a line that is as long as editors wrap them.
    """
    if "|" in line or before[-1] in ".!?:|":
        return False
    wraps = 60 <= len(before) <= WRAPPED and "|" not in before and before[0] != "#"
    return wraps or line.lstrip()[:1].islower() or before[-1] in ",;-–—("


def _boundaries(text: str, start: int, end: int) -> list[tuple[int, int]]:
    ends = [start]
    for match in END.finditer(text, start, end):
        if _ends_sentence(text, ends[-1], match, end):
            ends.append(match.end())
    return list(pairwise([*ends, end]))


def _ends_sentence(text: str, first: int, match: re.Match[str], end: int) -> bool:
    following = re.match(r"[\s\"'“‘(\[*_]*(\S+)", text[match.end() : min(end, match.end() + 80)])
    if following is None or match.group()[0] in "。！？｡":
        return True
    word = following.group(1)
    plain = re.split(r"\.?[-–]", word.strip(".,;:!?\"'”’)*_").lower())[0]
    opener = plain in lexicon_set("abbreviations", "openers") and word[0].isupper()
    if not (text[match.end()].isspace() or match.group().endswith(">")):
        return opener
    if word[0].islower():
        return False
    if not match.group().startswith(".") or match.group().startswith(".."):
        return True
    near = text[max(first, match.start() - 24) : match.start()]
    before = re.search(r"[^\s(\[\"'“‘*_]+$", near)
    word_before = before.group() if before else ""
    last = word_before.lower()
    initial = len(last) == 1 and word_before.isupper()
    ahead = text[max(first, match.start() - 40) : match.start()]
    if initial and _lettered().search(ahead):
        return True
    if len(last) <= 2 and (number := re.search(r"\d[\d.,]*+(?= ?[^\W\d]{1,2}$)", ahead)):
        unit = unit_behind(ahead, number.end())
        if unit and unit[1] == len(ahead) and not initial:
            return not word[0].isdigit()
    if last in lexicon_set("abbreviations", "titles") and not initial:
        return False
    if last in lexicon_set("abbreviations", "references"):
        return not word[0].isdigit()
    if last in lexicon_set("abbreviations", "finals"):
        # A day, a month or a time zone goes on with a time of day.
        times = calendar_words() | lexicon_set("abbreviations", "behind_times")
        return opener or not (plain in times or word[0] in "-–—0123456789" or word[:2].isupper())
    closer = last in lexicon_set("abbreviations", "closers") or re.fullmatch(r"(?:\w\.)+\w", last)
    if closer or (len(last) == 1 and last.isalpha()):
        return opener and re.match(r"[\"'“‘(\[*_]*[A-Z]\.", word) is None
    return not (last.isdigit() and match.start() - len(last) == first)


@cache
def _lettered() -> re.Pattern[str]:
    """What a capital behind makes a name and no initial: *zones A and B*, *its note is D*."""
    words = "|".join(lexicon_set("abbreviations", "lettered"))
    forms = "|".join(lexicon_set("grammar", "be"))
    return re.compile(
        rf"\b(?:(?:{words})s?|{forms}) (?:[A-Z](?:, | and |, and | or | to |-))*[A-Z]$", re.I
    )


def _trimmed(text: str, start: int, end: int) -> list[Stretch]:
    pieces = []
    while start < end:
        stop = min(end, start + PIECE)
        if stop < end and (space := text.rfind(" ", start + 1, stop)) > 0:
            stop = space
        piece = text[start:stop]
        left = len(piece) - len(piece.lstrip())
        body = piece.strip()
        if any(map(str.isalnum, body)) or hides_letters(body):
            pieces.append(Stretch(body, start + left, start + left + len(body)))
        start = stop
    return pieces


UNDER_HEADER = re.compile(
    r"[ \t]*+(?:\|[ \t]*+)?(?::?-++:?[ \t]*+\|[ \t]*+)++(?::?-++:?[ \t]*+)?$(?:\n(.*))?", re.M
)
"""The line between the header of a Markdown table and its rows, and the first of these."""


MARKDOWN = "*_#` \t"
LAST = re.compile(r"[*_#` \t]*+$", re.MULTILINE)
MEMBER = re.compile(r'"([^"\n]{1,60})"\s*:\s*("[^"\n]*"|[\w.+-]+)')
"""A member of a JSON object that has a simple value."""
LIST_ITEM = re.compile(r"[ \t]*(?:[-*+•‣◦]|\(?\d{1,3}[.)])[ \t]")


class Piece(NamedTuple):
    """A piece of a laid-out text.

    Attributes:
        text: The piece on one line: a sentence, or of a table's row *label, column: value*.
        heading: The heading it stands under; empty where there is none.
        fact: Of a table's row its label, the column and the value.
        label: The label above it: of the list that it is an item of, or of the next sentence.
        is_item: True for a list item, whose ``text`` begins with the label.
    """

    text: str
    heading: str = ""
    fact: tuple[str, str, str] | None = None
    label: str = ""
    is_item: bool = False

    @property
    def words(self) -> str:
        """Its own words, without the label above it."""
        return self.text.removeprefix(f"{self.label}: ") if self.is_item else self.text


def laid_out(text: str) -> Iterator[Piece]:
    """The pieces of a text that say something, in order, each with what it stands under.

    Headings, labels of lists, heads of tables and bare numbers say nothing by themselves. An item
    of a list is read with the label above it, a row of a table with the heads of its columns.
    """
    heading = label = ""
    head: list[str] | None = None
    shown = -1
    for stretch, place in lined(text):
        words = " ".join(stretch.text.split())
        start, stop = place.line
        if place.role == "head":
            if start != shown:  # a long line has several sentences
                head, shown = cells_of(text[start:stop]), start
            continue
        if head is not None and place.is_row:
            if start != shown:
                shown = start
                yield from _row(head, cells_of(text[start:stop]), heading)
            continue
        head = None
        if place.role == "heading":
            heading, label = words.strip(MARKDOWN + ":"), ""
        elif place.role == "label":
            label = words.strip(MARKDOWN + ":")
        else:
            listed = place.is_item and bool(label)
            if any(sign.isalpha() for sign in words):
                shown_text = f"{label}: {words}" if listed else words
                yield Piece(shown_text, heading, label=label, is_item=listed)
            if not place.is_item:
                label = ""


class Place(NamedTuple):
    """Position of a sentence in the layout of its text.

    Attributes:
        line: Offsets of its line, or of those that it goes over.
        role: ``head`` of a Markdown table, ``heading``, ``label`` of what stands below; else empty.
        is_item: True in an item of a list.
        is_row: True on a line that may be a table's row.
        has_rows: True if a table's rule and a row stand below the line.
    """

    line: Span
    role: Literal["head", "heading", "label", ""]
    is_item: bool
    is_row: bool
    has_rows: bool


def lined(text: str) -> list[tuple[Stretch, Place]]:
    """The sentences of a text, each with its place; what shares a line is looked at once."""
    found = []
    start, stop, before = 0, -1, 0
    is_item = is_row = has_rows = False
    rule: re.Match[str] | None = None
    for stretch in split_sentences(text):
        line = text.rfind("\n", before, stretch.start) + 1 or start, stop
        if stop < stretch.end:
            end = text.find("\n", stretch.end)
            line = line[0], len(text) if end < 0 else end
        if line != (start, stop):
            start, stop = line
            is_item = LIST_ITEM.match(text, start, stop) is not None
            is_row = "|" in text[start:stop]
            rule = UNDER_HEADER.match(text, stop + 1)
            has_rows = rule is not None and bool((rule[1] or "").strip(MARKDOWN + "|"))
        before = stretch.start
        role = _role(text, start, stretch.start, stretch.end, rule is not None)
        found.append((stretch, Place(line, role, is_item, is_row, has_rows)))
    return found


def _role(
    text: str, line: int, start: int, end: int, ruled: bool
) -> Literal["head", "heading", "label", ""]:
    """Role of a sentence; ``ruled`` says that the rule of a table stands below its line."""
    sentence = text[start:end]
    if ruled and "|" in sentence:
        return "head"
    if not LAST.match(text, end):
        return ""
    before, bare = text[line:start], sentence.rstrip(MARKDOWN)
    signs = ("**", "__")
    bold = sentence.startswith(signs) and sentence.rstrip(": ").endswith(signs)
    marked = before.lstrip().startswith("#") or (bold and not before.strip())
    if marked and bare[-1:] not in (".", "!", "?"):
        return "heading"
    short = len(sentence.split()) <= 6
    return "label" if bare.endswith(":") and not before.strip(MARKDOWN) and short else ""


def without_links(text: str) -> str:
    """Blank what Markdown writes around the text of links and pictures; offsets stay.

    The address of a page stays, since readers see it; the file of a picture does not.
    """

    def blank(match: re.Match[str]) -> str:
        shown = not match[1] and match[3].startswith(("http:", "https:"))
        address = match[3] if shown else " " * len(match[3])
        return f"{' ' * len(match[1])} {match[2]}  {address} "

    return re.sub(r"(!?)\[([^\[\]\n]+)\]\(([^()\s]*)\)", blank, text)


def cells_of(line: str) -> list[str]:
    """The cells of a line of a Markdown table, without marks of emphasis."""
    return [
        " ".join(cell.split()).strip(MARKDOWN)
        for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))
    ]


def _row(head: list[str], cells: list[str], heading: str) -> Iterator[Piece]:
    """A row as statements: one for each column after the first, which names the subject."""
    label, *values = cells
    for column, value in zip(head[1:], values, strict=False):
        if label and value:
            stop = "" if value.endswith((".", "!", "?")) else "."
            # Longest name of a row or column, in characters: every cell's statement repeats both
            label, column = label[:500], column[:500]
            yield Piece(f"{label}, {column}: {value}{stop}", heading, (label, column, value))
