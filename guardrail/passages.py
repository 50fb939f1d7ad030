"""Passages as evidence: the stretches of text nearest to a sentence, for the judge to read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from guardrail.naming import SentenceTokens
from guardrail.sentences import split_sentences
from guardrail.types import Citation, Passage
from guardrail.values import tokenise
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
    """

    number: int
    text: str
    citation: Citation


class PassageIndex:
    """Passages cut into windows of sentences, ranked by the rare words shared with a sentence.

    Args:
        passages: The evidence, in the caller's order.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._windows: list[PassageSupport] = []
        self._stems: list[frozenset[str]] = []
        for place, passage in enumerate(passages, start=1):
            name = passage.id or passage.title or f"passage {place}"
            pieces = [piece.text for piece in split_sentences(passage.text)]
            for last in range(len(pieces)):
                text = " ".join(pieces[max(0, last - WINDOW + 1) : last + 1])
                if passage.title and last < WINDOW - 1:
                    text = f"{passage.title}: {text}"
                quoted = " ".join(pieces[last].split())
                if len(quoted) > CITED_CHARS:
                    quoted = quoted[: CITED_CHARS - 1].rstrip() + "…"
                citation = Citation(entity=name, property="passage", value=quoted)
                self._windows.append(PassageSupport(len(self._windows), text, citation))
                self._stems.append(
                    frozenset(
                        token.stem for token in tokenise(text) if token.folded not in STOP_WORDS
                    )
                )
        counts = Counter(word for words in self._stems for word in words)
        total = max(1, len(self._stems))
        self._weight = {word: math.log(1 + total / count) for word, count in counts.items()}

    def nearest(self, sentence: SentenceTokens) -> list[PassageSupport]:
        """The windows that share most with a sentence, best first; none that share nothing."""
        if not self._windows:
            return []
        wanted = {token.stem for token in sentence.tokens if token.folded not in STOP_WORDS}
        scored = [
            (sum(self._weight[word] for word in wanted & words), -number)
            for number, words in enumerate(self._stems)
        ]
        best = sorted((one for one in scored if one[0] > 0), reverse=True)[:NEAREST]
        return [self._windows[-number] for _, number in best]
