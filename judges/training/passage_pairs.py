"""Attribution rows over passages: the sentence that matters stands among others like it.

They teach the attribution head prose as people cite it: evidence of many sentences that share
names and words with a claim of which they may say everything, a part, the contrary or nothing.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from guardrail.errors import InputError
from judges.heads import HEADS
from judges.training.rows import NO_LABEL, Row

__all__ = ["Asked", "passage_rows"]

_ENTAILMENT, _NEUTRAL, _CONTRADICTION = range(len(HEADS["nli"]))
_SUPPORTIVE, _PARTIAL, _CONTRADICTORY, _IRRELEVANT = range(len(HEADS["attribution"]))

Asked = Sequence[str]
"""Questions of any subject, put before some claims: what matters is the claim."""

QUESTION_SHARE = 0.45
LONGEST_WORDS = 600
"""Words of a passage at most; shorter ones are as frequent at every scale."""
SHORTEST_WORDS = 15
NEAR_SHARE = 0.6
"""Share of a passage's other sentences that have a rare word in common with the claim."""
RARE = 40
"""A word in more premises than this names nothing in particular."""
TOO_ALIKE = 0.4
"""Share of common words above which another premise may tell the same as the claim's own."""
PAIRED_SHARE = 0.75
"""Share of rows that join two claims, so that two claims do not mean partial support, which
always has two."""
CUT_SHARE = 0.2
"""Share of rows whose claim is a sentence as written, set against itself with a part cut out."""

_TRIES = 200
_MISSES = 500
_WORD = re.compile(r"\w+")
_CLAUSE = re.compile(
    r",\s+(?!and\b|or\b)(?=\D)|,?\s+(?:and|but|while|who|which|where|after|when)\s+"
)
_OPENERS = frozenset(
    {
        "the", "a", "an", "it", "he", "she", "they", "there", "this", "that", "these", "those",
        "his", "her", "its", "their", "in", "on", "at", "by", "after", "before", "during", "some",
        "many", "most", "all", "both", "one", "two", "three", "several", "no",
    }
)  # fmt: skip
"""Words that lose their capital when their sentence becomes a clause."""


def passage_rows(
    rows: Sequence[Row], *, count: int, seed: int, source: str = "passages", asked: Asked = ()
) -> list[Row]:
    """Make rows of passages and claims of known category, each category alike often.

    Args:
        rows: NLI rows of prose evidence and short claims.
        count: Number of rows to make.
        seed: Seed of all choices.
        source: Name of the rows.
        asked: Questions to put before some of the claims.

    Raises:
        InputError: The rows lack a label, or their premises are too alike.
    """
    if not {_ENTAILMENT, _CONTRADICTION} <= {row.nli for row in rows}:
        raise InputError("too few rows: passages need entailed and contradicted claims")
    maker = _Maker(rows, random.Random(f"{seed}/passages"))
    made: list[Row] = []
    misses = 0
    while len(made) < count:
        drawn = maker.draw(len(made) % len(HEADS["attribution"]))
        if drawn is None:
            misses += 1
            if misses > _MISSES:
                raise InputError("too few rows: nearly all premises tell the same")
            continue
        misses = 0
        claim, passage, category = drawn
        if asked and maker.rng.random() < QUESTION_SHARE:
            claim = f"{maker.rng.choice(asked)} {claim}"
        made.append(Row(passage, claim, source, NO_LABEL, (category,)))
    return made


class _Case(NamedTuple):
    """A claim, the passage it is judged by and its category."""

    claim: str
    passage: str
    category: int


class _Maker:
    """Draws claims and the sentences around them.

    Args:
        rows: NLI rows of prose.
        rng: Source of all choices.
    """

    def __init__(self, rows: Sequence[Row], rng: random.Random) -> None:
        self.rng = rng
        self._rows = [[row for row in rows if row.nli == label] for label in range(3)]
        self._some = [found for found in self._rows if found]
        self._premises = list(dict.fromkeys(row.premise for row in rows))
        self._words = {premise: _words(premise) for premise in self._premises}
        self._holding: dict[str, list[str]] = {}
        for premise, words in self._words.items():
            for word in words:
                self._holding.setdefault(word, []).append(premise)
        self._same: dict[str, list[Row]] = {}
        self._of: dict[str, list[str]] = {}
        for row in rows:
            if row.premise not in self._same:
                self._of.setdefault(row.source, []).append(row.premise)
            self._same.setdefault(row.premise, []).append(row)
        self._long = [p for p in self._premises if len(list(_cuts(p))) > 0]

    def draw(self, category: int) -> _Case | None:
        """A case of a category; None where the draw does not make one."""
        if self._long and self.rng.random() < CUT_SHARE:
            return self._cut(category)
        return self._told(category)

    def _told(self, category: int) -> _Case | None:
        """Claims that people or programs wrote for a premise, one or two of them."""
        rng = self.rng
        two = category == _PARTIAL or rng.random() < PAIRED_SHARE
        if category == _IRRELEVANT:
            claims = [rng.choice(rng.choice(self._some)) for _ in range(1 + two)]
            if two and rng.random() < 0.5 and (same := self._sibling(claims[0], None)):
                claims[1] = same
            return self._case(claims, [], category)
        main = rng.choice(self._rows[_CONTRADICTION if category == _CONTRADICTORY else _ENTAILMENT])
        if not two:
            return self._case([main], [main.premise], category)
        if category == _PARTIAL:
            other = self._sibling(main, _NEUTRAL) if rng.random() < 0.5 else None
            other = other or self._elsewhere(main)
            return other and self._case([main, other], [main.premise], category)
        other = self._sibling(main, _ENTAILMENT) if rng.random() < 0.4 else None
        if other is not None:
            return self._case([main, other], [main.premise], category)
        other = self._elsewhere(main, _ENTAILMENT)
        if other is None:
            return None
        held = [main.premise, other.premise]
        if category == _CONTRADICTORY and rng.random() < 0.3:
            held = [main.premise]
        return self._case([main, other], held, category)

    def _cut(self, category: int) -> _Case | None:
        """A sentence as written against itself, or a part of it against the whole."""
        rng = self.rng
        whole = rng.choice(self._long)
        part = rng.choice(list(_cuts(whole)))
        if category == _SUPPORTIVE:
            return self._around([rng.choice((whole, part))], [whole], category, own=[whole])
        if category == _PARTIAL:
            return self._around([whole], [part], category, own=[whole])
        if category == _IRRELEVANT:
            return self._around([rng.choice((whole, part))], [], category, own=[whole])
        return None

    def _sibling(self, row: Row, label: int | None) -> Row | None:
        """Another claim on the same premise, of a label where one is given."""
        found = [
            other
            for other in self._same[row.premise]
            if other.hypothesis != row.hypothesis and label in (None, other.nli)
        ]
        return self.rng.choice(found) if found else None

    def _elsewhere(self, row: Row, label: int = _ENTAILMENT) -> Row | None:
        """A claim on another premise, which shares a rare word where there is such a one."""
        near = self._near(row.hypothesis)
        if near not in (None, row.premise) and self.rng.random() < 0.6:
            found = [other for other in self._same[near or ""] if other.nli == label]
            if found:
                return self.rng.choice(found)
        other = self.rng.choice(self._rows[label])
        return None if other.premise == row.premise else other

    def _case(self, claims: Sequence[Row], held: Sequence[str], category: int) -> _Case | None:
        texts = [row.hypothesis for row in claims]
        self.rng.shuffle(texts)
        return self._around(texts, held, category, own=[row.premise for row in claims])

    def _around(
        self, claims: Sequence[str], held: Sequence[str], category: int, *, own: Sequence[str]
    ) -> _Case | None:
        """Put what the passage must hold among other sentences."""
        rng = self.rng
        claim = _joined(claims, rng)
        wanted = round(math.exp(rng.uniform(math.log(SHORTEST_WORDS), math.log(LONGEST_WORDS))))
        sentences = list(held)
        size = sum(len(text.split()) for text in sentences)
        fellows = self._of[self._same[own[0]][0].source]
        for _ in range(_TRIES):
            if sentences and size >= wanted:
                break
            other = self._near(claim) if rng.random() < NEAR_SHARE else rng.choice(fellows)
            if other is None or other in sentences or self._tells_too(other, claims, own):
                continue
            size += len(other.split())
            if sentences and size > LONGEST_WORDS:
                break
            sentences.append(other)
        if not sentences:
            return None
        rng.shuffle(sentences)
        return _Case(claim, " ".join(sentences), category)

    def _near(self, claim: str) -> str | None:
        """A premise that has a rare word of the claim."""
        words = [w for w in _words(claim) if 1 < len(self._holding.get(w, ())) <= RARE]
        return self.rng.choice(self._holding[self.rng.choice(sorted(words))]) if words else None

    def _tells_too(self, other: str, claims: Sequence[str], own: Sequence[str]) -> bool:
        """Whether a premise may tell what the claims' own ones tell: by its words or its claims."""
        if other in own or any(_alike(self._words[other], self._words[p]) > TOO_ALIKE for p in own):
            return True
        return any(
            _alike(_words(row.hypothesis), _words(claim)) > TOO_ALIKE
            for row in self._same[other]
            for claim in claims
        )


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    """Share of the shorter text's words that both have."""
    return len(one & other) / max(1, min(len(one), len(other)))


def _cuts(sentence: str) -> Iterator[str]:
    """The sentence without its last clause, where both parts are long enough to say something."""
    if sentence.count(". ") > 1 or not sentence.endswith("."):
        return
    for match in _CLAUSE.finditer(sentence):
        kept, gone = sentence[: match.start()], sentence[match.end() :]
        if len(kept.split()) >= 6 and len(gone.split()) >= 4:
            yield f"{kept}."


def _joined(claims: Sequence[str], rng: random.Random) -> str:
    """Claims as sentences in a row or, now and then, as one sentence."""
    texts = [
        claim.strip() if claim.strip()[-1:] in ".!?" else f"{claim.strip()}." for claim in claims
    ]
    if len(texts) == 1 or rng.random() < 0.45:
        return " ".join(texts)
    first, second = texts[0].rstrip("."), texts[1]
    head, _, rest = second.partition(" ")
    if head.casefold() in _OPENERS:
        second = f"{head.casefold()} {rest}"
    return f"{first}{rng.choice((', and ', ' and ', ', while ', '; '))}{second}"
