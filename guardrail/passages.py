"""Passages as evidence: the stretches of text nearest to a sentence, for the judge to read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence, Set
from typing import NamedTuple

from guardrail.naming import SentenceTokens
from guardrail.text.sentences import split_sentences
from guardrail.text.values import tokenise
from guardrail.types import Citation, Passage
from guardrail.vocabulary import STOP_WORDS

__all__ = ["PassageIndex", "PassageSupport"]

NEAREST = 2
"""Windows put to the judge for one sentence."""

WINDOW = 2
"""Neighbouring sentences of a passage read together: a pronoun's name is mostly one before."""

CITED_CHARS = 120
"""A citation of a passage quotes at most this many characters."""


class PassageSupport(NamedTuple):
    """A window of a passage that may support a sentence.

    Attributes:
        number: Its place among all windows.
        text: What the judge reads.
        citation: How it is cited: id or title, ``passage``, the words quoted.
        known: Stems of all words of its passage and of its title.
        titled: Those of its title.
    """

    number: int
    text: str
    citation: Citation
    known: frozenset[str]
    titled: frozenset[str]


class PassageIndex:
    """Passages cut into windows of sentences, ranked by the rare words shared with a sentence.

    Args:
        passages: The evidence, in the caller's order.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._windows: list[PassageSupport] = []
        self._stems: list[frozenset[str]] = []
        self._pieces: list[list[tuple[str, frozenset[str]]]] = []
        for place, passage in enumerate(passages, start=1):
            name = passage.id or passage.title or f"passage {place}"
            titled = frozenset(token.stem for token in tokenise(passage.title or ""))
            known = titled | {token.stem for token in tokenise(passage.text)}
            pieces = [(piece.text, _stems(piece.text)) for piece in split_sentences(passage.text)]
            for last, (quoted, _) in enumerate(pieces):
                inside = pieces[max(0, last - WINDOW + 1) : last + 1]
                text = " ".join(piece for piece, _ in inside)
                if passage.title and last < WINDOW - 1:
                    text = f"{passage.title}: {text}"
                citation = Citation(entity=name, property="passage", value=_quoted(quoted))
                number = len(self._windows)
                self._windows.append(PassageSupport(number, text, citation, known, titled))
                self._stems.append(_stems(text))
                self._pieces.append(inside)
        counts = Counter(word for words in self._stems for word in words)
        total = max(1, len(self._stems))
        self._weight = {word: math.log(1 + total / count) for word, count in counts.items()}

    def nearest(self, sentence: SentenceTokens) -> list[PassageSupport]:
        """The windows that share most with a sentence, best first; none that share nothing.

        Each is cited by that of its sentences which shares most.
        """
        if not self._windows:
            return []
        wanted = {token.stem for token in sentence.tokens if token.folded not in STOP_WORDS}
        scored = [(self._shared(wanted, words), -place) for place, words in enumerate(self._stems)]
        best = sorted((one for one in scored if one[0] > 0), reverse=True)[:NEAREST]
        return [self._cited(-place, wanted) for _, place in best]

    def _shared(self, wanted: Set[str], words: Set[str]) -> float:
        return sum(self._weight[word] for word in wanted & words)

    def _cited(self, place: int, wanted: Set[str]) -> PassageSupport:
        window = self._windows[place]
        text, _ = max(reversed(self._pieces[place]), key=lambda one: self._shared(wanted, one[1]))
        citation = window.citation.model_copy(update={"value": _quoted(text)})
        return window._replace(citation=citation)


def _stems(text: str) -> frozenset[str]:
    return frozenset(token.stem for token in tokenise(text) if token.folded not in STOP_WORDS)


def _quoted(text: str) -> str:
    quoted = " ".join(text.split())
    return quoted if len(quoted) <= CITED_CHARS else f"{quoted[: CITED_CHARS - 1].rstrip()}…"
