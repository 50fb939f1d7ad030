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
from functools import cache
from typing import Literal, NamedTuple

from guardrail.core.text.lexicon import lexicon
from guardrail.core.text.values import find_values
from guardrail.core.text.words import plain

NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'’-]+")
"""A capitalised word that does not open a sentence."""


class Turn(NamedTuple):
    """One message of a conversation, as text; all but users and assistants are ``system``."""

    role: Literal["system", "user", "assistant"]
    text: str


def standalone_question(turns: Sequence[Turn], *, max_words: int = 160) -> str:
    """The last user turn, with the turns it leans on before it; empty if no user turn has text.

    Turns are oldest first. Later ones come first into ``max_words``; the last itself is never cut.
    """
    messages = [turn for turn in turns if turn.role in ("user", "assistant") and turn.text.strip()]
    last = next((i for i in reversed(range(len(messages))) if messages[i].role == "user"), None)
    if last is None:
        return ""
    question = " ".join(messages[last].text.split())
    parts = [question]
    budget = max_words - len(question.split())
    if not _leans(question):
        return question
    for turn in reversed(messages[max(0, last - 6) : last]):
        if budget <= 0:
            break
        begin = turn.text.lstrip()[:4_000]  # the beginning names what a turn is about
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
    """Whether a turn points back to what came before, or only continues it."""
    return bool(_leaning().search(text)) or (not NAME.search(text) and len(text.split()) < 5)


@cache
def _leaning() -> re.Pattern[str]:
    """Words that point back, and openings of a question that is only a continuation."""
    words = lexicon("function_words")
    return re.compile(
        rf"\b(?:{'|'.join([*words['third_persons'], *words['backward_pointers']])})\b"
        rf"|^\s*(?:{'|'.join(words['continuations'])})\b",
        re.IGNORECASE,
    )
