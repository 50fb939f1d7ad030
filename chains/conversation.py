"""The question that a conversation ends with, made to stand on its own.

The guardrail judges an answer against one question. In a conversation the last user turn may
refer to earlier ones ("and his father?"): then those are put in front of it, newest first, until
nothing is left open or the budget is spent.

Turns of the assistant only name what a question refers to: numbers in a question count as given, so
the numbers, dates and measures of these turns are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from guardrail.core.text.lexicon import lexicon
from guardrail.core.text.values import find_values
from guardrail.core.text.words import plain

__all__ = ["Turn", "standalone_question"]

MAX_QUESTION_WORDS = 160
"""Words of history and question together; later turns come first."""
MAX_TURNS_BACK = 6
MAX_TURN_CHARS = 4_000
"""Characters of an earlier turn that are read: its beginning names what it is about."""

_WORDS = lexicon("function_words")
LEANS = re.compile(
    rf"\b(?:{'|'.join([*_WORDS['third_persons'], *_WORDS['backward_pointers']])})\b"
    rf"|^\s*(?:{'|'.join(_WORDS['continuations'])})\b",
    re.IGNORECASE,
)
"""Words that point back, and openings of a question that is only a continuation."""
NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'’-]+")
"""A capitalised word that does not open a sentence."""


class Turn(NamedTuple):
    """One message of a conversation, as text."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str


def standalone_question(turns: Sequence[Turn], *, max_words: int = MAX_QUESTION_WORDS) -> str:
    """The last user turn, with the turns it leans on before it.

    Args:
        turns: The conversation, oldest first; system and tool turns are passed over.
        max_words: Budget for the whole; the last turn itself is never cut.

    Returns:
        The question, empty if no user turn has text; without values from the assistant only.
    """
    spoken = [turn for turn in turns if turn.role in ("user", "assistant") and turn.text.strip()]
    last = next((i for i in reversed(range(len(spoken))) if spoken[i].role == "user"), None)
    if last is None:
        return ""
    question = " ".join(spoken[last].text.split())
    parts = [question]
    budget = max_words - len(question.split())
    if not _leans(question):
        return question
    for turn in reversed(spoken[max(0, last - MAX_TURNS_BACK) : last]):
        if budget <= 0:
            break
        begin = turn.text.lstrip()[:MAX_TURN_CHARS]
        words = (begin if turn.role == "user" else _without_values(begin)).split()
        parts.append(" ".join(words[:budget]))
        budget -= len(words)
        if turn.role == "user" and not _leans(turn.text):
            break
    return " ".join(reversed(parts))


def _without_values(text: str) -> str:
    """A turn without its values; the number of a name, as of *the Fjell 3*, is none."""
    text = plain(text)
    names = {name.end() for name in NAME.finditer(text)}
    pieces, end = [], 0
    for value in find_values(text):
        before = end + len(text[end : value.start].rstrip(" -"))
        if value.kind == "number" and before in names:
            names.add(value.end)
            continue
        pieces.append(text[end : value.start])
        end = value.end
    return "".join((*pieces, text[end:]))


def _leans(text: str) -> bool:
    """Whether a turn points back to what came before."""
    return bool(LEANS.search(text)) or (not NAME.search(text) and len(text.split()) < 5)
