"""Names in a text: capitalised runs, and where the label of an entity or a value stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from guardrail.core.text.dates import (
    Agreement,
    agreement,
    calendar_words,
    days_of_cell,
    find_dates,
    parse_date,
    weekday_runs,
)
from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.words import (
    CODE,
    Span,
    Token,
    fold,
    number_of,
    remembered,
    runs_of,
    tokenise,
)

NO_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType({})
"""Where no entity has other names than its label."""

QUALIFIER = re.compile(r"(?<!\s)\s*\([^()]*\)\s*$")
"""What tells namesakes apart in labels: *Paris (mythology)*; prose names Paris."""


@remembered(4_096)
def find_names(text: str) -> list[Span]:
    """The names of a text: offsets of its runs of capitalised words.

    A single capitalised word that opens a sentence may be any word, and is left out.
    """
    runs = [_without_opener(text, span) for span in _runs(text)]
    return [span for span in runs if span[0] < span[1] and not _common(text, span)]


def _without_opener(text: str, span: Span) -> Span:
    """A run without a first word that only opens its sentence: *Since May*."""
    first, _, rest = text[span[0] : span[1]].partition(" ")
    openers = lexicon_set("abbreviations", "openers")
    return (span[1] - len(rest), span[1]) if rest and fold(first) in openers else span


def _runs(text: str) -> Iterator[Span]:
    stop = lexicon_set("function_words", "stop_words")
    coded = {n for match in CODE.finditer(text) for n in range(match.start() + 1, match.end())}
    run: list[Token] = []
    for token in [*tokenise(text), None]:
        if token is not None:
            capital = token.text[:1].isupper() and not (token.folded in stop and not run)
            joined = bool(run) and _joined(text, run[-1], token)
            rest = bool(run) and token.start in coded and not token.text.islower()
            if (capital and (joined or not run)) or rest:
                run.append(token)
                continue
        if run:
            yield run[0].start, run[-1].end
        run = []
        if token is not None and token.text[:1].isupper() and token.folded not in stop:
            run.append(token)


def _joined(text: str, first: Token, second: Token) -> bool:
    """Whether two capitalised words may belong to one name."""
    between = text[first.end : second.start]
    short = len(first.text) == 1 or first.folded in lexicon_set("abbreviations", "titles")
    return between in (" ", "-", " & ") or (between == ". " and short)


def _common(text: str, span: Span) -> bool:
    start, end = span
    single = " " not in text[start:end] and not text[start + 1 : end].isupper()
    # What stands before the first word of a clause, whose capital tells nothing
    if single and re.search(r"(?:^|[.!?:;][*_]*\s|\n)\W*$", text[max(0, start - 12) : start]):
        return True
    return calendar_words().issuperset(map(fold, re.split(r"\W+", text[start:end])))


def label_in(text: str, tokens: Sequence[Token], label: str) -> list[Span]:
    """Find a label or value in a text, in any equivalent written form.

    Names stand by their words, dates and numbers by what they are, countries by their peoples;
    ``tokens`` are the words of ``text``.
    """
    wanted = words_of_label(label)
    if not wanted:
        return []
    if held := days_of_cell(label):
        return [(start, end) for days, start, end in weekday_runs(text) if days <= held]
    found = runs_of(tokens, wanted)
    if found:
        return found
    date = parse_date(label)
    if date is not None:
        return [
            (item.start, item.end)
            for item in find_dates(text)
            if agreement(item, date) is Agreement.SAME
        ]
    number = _number(label)
    if number is not None:
        return [
            (run[0].start, run[-1].end)
            for place in range(len(tokens))
            for length in (3, 2, 1)
            if number_of(run := tokens[place : place + length]) == number and run
        ][:1]
    for other in other_words(label):
        if found := runs_of(tokens, other.split()):
            return found
    return []


def by_words_alone(label: str) -> bool:
    """True if a label is only ever found by its own words: it is no date, number or nation."""
    return parse_date(label) is None and _number(label) is None and not other_words(label)


@remembered(16_384)
def words_of_label(label: str) -> tuple[str, ...]:
    """The folded words that find a label, without what distinguishes namesakes."""
    bare = QUALIFIER.sub("", label)
    return tuple([token.folded for token in tokenise(bare) or tokenise(label)])


@remembered(16_384)
def _number(label: str) -> float | None:
    tokens = tokenise(label)
    return number_of(tokens) if 0 < len(tokens) <= 4 else None


def part_of_name_in(tokens: Sequence[Token], label: str) -> list[Span]:
    """Where a capitalised word of a name stands for the whole: *Gentileschi*, *Mary*."""
    stop = lexicon_set("function_words", "stop_words")
    parts = {item for item in words_of_label(label) if item not in stop and len(item) > 2}
    return [
        (token.start, token.end)
        for token in tokens
        if token.text[:1].isupper() and token.folded in parts
    ]


def other_words(label: str) -> tuple[str, ...]:
    """Other words for a country or people: ``France`` → ``french``, ``frenchman``."""
    return _peoples().get(" ".join(words_of_label(label)), ())


@cache
def _peoples() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for row in lexicon("nations")["nations"]:
        peoples = row["peoples"]
        forms = (*peoples, *(f"{people}s" for people in peoples))
        for name in row["names"]:
            short = (item for item in row["names"] if item != name and f" {item} " in f" {name} ")
            found[name] = (*forms, *short)
    return found


@cache
def nation_words() -> frozenset[str]:
    """All words of names of countries and peoples, folded."""
    rows = lexicon("nations")["nations"]
    forms = (item for row in rows for item in (*row["names"], *row["peoples"]))
    return frozenset(form for item in forms for word in item.split() for form in (word, f"{word}s"))
