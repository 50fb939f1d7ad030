"""Counterfactual evidence: changed so that a wrong sentence becomes right, and the right one wrong.

That a change made a sentence wrong can often be seen without any evidence (``training/README.md``).
Here every sentence is right with one evidence and wrong with the other, so that only a comparison
tells (Schuster et al. 2021, VitaminC; Kaushik et al. 2020). What changes places in the evidence are
the words that differ in a wrong twin, two numbers, or two values of one property or one subject.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

from judges.window_reader import IDS, WINDOW, Claim
from training.kit import Item

__all__ = ["MOST_PAIRS", "Pieces", "counterfactuals"]

MOST_PAIRS = 6
"""Most sentences of a pair of items, each with its twin."""

ALIKE, LONGEST = 0.7, 8
"""Least overlap of a sentence and its twin; most tokens that a change replaces."""

RIGHT, CONTRADICTED, WRONG = 0b001, 0b100, 0b110
"""Labels that count as right; where a name has gone from the evidence, it may be either."""


class _Swap(NamedTuple):
    """A right sentence, its twin, and the tokens that differ."""

    claim: Claim
    twin: Claim
    mine: IDS
    other: IDS
    label: int


class Pieces:
    """Word pieces, and which of them make one word or number.

    Args:
        vocabulary: Ids of the pieces; a piece that goes on with a word starts with ``##``.
    """

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        marks = (",", ":", "<s>", "</s>")
        self.comma, self.colon, self.start, self.end = (vocabulary.get(one, -1) for one in marks)
        self._inner = {number for piece, number in vocabulary.items() if piece.startswith("##")}
        digits = {n: piece.removeprefix("##") for piece, n in vocabulary.items()}
        self._digits = {n: len(piece) for n, piece in digits.items() if piece[:1].isdigit()}
        self._marks = {number for piece, number in vocabulary.items() if piece in {*",.:/-"}}

    def joined(self, ids: Sequence[int], at: int) -> bool:
        """Whether a token goes on with the word or number before it: *##ing*, the *.* of *9.5*."""
        if not 0 < at < len(ids):
            return False
        figure = ids[at - 1] in self._digits
        if ids[at] in self._marks:
            return figure and at + 1 < len(ids) and ids[at + 1] in self._digits
        after = at > 1 and ids[at - 1] in self._marks and ids[at - 2] in self._digits
        return ids[at] in self._inner or (ids[at] in self._digits and after)

    def places(self, ids: Sequence[int], run: IDS) -> list[int]:
        """Where a run of whole words stands."""
        size = len(run)
        return [
            at
            for at in range(len(ids) - size + 1)
            if tuple(ids[at : at + size]) == run
            and not self.joined(ids, at)
            and not self.joined(ids, at + size)
        ]

    def exchanged(self, ids: IDS, changes: Mapping[IDS, IDS]) -> IDS:
        """Tokens with some runs of words replaced by others, all at once."""
        found = [(at, -len(run), run) for run in changes for at in self.places(ids, run)]
        out: list[int] = []
        last = 0
        for at, _, run in sorted(found):
            if at >= last:
                out += (*ids[last:at], *changes[run])
                last = at + len(run)
        return (*out, *ids[last:])

    def numbers(self, ids: Sequence[int]) -> list[IDS]:
        """The numbers of a text, and dates and times of day in figures."""
        found = []
        for at in range(len(ids)):
            if ids[at] in self._digits and not self.joined(ids, at):
                end = at + 1
                while self.joined(ids, end):
                    end += 1
                run = tuple(ids[at:end])
                if self._digits.keys() | self._marks >= {*run}:
                    found.append(run)
        return found

    def like(self, one: IDS, other: IDS) -> bool:
        """Whether two numbers have the same marks and as many digits, give or take one."""
        sizes = [sum(self._digits.get(piece, 0) for piece in run) for run in (one, other)]
        marks = [[piece for piece in run if piece in self._marks] for run in (one, other)]
        return abs(sizes[0] - sizes[1]) <= 1 and marks[0] == marks[1]


def counterfactuals(
    items: Iterable[Item], pieces: Pieces, *, seed: int
) -> Iterator[tuple[Item, Item]]:
    """An item and its counterfactual, with the same sentences, of all that have one.

    Args:
        items: Items of statements, whose labels are known.
        pieces: The word pieces.
        seed: Seed of all choices.
    """
    chooser = random.Random(f"{seed}/counterfactual")
    for item in items:
        numbers = {run for window in item.windows for run in pieces.numbers(window)}
        alike = {run: {one for one in numbers if pieces.like(run, one)} for run in numbers}
        values = _values(item, pieces) if item.triples else ()
        for swaps in (
            _of_twins(item, pieces),
            *(_exchanged(item, others, pieces, chooser) for others in (alike, *values)),
        ):
            if pair := _pair(item, swaps, pieces, chooser):
                yield pair


def _pair(
    item: Item, swaps: Iterable[_Swap], pieces: Pieces, chooser: random.Random
) -> tuple[Item, Item] | None:
    """An item and the one with all swaps made that do not touch each other."""
    changes: dict[IDS, IDS] = {}
    kept: list[_Swap] = []
    for swap in chooser.sample(found := list(swaps), len(found)):
        if len(kept) == MOST_PAIRS:
            break
        both = {swap.mine: swap.other, swap.other: swap.mine}
        if _holds(swap, changes, pieces) or any(_holds(one, both, pieces) for one in kept):
            continue
        made = [pieces.exchanged(window, changes | both) for window in item.windows]
        if max(map(len, made)) <= WINDOW:
            changes |= both
            kept.append(swap)
    if not kept:
        return None
    claims = tuple(claim for swap in kept for claim in (swap.claim, swap.twin))
    windows = tuple(pieces.exchanged(window, changes) for window in item.windows)
    before = tuple(label for swap in kept for label in (RIGHT, swap.label))
    after = tuple(label for swap in kept for label in (swap.label, RIGHT))
    return item._replace(claims=claims, labels=before), Item(windows, claims, after, item.triples)


def _holds(swap: _Swap, runs: Iterable[IDS], pieces: Pieces) -> bool:
    """Whether a sentence or its twin has any of some runs of words."""
    texts = (swap.claim.ids, swap.twin.ids)
    return any(pieces.places(ids, run) for ids in texts for run in runs)


def _of_twins(item: Item, pieces: Pieces) -> Iterator[_Swap]:
    """Right sentences of an item, each with a wrong one that differs by words of the evidence."""
    texts = [claim.ids[claim.start : claim.start + claim.length] for claim in item.claims]
    bags = list(map(Counter, texts))
    right = [number for number, label in enumerate(item.labels) if label == RIGHT]
    for number, label in enumerate(item.labels):
        if label not in (CONTRADICTED, WRONG) or not right:
            continue
        nearest = max(right, key=lambda one: _overlap(bags[one], bags[number]))
        mine, other = texts[nearest], texts[number]
        if _overlap(bags[nearest], bags[number]) <= ALIKE or mine == other:
            continue
        matcher = SequenceMatcher(None, mine, other, autojunk=False)
        codes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
        (_, a, _, c, _), (_, _, b, _, d) = codes[0], codes[-1]
        while pieces.joined(mine, a) or pieces.joined(other, c):
            a, c = a - 1, c - 1
        while pieces.joined(mine, b) or pieces.joined(other, d):
            b, d = b + 1, d + 1
        old, new = mine[a:b], other[c:d]
        ids = item.claims[nearest].ids
        once = len(pieces.places(ids, old)) == 1 and not pieces.places(ids, new)
        whole = mine[:a] + new + mine[b:] == other and 0 < len(new) <= LONGEST >= len(old)
        if whole and once and any(pieces.places(window, old) for window in item.windows):
            wrong = CONTRADICTED if pieces.numbers(old) == [old] else WRONG
            yield _Swap(item.claims[nearest], item.claims[number], old, new, wrong)


def _overlap(one: Counter[int], other: Counter[int]) -> float:
    return 2 * (one & other).total() / max(1, one.total() + other.total())


def _values(item: Item, pieces: Pieces) -> Iterator[dict[IDS, set[IDS]]]:
    """The values of triples, each with others of the same property, then of the same subject.

    Where two values of one subject have changed places, the property alone tells which is meant.
    """
    by_property: dict[IDS, set[IDS]] = defaultdict(set)
    by_subject: dict[IDS, set[IDS]] = defaultdict(set)
    for window in item.windows:
        for _, statement in groupby(window, key=pieces.end.__ne__):
            ids = tuple(piece for piece in statement if piece != pieces.start)
            colon = ids.index(pieces.colon) if pieces.colon in ids else 0
            if pieces.comma in ids[:colon]:
                comma = colon - ids[:colon][::-1].index(pieces.comma)
                if 0 < len(value := ids[colon + 1 : -1]) <= LONGEST:
                    by_property[ids[comma:colon]].add(value)
                    by_subject[ids[:comma]].add(value)
    for groups in (by_property, by_subject):
        found: dict[IDS, set[IDS]] = defaultdict(set)
        for values in groups.values():
            for run in values:
                found[run] |= values - {run}
        yield found


def _exchanged(
    item: Item, others: Mapping[IDS, Collection[IDS]], pieces: Pieces, chooser: random.Random
) -> Iterator[_Swap]:
    """Right sentences with words of the evidence, each with other ones of it in their place."""
    for claim, label in zip(item.claims, item.labels, strict=True):
        end = claim.start + claim.length
        text = claim.ids[claim.start : end]
        own = [run for run in sorted(others) if label == RIGHT and pieces.places(text, run)]
        for run in chooser.sample(own, len(own)):
            left = [one for one in sorted(others[run]) if not pieces.places(claim.ids, one)]
            if left and len(pieces.places(claim.ids, run)) == 1:
                other = chooser.choice(left)
                body = pieces.exchanged(text, {run: other})
                ids = (*claim.ids[: claim.start], *body, *claim.ids[end:])
                yield _Swap(claim, Claim(ids, claim.start, len(body)), run, other, WRONG)
                break
