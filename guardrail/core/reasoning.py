"""Reasoning that models write into their answers, as ``<think>…</think>``: it is left out."""

from __future__ import annotations

import re

__all__ = ["ReasoningFilter", "without_reasoning"]

NAMES = ("think", "thinking", "thought", "seed:think")
"""Tags of reasoning, https://docs.vllm.ai/en/latest/features/reasoning_outputs.html"""
OPENING = (*(f"<{name}>" for name in NAMES), "[think]", "◁think▷")
CLOSING = (*(f"</{name}>" for name in NAMES), "[/think]", "◁/think▷")
LONGEST = max(map(len, CLOSING))
# A tag in a code span is what the answer is about.
OPEN = re.compile(f"(?<!`)(?:{'|'.join(map(re.escape, OPENING))})", re.IGNORECASE)
CLOSE = re.compile(f"(?<!`)(?:{'|'.join(map(re.escape, CLOSING))})", re.IGNORECASE)
TAG = re.compile(f"{OPEN.pattern}|{CLOSE.pattern}", re.IGNORECASE)


def without_reasoning(text: str) -> str:
    """Return an answer without its reasoning.

    Blocks are left out wherever they stand. One that is never closed counts from a line's
    beginning only; one that was opened in the prompt begins with the text.

    Args:
        text: What a model wrote.
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
    tail = text[-LONGEST:].lower()
    for size in range(min(len(tail), LONGEST - 1), 0, -1):
        if any(tag.startswith(tail[-size:]) for tag in (*OPENING, *CLOSING)):
            return size
    return 0
