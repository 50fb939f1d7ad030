"""Text from outside: control characters and the reasoning of models are taken out, JSON is read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator

NO_TEXT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
"""Controls except U+0085, which ends a line (U+009B begins a terminal's command as ESC and [
do); lone surrogates and noncharacters, no text and no JSON either; and signs that are never seen,
or turn a line's direction: they part a figure that a reader sees as one, show it the other way
round, or spell a text out. What Unicode calls default ignorable, but for joiners."""
UNSEEN = re.compile(f"{NO_TEXT.pattern}|[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Controls, and what turns the direction in which a line is shown."""


def clean_text(text: str) -> str:
    """Remove what is no text, and unify line ends."""
    if text.isascii() and text.isprintable():
        return text
    return without_controls(text.replace("\r\n", "\n").replace("\r", "\n"))


def without_controls(text: str) -> str:
    """Remove what is no text, and leave line ends as they are."""
    if text.isascii() and text.isprintable():
        return text
    # Joiners shape emoji and other scripts; a keycap needs one behind a figure.
    joiners = "(?<=[ -~\u00c0-\u024f\\d])[\u200c\u200d\ufe00-\ufe0f]+(?!\u20e3)"
    return re.sub(joiners, "", NO_TEXT.sub("", text))


def cut_text(text: str, room: int) -> str:
    """The beginning of a text, up to a boundary; half a sentence may say what the whole denies."""
    # One sign more, since the space behind a sentence ends it.
    head = text[: room + 1]
    # Where a text may be cut, the best first: behind a paragraph, a line, a sentence
    boundaries = map(re.compile, (r"\n\s*\n", r"\n", r"[.!?…][\"'”’)\]]*(?=\s)|[。！？]"))
    ends = [_last_end(boundary, head, room) for boundary in boundaries]
    # Of the room that a cut text must fill for a better boundary to count: finer ones fill more
    end = next((end for end in ends if end >= 0.5 * room), max(ends))
    return head[:end].rstrip()


def _last_end(boundary: re.Pattern[str], text: str, most: int) -> int:
    return max((m.end() for m in boundary.finditer(text) if m.end() <= most), default=0)


def finite_json(text: str | bytes) -> object:
    """Read JSON; what stands for no finite number (``NaN``, ``Infinity``, ``1e999``) is null.

    Python writes such numbers again as they are, and no other reader takes them.

    Raises:
        ValueError: It is no JSON.
        RecursionError: It nests without end.
    """
    return json.loads(text, parse_constant=lambda _: None, parse_float=_finite)


def read_clean_json(line: str) -> object:
    """Read JSON as ``finite_json`` does, without halves of characters, which escapes can write.

    Raises:
        ValueError: It is no JSON.
        RecursionError: It nests too deep.
    """
    value = finite_json(line)
    if "\\ud" not in line.lower():
        return value
    return json.loads(without_controls(json.dumps(value, ensure_ascii=False)))


def one_line(text: str) -> str:
    """A title or an id for a line of notes: no breaks, nothing invisible."""
    return UNSEEN.sub("", re.sub("[\\s\x85\u2028\u2029]+", " ", text)).strip()


def safe_url(text: str) -> str | None:
    """An address that a reader may open, on one line; None for what runs or hides something.

    A path without a scheme, such as ``rooms.md``, is an address as well.
    """
    address = UNSEEN.sub("", text).strip()
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", address)
    # Schemes that a browser runs. Others are many: stores, disks, ids of documents.
    run = "blob data filesystem javascript livescript mocha vbscript"
    if scheme is not None and scheme[1].lower() in run.split():
        return None
    return address or None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _cleaned(clean: Callable[[str], str | None]) -> BeforeValidator:
    """Clean a field that is a text, and leave what is none to the check of its type."""
    return BeforeValidator(lambda value: clean(value) if isinstance(value, str) else value)


Text = Annotated[str, _cleaned(without_controls)]
"""The type of a field that takes text from outside; see ``without_controls``."""
Title = Annotated[str, _cleaned(one_line)]
"""The type of a title from outside; see ``one_line``."""
Address = Annotated[str | None, _cleaned(safe_url)]
"""The type of an address from outside; see ``safe_url``."""


OPENING = ("<think>", "<thinking>", "<thought>", "<seed:think>", "[think]", "◁think▷")
"""Tags of reasoning, https://docs.vllm.ai/en/latest/features/reasoning_outputs.html"""
CLOSING = tuple(f"{tag[0]}/{tag[1:]}" for tag in OPENING)
# A tag in a code span is what the answer is about.
OPEN = re.compile(f"(?<!`)(?:{'|'.join(map(re.escape, OPENING))})", re.IGNORECASE)
CLOSE = re.compile(f"(?<!`)(?:{'|'.join(map(re.escape, CLOSING))})", re.IGNORECASE)
TAG = re.compile(f"{OPEN.pattern}|{CLOSE.pattern}", re.IGNORECASE)


def without_reasoning(text: str) -> str:
    """Return an answer without its reasoning.

    Blocks are left out wherever they stand. One that is never closed counts from a line's
    beginning only; one that was opened in the prompt begins with the text.
    """
    first = TAG.search(text)
    if first is None:
        return text
    if CLOSE.fullmatch(first[0]):
        text = text[first.end() :].lstrip()
    reader = ReasoningFilter()
    return reader.feed(text) + reader.finish()


class ReasoningFilter:
    """Leaves the reasoning out of a text that comes in pieces of any size, in linear time."""

    def __init__(self) -> None:
        self._held = ""  # may be the beginning of a tag
        self._last = ""  # the character before it
        self._block: list[str] | None = None  # an open block
        self._sure = False  # whether that is reasoning even if it is never closed
        self._blank = True  # whether the line so far is
        self._strips = False  # whether space is dropped, behind a block that began the text
        self._begun = False  # whether more than space has left

    def feed(self, piece: str) -> str:
        """Take a piece; return the text that is no reasoning, as far as that is known."""
        text = self._last + self._held + piece
        at = len(self._last)
        out: list[str] = []
        while (tag := (TAG if self._block is None else CLOSE).search(text, at)) is not None:
            out.append(self._passed(text[at : tag.start()]))
            at = tag.end()
            if self._block is None and OPEN.fullmatch(tag[0]):
                self._block, self._sure = [tag[0]], self._blank
            else:
                self._block, self._strips = None, not self._begun
        end = len(text) - _partial(text[at:])
        out.append(self._passed(text[at:end]))
        self._last, self._held = text[max(0, end - 1) : end], text[end:]
        return "".join(out)

    def finish(self) -> str:
        """Return what is left at the end of the text."""
        left = self._passed(self._held)
        if self._block is not None and not self._sure:
            left = "".join(self._block)
        self._held, self._block = "", None
        return left

    def _passed(self, text: str) -> str:
        """What leaves of a text before the next tag; in a block it is kept, or dropped."""
        if self._block is not None:
            if not self._sure:
                self._block.append(text)
            return ""
        if self._strips:
            text = text.lstrip()
            self._strips = not text
        last = text.rpartition("\n")[2]
        self._blank = (self._blank or "\n" in text) and not last.strip()
        self._begun = self._begun or bool(text.strip())
        return text


def _partial(text: str) -> int:
    """How many characters at the end of a text may be the beginning of a tag."""
    longest = max(map(len, CLOSING))
    tail = text[-longest:].lower()
    for size in range(min(len(tail), longest - 1), 0, -1):
        if any(tag.startswith(tail[-size:]) for tag in (*OPENING, *CLOSING)):
            return size
    return 0
