"""Evidence of earlier answers of a conversation, kept for the turns that refer to them.

The answer itself never becomes evidence: only what carried its supported sentences does, so that
a mistake that was marked once is marked again when the model repeats it.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from chains.conversation import Turn
from chains.rendering import Notes, render, render_sentences
from chains.styles import MarkerStyle
from guardrail import GuardedAnswer
from guardrail.core.types import Category, Evidence, Passage
from guardrail.markers.grammar import parse

__all__ = ["EarlierAnswers", "grounds_of", "keys_of_answer", "keys_of_turns", "reply_key"]

MOST_ANSWERS: Final = 1_000
"""Answers that are remembered, those used last."""

MOST_CHARS: Final = 20_000
"""Characters of evidence that are remembered of one answer."""

GRAPH_ALONE: Final = ("graph",)
"""Where the evidence came from, of an answer whose facts the graph gives again."""
FILES_ALONE: Final = ("files",)
"""The same of one whose evidence is all there for the next answer, too."""


class EarlierAnswers:
    """A bounded memory from answers that left to their evidence; for many threads at once.

    It lives as long as the process: another worker, or a restarted one, knows nothing of
    what was answered here, and judges the next turn without it.
    """

    def __init__(self, most: int = MOST_ANSWERS) -> None:
        self._most = most
        self._kept: OrderedDict[bytes, tuple[Evidence, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, keys: Iterable[bytes], evidence: Sequence[Evidence]) -> None:
        """Remember evidence under each of an answer's keys.

        If the answers of two conversations share a key, only their common evidence is kept: no
        caller may add evidence to another's conversation by having the same said in their own.
        """
        left, kept = MOST_CHARS, []
        for item in evidence:
            left -= len(item.model_dump_json())
            if left >= 0:
                kept.append(item)
        with self._lock:
            for key in keys:
                known = self._kept.get(key)
                both = kept if known is None else [item for item in kept if item in known]
                self._kept[key] = tuple(both)
                self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def of(self, keys: Iterable[bytes]) -> tuple[Evidence, ...]:
        """The evidence under any of some keys, in their order, without repeats."""
        found: dict[Evidence, None] = {}
        with self._lock:
            for key in keys:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    found |= dict.fromkeys(self._kept[key])
        return tuple(found)


def grounds_of(answer: GuardedAnswer) -> tuple[Evidence, ...]:
    """What carries the supported sentences of an answer; what the graph gives again is left out."""
    supported = [
        item
        for item in answer.sentences
        if item.category is Category.SUPPORTIVE and not item.na and item.citations
    ]
    rendition = render_sentences(answer.text, supported, answer, MarkerStyle.NONE, notes=Notes())
    cited = dict.fromkeys(item.evidence for item in rendition.citations if item.evidence)
    if answer.evidence_from == FILES_ALONE:
        return ()
    again = answer.evidence_from == GRAPH_ALONE
    return tuple(item for item in cited if isinstance(item, Passage) or not again)


def keys_of_answer(
    owner: str, turns: Sequence[Turn], answer: GuardedAnswer, style: MarkerStyle
) -> set[bytes]:
    """Keys of an answer to the turns before it: as it left, and as clients clean it."""
    asked = next((turn.text for turn in reversed(turns) if turn.role == "user"), "")
    return {_key(owner, asked, text) for text in (render(answer, style).text, answer.text)}


def keys_of_turns(owner: str, turns: Sequence[Turn], most: int) -> Iterator[bytes]:
    """Keys that the last answers among some turns may have, the latest first."""
    answers = [place for place, turn in enumerate(turns) if turn.role == "assistant"]
    for place in answers[::-1][:most]:
        before = (turn.text for turn in reversed(turns[:place]) if turn.role == "user")
        asked, text = next(before, ""), turns[place].text
        yield _key(owner, asked, text)
        yield _key(owner, asked, parse(text).clean)


def reply_key(owner: str, id: str) -> bytes:
    """Key of a reply that a server knows by its id, as the responses API does."""
    return _key(owner, id)


def _key(*parts: str) -> bytes:
    folded = [" ".join(part.split()) for part in parts]
    return hashlib.blake2b(json.dumps(folded).encode(), digest_size=16).digest()
