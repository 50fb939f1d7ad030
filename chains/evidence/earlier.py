"""Evidence of earlier answers of a conversation, for the turns that refer to them.

An answer itself never becomes evidence, only what supported its sentences: an error that was marked
once is marked again when the model repeats it.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from chains.conversation import Turn
from chains.options import MarkerStyle
from chains.rendering import Notes, render, render_sentences
from guardrail import GuardedAnswer
from guardrail.core.types import Category, Evidence, Passage
from guardrail.markers.grammar import parse


class EarlierAnswers:
    """A bounded, thread-safe memory of the evidence of the last returned answers.

    Each process has its own: another worker judges the next turn without it.
    """

    def __init__(self, most: int = 1_000) -> None:
        self._most = most
        self._evidence: OrderedDict[bytes, tuple[Evidence, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, keys: Iterable[bytes], evidence: Sequence[Evidence]) -> None:
        """Store evidence under each of an answer's keys.

        If answers of two conversations share a key, only their common evidence stays: no caller
        may add evidence to another's conversation by getting the same answer.
        """
        left, held = 20_000, []  # characters of evidence of one answer
        for item in evidence:
            left -= len(item.model_dump_json())
            if left >= 0:
                held.append(item)
        with self._lock:
            for key in keys:
                known = self._evidence.get(key)
                both = held if known is None else [item for item in held if item in known]
                self._evidence[key] = tuple(both)
                self._evidence.move_to_end(key)
            while len(self._evidence) > self._most:
                self._evidence.popitem(last=False)

    def of(self, keys: Iterable[bytes]) -> tuple[Evidence, ...]:
        """The evidence under any of the keys, in their order, without duplicates."""
        found: dict[Evidence, None] = {}
        with self._lock:
            for key in keys:
                if key in self._evidence:
                    self._evidence.move_to_end(key)
                    found |= dict.fromkeys(self._evidence[key])
        return tuple(found)


def grounds_of(answer: GuardedAnswer) -> tuple[Evidence, ...]:
    """The evidence of an answer's supported sentences, unless graph or files give it again."""
    if answer.evidence_from == ("files",):
        return ()
    supported = [
        item
        for item in answer.sentences
        if item.category is Category.SUPPORTIVE and not item.na and item.citations
    ]
    rendered = render_sentences(answer, supported, MarkerStyle.NONE, Notes())
    cited = dict.fromkeys(item.evidence for item in rendered.citations if item.evidence)
    again = answer.evidence_from == ("graph",)
    return tuple(item for item in cited if isinstance(item, Passage) or not again)


def keys_of_answer(
    owner: str, turns: Sequence[Turn], answer: GuardedAnswer, style: MarkerStyle
) -> set[bytes]:
    """Keys of an answer to the turns before it: with its markers, and without."""
    asked = next((turn.text for turn in reversed(turns) if turn.role == "user"), "")
    return {key_of(owner, asked, text) for text in (render(answer, style).text, answer.text)}


def keys_of_turns(owner: str, turns: Sequence[Turn], most: int) -> Iterator[bytes]:
    """Keys of the last answers among the turns, the latest first."""
    answers = [place for place, turn in enumerate(turns) if turn.role == "assistant"]
    for place in answers[::-1][:most]:
        before = (turn.text for turn in reversed(turns[:place]) if turn.role == "user")
        asked, text = next(before, ""), turns[place].text
        yield key_of(owner, asked, text)
        yield key_of(owner, asked, parse(text).clean)


def key_of(*parts: str) -> bytes:
    """Key of an answer: the owner of its request with its id, or with question and text."""
    folded = [" ".join(part.split()) for part in parts]
    return hashlib.blake2b(json.dumps(folded).encode(), digest_size=16).digest()
