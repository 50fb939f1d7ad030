"""Selection of windows of statements: an inverted index with BM25 weights over stems.

A window is chosen as one: the triples of one subject, or some neighbouring statements of a passage.
Where all of the evidence fits what a judge is given for a sentence, all of it is given; the ranking
then only says what is most important.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.cancellation import stop_if_given_up
from guardrail.core.text.words import content_stems

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement

__all__ = ["Selection", "StatementIndex"]

BUDGET = 4_000
"""Characters of windows put to the judge for one sentence, some 1,000 of its tokens."""

WINDOW_CHARS = 800
"""Characters of a window, some 200 of a judge's tokens."""

K1 = 1.2
"""BM25: how soon repeated words stop counting (Robertson and Zaragoza 2009)."""

B = 0.75
"""BM25: how much longer statements are held back."""

CONTEXT_WEIGHT = 0.3
"""Of a word of the question or of earlier sentences, beside one of the sentence."""

NEIGHBOUR = 0.4
"""Share of its score that a passage's sentence lends to the next one and the one before."""


class Selection(NamedTuple):
    """The statements for one sentence.

    Attributes:
        places: Indices of the chosen statements, window by window.
        priority: Places within ``places``, most important first.
        windows: Number of the window of each chosen statement.
    """

    places: tuple[int, ...]
    priority: tuple[int, ...]
    windows: tuple[int, ...] = ()


def windows_of(statements: Sequence[Statement]) -> list[int]:
    """Number of the window of each statement: of its subject, or of its passage, cut by size."""
    numbers: dict[tuple[object, ...], int] = {}
    sizes: dict[tuple[object, ...], int] = defaultdict(int)
    found = []
    for statement in statements:
        triple = statement.triple is not None
        whole = ("subject", statement.subject) if triple else ("passage", statement.place)
        sizes[whole] += len(statement.text) + 1
        key = (*whole, sizes[whole] // WINDOW_CHARS)
        found.append(numbers.setdefault(key, len(numbers)))
    return found


class StatementIndex:
    """Ranks the statements of one answer's evidence for its sentences.

    Args:
        statements: All of them.
    """

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.statements = tuple(statements)
        self._all = sum(len(item.text) + 1 for item in statements) <= BUDGET
        self._windows = windows_of(statements)
        self._members: dict[int, list[int]] = defaultdict(list)
        for place, window in enumerate(self._windows):
            self._members[window].append(place)
        self._postings: dict[str, list[int]] = defaultdict(list)
        for place, statement in enumerate(statements):
            stop_if_given_up()
            for stem in statement.stems:
                self._postings[stem].append(place)
        sizes = [len(item.stems) for item in statements]
        mean = sum(sizes) / len(sizes) if sizes else 1.0
        self._length = [K1 * (1 - B + B * size / max(1.0, mean)) for size in sizes]

    def select(self, sentence: str, context: str = "") -> Selection:
        """Choose what one sentence is held against: whole windows, the best ones first.

        Args:
            sentence: The sentence.
            context: The question and the sentences before.
        """
        scores = self._scores(sentence, context)
        order = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
        chosen: set[int] = set()
        room = BUDGET
        for window in dict.fromkeys(self._windows[place] for place in order):
            size = sum(len(self.statements[place].text) + 1 for place in self._members[window])
            best = max(scores[place] for place in self._members[window])
            if chosen and (size > room or (best <= 0.0 and not self._all)):
                continue
            chosen.add(window)
            room -= size
        places = [place for window in sorted(chosen) for place in self._members[window]]
        where = {place: number for number, place in enumerate(places)}
        priority = tuple(where[place] for place in order if place in where)
        return Selection(tuple(places), priority, tuple(self._windows[place] for place in places))

    def _scores(self, sentence: str, context: str) -> list[float]:
        """How much each statement has to do with a sentence, by shared words."""
        own = content_stems(sentence)
        wanted = dict.fromkeys(content_stems(context), CONTEXT_WEIGHT) | dict.fromkeys(own, 1.0)
        total = len(self.statements)
        scores = [0.0] * total
        for stem, weight in wanted.items():
            postings = self._postings.get(stem, ())
            rarity = math.log(1 + (total - len(postings) + 0.5) / (len(postings) + 0.5))
            for place in postings:
                scores[place] += weight * rarity * (K1 + 1) / (1 + self._length[place])
        return self._with_neighbours(scores)

    def _with_neighbours(self, scores: list[float]) -> list[float]:
        """A passage's sentence is read beside its neighbours: pronouns point there."""
        near = list(scores)
        for place in range(1, len(scores)):
            first, second = self.statements[place - 1], self.statements[place]
            if first.triple is None and second.triple is None and first.place == second.place:
                near[place] += NEIGHBOUR * scores[place - 1]
                near[place - 1] += NEIGHBOUR * scores[place]
        return near
