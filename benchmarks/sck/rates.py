"""SCK's sensitivity: does the score fall when an answer is spoilt in one known way?

The knowledge text is the answer, and the same text the evidence, so that the original is right by
construction. The spoilt answers are made by rules that no model of the scorer took part in, but
for the names, which the tagger finds.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from benchmarks.kept import kept_lines
from benchmarks.telling import teller
from guardrail.core.text.sentences import split_sentences
from guardrail.core.types import Mention, Passage, Value
from judges.sck import Intent, SCKInput, SCKReport, SCKScorer
from judges.sck.language import read
from judges.sck.structure import Format

__all__ = ["Measured", "Pair", "Rate", "Spoilt", "rates", "sensitivity", "spoil"]

SEED = 0

BLOCK = 8
"""Rows that are scored together, and lost at most when a run stops."""

MARKERS = ("- ", "3. ", "1. ", "2. ", "* ")


class Pair(NamedTuple):
    """A question and its knowledge text."""

    question: str
    text: str


class Spoilt(NamedTuple):
    """A pair and what was made of its text.

    Attributes:
        pair: The pair.
        swapped: Other names of the same type for all names; None where the text has none.
        other: The answer of another question.
        mangled: The same sentences shuffled, under list markers that do not belong.
    """

    pair: Pair
    swapped: str | None
    other: str
    mangled: str

    @property
    def key(self) -> str:
        """Tells these texts from all others."""
        return sha256(repr(tuple(self)).encode("utf-8", "replace")).hexdigest()


class Levels(Value):
    """Scores of one text; None where there is none."""

    sck: float | None
    structure: float | None
    content: float | None
    knowledge: float | None
    kg_attr: float | None


class Measured(Value):
    """What one row scored.

    Attributes:
        key: Of the texts it was measured on.
        intent: Intent of the question.
        original: Scores of the text as it was.
        swapped: Scores with its names swapped; None where it names nothing.
        other: Scores of another question's answer.
        mangled: Scores with its layout shuffled; None where a factoid or nothing was asked.
        broken: Whether the shuffled layout was read as a broken one.
    """

    key: str
    intent: Intent
    original: Levels
    swapped: Levels | None = None
    other: Levels
    mangled: Levels | None = None
    broken: bool = False


class Rate(NamedTuple):
    """The share of spoilt answers that score lower.

    Attributes:
        name: What was spoilt.
        lower: How many score lower.
        total: How many were spoilt.
        target: The share wanted.
    """

    name: str
    lower: int
    total: int
    target: float


def sensitivity(pairs: Sequence[Pair], scorer: SCKScorer, keep: Path | None = None) -> list[Rate]:
    """The three rates, and what lies behind them.

    Args:
        pairs: Questions with right answers.
        scorer: Scores them.
        keep: File that every row is added to when measured; rows that it holds already are not
            measured again.
    """
    rows = spoil(pairs)
    done = _kept(keep)
    left = [row for row in rows if row.key not in done]
    tell = teller("rows")
    for start in range(0, len(left), BLOCK):
        measured = _measure(scorer, left[start : start + BLOCK])
        done |= {item.key: item for item in measured}
        if keep is not None:
            with keep.open("a", encoding="utf-8") as lines:
                lines.writelines(item.model_dump_json() + "\n" for item in measured)
        tell(min(start + BLOCK, len(left)), len(left))
    return rates([done[row.key] for row in rows])


def spoil(pairs: Sequence[Pair]) -> list[Spoilt]:
    """Spoil n texts in three ways; the same for the same pairs in the same order."""
    rng = random.Random(SEED)
    names = [reading.names for reading in read([pair.text for pair in pairs])]
    pool = names_by_type(names)
    swapped = [swap(pair.text, own, pool, rng) for pair, own in zip(pairs, names, strict=True)]
    other = [
        pairs[(row + 1 + rng.randrange(len(pairs) - 1)) % len(pairs)].text
        for row in range(len(pairs))
    ]
    mangled = [shuffle_layout(pair.text, rng) for pair in pairs]
    return [Spoilt(*row) for row in zip(pairs, swapped, other, mangled, strict=True)]


def rates(measured: Sequence[Measured]) -> list[Rate]:
    """The rates over n measured rows."""
    swaps = [(item.original, item.swapped) for item in measured if item.swapped is not None]
    others = [(item.original, item.other) for item in measured]
    layouts = [(item.original, item.mangled) for item in measured if item.mangled is not None]
    return [
        _rate(
            "names swapped: K or C lower", swaps, lambda item: (item.knowledge, item.content), 0.95
        ),
        _rate("names swapped: K lower", swaps, lambda item: (item.knowledge,), 0.95),
        _rate("names swapped: KG-Attr lower", swaps, lambda item: (item.kg_attr,), 0.95),
        _rate("another question's answer: SCK lower", others, lambda item: (item.sck,), 0.97),
        _rate(
            "layout shuffled, non-factoid: S lower", layouts, lambda item: (item.structure,), 0.90
        ),
        Rate(
            "  of these read as a broken layout",
            sum(item.broken for item in measured),
            len(layouts),
            0.90,
        ),
    ]


def _rate(
    name: str,
    twins: Sequence[tuple[Levels, Levels]],
    levels: Callable[[Levels], tuple[float | None, ...]],
    target: float,
) -> Rate:
    """How many of the twins have one of these scores lower than the original."""
    lower = sum(any(map(_lower, levels(item), levels(two))) for item, two in twins)
    return Rate(name, lower, len(twins), target)


def _lower(before: float | None, after: float | None) -> bool:
    """Whether a score fell; a score that was there and is lost has not fallen."""
    return before is not None and after is not None and after < before


def _measure(scorer: SCKScorer, rows: Sequence[Spoilt]) -> list[Measured]:
    originals = scorer.score([_input(row.pair, row.pair.text) for row in rows])
    others = scorer.score([_input(row.pair, row.other) for row in rows])
    swapped = _scored(scorer, rows, [row.swapped for row in rows])
    asked = [
        original.structure.intent not in (Intent.FACTOID, Intent.NONE) for original in originals
    ]
    mangled = _scored(
        scorer, rows, [row.mangled if ask else None for row, ask in zip(rows, asked, strict=True)]
    )
    return [
        Measured(
            key=row.key,
            intent=originals[place].structure.intent,
            original=_levels(originals[place]),
            swapped=_levels(swapped[place]) if place in swapped else None,
            other=_levels(others[place]),
            mangled=_levels(mangled[place]) if place in mangled else None,
            broken=place in mangled and _is_broken(mangled[place]),
        )
        for place, row in enumerate(rows)
    ]


def _scored(
    scorer: SCKScorer, rows: Sequence[Spoilt], texts: Sequence[str | None]
) -> dict[int, SCKReport]:
    """Reports by row of the texts that there are."""
    found = {place: text for place, text in enumerate(texts) if text is not None}
    batch = [_input(rows[place].pair, text) for place, text in found.items()]
    return dict(zip(found, scorer.score(batch), strict=True))


def _levels(report: SCKReport) -> Levels:
    return Levels(
        sck=report.score.value,
        structure=report.structure.score.value,
        content=report.content.score.value,
        knowledge=report.knowledge.score.value,
        kg_attr=report.knowledge.kg_attr_mean.value,
    )


def _is_broken(report: SCKReport) -> bool:
    layout = next(feature for feature in report.structure.features if feature.name == "format")
    return layout.found.startswith(Format.BROKEN)


def _input(pair: Pair, answer: str) -> SCKInput:
    return SCKInput(question=pair.question, answer=answer, evidence=(Passage(text=pair.text),))


def _kept(keep: Path | None) -> dict[str, Measured]:
    if keep is None or not keep.exists():
        return {}
    rows: Iterable[Measured] = map(Measured.model_validate_json, kept_lines(keep))
    return {row.key: row for row in rows}


def names_by_type(names: Sequence[Sequence[Mention]]) -> Mapping[str, list[str]]:
    """All different names of the texts by the tagger's type."""
    pool: dict[str, dict[str, None]] = defaultdict(dict)
    for own in names:
        for mention in own:
            pool[mention.ner or ""][mention.text] = None
    return {kind: list(texts) for kind, texts in pool.items()}


def swap(
    text: str, names: Sequence[Mention], pool: Mapping[str, list[str]], rng: random.Random
) -> str | None:
    """Put another name of the same type for every name; None where the text has none."""
    if not names:
        return None
    folded = text.casefold()
    foreign = {
        kind: [item for item in pool[kind] if item.casefold() not in folded]
        for kind in {mention.ner or "" for mention in names}
    }
    chosen: dict[str, str] = {}
    for mention in names:
        if mention.text not in chosen:
            others = foreign[mention.ner or ""]
            chosen[mention.text] = rng.choice(others) if others else mention.text
    for mention in sorted(names, key=lambda item: -item.start):
        text = text[: mention.start] + chosen[mention.text] + text[mention.end :]
    return text


def shuffle_layout(text: str, rng: random.Random) -> str:
    """The same sentences in another order, on lines with list markers that do not belong."""
    pieces = [piece.text for piece in split_sentences(text)]
    while len(pieces) < 3:
        longest = max(pieces, key=len)
        words = longest.split()
        half = max(1, len(words) // 2)
        place = pieces.index(longest)
        pieces[place : place + 1] = [" ".join(words[:half]), " ".join(words[half:])]
        if len(words) < 2:
            break
    rng.shuffle(pieces)
    return "\n".join(
        MARKERS[row % len(MARKERS)] + re.sub(r"^\W+", "", piece) for row, piece in enumerate(pieces)
    )
