"""Supported sentences, each with twins that one change makes wrong.

A judge that reads a sentence and its twin over one evidence learns what the words between them
mean: a number, a weekday, a name, a bound, a denial, a condition left out. The swaps of words
lie in ``one_change.tsv``.
"""

from __future__ import annotations

import calendar
import random
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from guardrail.core.types import Verdict
from training.close_wording import rewritten, triple_facts
from training.forms import near_miss, same_value
from training.statements import Statement

__all__ = ["KIND", "one_change"]

KIND = "one change"
"""Kind of the twins."""

TWINS = 2
"""Most twins of a sentence."""

Twin = tuple[str, Verdict]
"""The changed sentence, and the verdict that the change makes right."""

_WRONG, _OPEN = Verdict.CONTRADICTED, Verdict.UNSUPPORTED

_DENIABLE = re.compile(
    r"\b(is|are|was|were|can|will|must|should|(?:has|have)(?= been\b| [a-z]+ed\b))"
    r"(?= (?!not\b|no\b|never\b|to\b)[a-z])"
)
_SUBORDINATE = re.compile(
    r"\b(?:who|whose|which|that|if|when|where|before|after|because|since|while|whereas|as|what)\b",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"\b(?:not|no|never|none|neither|nor|without|only|nobody|nothing|hardly|unless|except|than|"
    r"least|most|over|under|up to|within|about|around|almost|nearly|roughly|some|or)\b|n't|\?",
    re.IGNORECASE,
)
"""What may keep a sentence true although a number of it changes, or turn a denial around."""

_KEPT = re.compile(r"\b(?:any|anything|anyone|anybody|because|only|all three|nor)\b", re.IGNORECASE)
"""What a swapped denial, bound or modal verb leaves ungrammatical or open."""

_CONDITION = re.compile(
    r",? (?:if|unless|except|provided|as long as|only when|but only|subject to|apart from)"
    r" [^.;]*(?=[.;]|$)"
)
_FIRST_CONDITION = re.compile(r"(?:If|Unless|As long as|Provided that|Except) [^,.;]+, (\w)")
_NUMBER = re.compile(
    r"(?<![\w.,:/-])(?!^\d+\. )(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w:/-]|[.,]\d)"
)
_NAME = re.compile(r"\b(at|by|for|from|in|of|to|with) ((?:the )?[A-Z][\w-]+(?: [A-Z][\w-]+)*)\b")
_SERIES = tuple(
    re.compile(rf"\b(?:{'|'.join(names)})(?=s?\b)")
    for names in (tuple(calendar.day_name), tuple(calendar.month_name)[1:])
)
_NUMBERS = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
_IN_WORDS = re.compile(rf"\b(?:{'|'.join(_NUMBERS)})\b")


class _Swap(NamedTuple):
    kind: str
    pattern: re.Pattern[str]
    words: str


def one_change(statements: Iterable[Statement], *, seed: int) -> Iterator[Statement]:
    """Supported statements whose sentence can be changed, each followed by its twins.

    A twin, of kind ``KIND``, is never supported; where a change may leave the matter open
    rather than contradict the evidence, its verdict is unsupported.

    Args:
        statements: Statements of any verdict; only supported ones are used.
        seed: Seed of all choices.
    """
    for item in statements:
        if item.verdict is not Verdict.SUPPORTED or item.sentence.endswith("?"):
            continue
        chooser = random.Random(f"{seed}/one change/{item.group}/{item.sentence}")
        found: dict[str, Verdict] = {}
        for change in chooser.sample(_CHANGES, len(_CHANGES)):
            if twin := change(item, chooser):
                text, verdict = twin
                if text != item.sentence:
                    found.setdefault(text, verdict)
            if len(found) == TWINS:
                break
        if not found:
            continue
        yield item
        other = rewritten(item.sentence, chooser)
        if other != item.sentence:
            yield item._replace(sentence=other, span=None)
        for text, verdict in found.items():
            yield item._replace(kind=KIND, sentence=text, verdict=verdict, span=None)


def _swapped(kind: str) -> Callable[[Statement, random.Random], Twin | None]:
    def change(item: Statement, chooser: random.Random) -> Twin | None:
        kept = _HEDGED if kind == "antonym" else _KEPT
        if kept.search(item.sentence):
            return None
        swaps = [swap for swap in _swaps() if swap.kind == kind]
        for swap in chooser.sample(swaps, len(swaps)):
            match = swap.pattern.search(item.sentence)
            if match is None or (match.start() and match[0][0].isupper()):
                continue
            words = swap.words
            if match[0][0].isupper():
                words = words[0].upper() + words[1:]
            verdict = _OPEN if kind == "modal" else _WRONG
            return item.sentence[: match.start()] + words + item.sentence[match.end() :], verdict
        return None

    return change


@cache
def _swaps() -> tuple[_Swap, ...]:
    """The swaps of ``one_change.tsv``; antonyms in both directions."""
    lines = Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
    swaps = set()
    for line in lines:
        kind, first, second = line.split("\t")
        swaps.add((kind, first, second))
        if kind == "antonym":
            swaps.add((kind, second, first))
    return tuple(
        _Swap(
            kind,
            re.compile(rf"(?<![\w-])(?:{first}|{first[0].upper()}{first[1:]})(?![\w'-])"),
            second,
        )
        for kind, first, second in sorted(swaps)
    )


def _denied(item: Statement, chooser: random.Random) -> Twin | None:
    """A plain statement denied."""
    places = list(_DENIABLE.finditer(item.sentence))
    if len(places) != 1 or _HEDGED.search(item.sentence):
        return None
    end = places[0].end()
    if _SUBORDINATE.search(item.sentence[:end]):
        return None
    denial = "not" if places[0][1] == "can" else " not"
    return item.sentence[:end] + denial + item.sentence[end:], _WRONG


def _unconditional(item: Statement, chooser: random.Random) -> Twin | None:
    """A rule without its condition, or an exception left out."""
    text = item.sentence
    if match := _FIRST_CONDITION.match(text):
        return match[1].upper() + text[match.end() :], _OPEN
    if match := _CONDITION.search(text):
        rest = text[: match.start()] + text[match.end() :]
        return (rest, _OPEN) if len(rest.split()) > 3 else None
    return None


def _renumbered(item: Statement, chooser: random.Random) -> Twin | None:
    """Another number: one of the evidence in the same notation, or one nearby."""
    text = item.sentence
    if _HEDGED.search(text):
        return None
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        words = list(_IN_WORDS.finditer(text))
        if not words:
            return None
        match = chooser.choice(words)
        word = chooser.choice([word for word in _NUMBERS if word != match[0]])
        return text[: match.start()] + word + text[match.end() :], _WRONG
    match = chooser.choice(numbers)
    said = {number[0] for number in numbers}
    others = {
        number[0]
        for statement in item.statements
        for number in _NUMBER.finditer(statement)
        if abs(len(number[0]) - len(match[0])) < 2 and number[0] not in said
    }
    near = near_miss(match[0], chooser)
    other = chooser.choice(sorted(others)) if others and chooser.random() < 0.6 else near
    if other is None or other in said:
        return None
    return text[: match.start()] + other + text[match.end() :], _WRONG


def _another_day(item: Statement, chooser: random.Random) -> Twin | None:
    """Another weekday or month where the sentence names one."""
    for pattern, names in zip(
        _SERIES, (tuple(calendar.day_name), tuple(calendar.month_name)[1:]), strict=True
    ):
        named = list(pattern.finditer(item.sentence))
        if len(named) == 1 and not (names[4] == "May" and named[0][0] == "May"):
            others = [name for name in names if name != named[0][0]]
            start, end = named[0].span()
            return item.sentence[:start] + chooser.choice(others) + item.sentence[end:], _WRONG
    return None


def _renamed(item: Statement, chooser: random.Random) -> Twin | None:
    """Another subject, or another's value of the same property, in the place of the right one."""
    text = item.sentence
    if item.triples:
        facts = list(triple_facts(item.statements))
        right = [fact for fact in facts if fact.place in item.cited]
        if len(right) != 1:
            return None
        (fact,) = right
        alike = [f for f in facts if f.name == fact.name and not same_value(f.value, fact.value)]
        if not alike or sum(f.name == fact.name and f.subject == fact.subject for f in facts) > 1:
            return None
        other = chooser.choice(alike)
        swaps = [(fact.subject, other.subject), (fact.value, other.value)]
        chooser.shuffle(swaps)
        for old, new in swaps:
            if text.count(old) == 1 and new not in text and len(old) > 2:
                return text.replace(old, new), _WRONG
        return None
    named = [name for name in _NAME.finditer(text) if not _dated(name[2])]
    if not named:
        return None
    name = chooser.choice(named)
    others = sorted(
        {
            other[2]
            for statement in item.statements
            for other in _NAME.finditer(statement)
            if other[1] == name[1] and other[2] not in text and name[2] not in other[2]
            if not _dated(other[2])
        }
    )
    if not others or text.count(name[2]) > 1:
        return None
    return text[: name.start(2)] + chooser.choice(others) + text[name.end(2) :], _OPEN


def _dated(name: str) -> bool:
    return any(pattern.search(name) for pattern in _SERIES)


_CHANGES = (
    _swapped("antonym"),
    _swapped("bound"),
    _swapped("modal"),
    _swapped("denial"),
    _denied,
    _unconditional,
    _renumbered,
    _another_day,
    _renamed,
)
