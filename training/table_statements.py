"""Statements on tables written as prose: parallel values, comparisons, differences, denials.

A page says *A violin costs 14 euros a month, a cello 26 and a clarinet 18*, and an answer picks one
of them, compares two or names the cheapest. What goes wrong there is that the values of one row are
taken for those of another. Each statement has twins that do just that.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from guardrail.core.types import Triple, Verdict
from training.close_wording import rewritten, triple_facts
from training.statements import Statement

__all__ = ["table_statements"]


class _Column(NamedTuple):
    """A property of all rows.

    Attributes:
        label: Its name as the property of a triple.
        phrases: Verb phrases that tell it; ``{o}`` stands for the value.
        values: Ways of writing a number, ``{n}``; or the texts to draw from.
        numbers: Smallest and largest number; None where values are texts.
        more: Phrases between two rows if the first has the larger number.
        less: The same for the smaller one.
        most: Adjective of the row with the largest number.
        least: The same for the smallest.
    """

    label: str
    phrases: tuple[str, ...]
    values: tuple[str, ...]
    numbers: tuple[int, int] | None = None
    more: tuple[str, ...] = ()
    less: tuple[str, ...] = ()
    most: str = ""
    least: str = ""


def _measure(label: str, phrases: str, forms: str, low: int, high: int, *words: str) -> _Column:
    more, less, most, least = words
    return _Column(
        label, _cut(phrases), _cut(forms), (low, high), _cut(more), _cut(less), most, least
    )


def _cut(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


_MEASURES: Final = (
    _measure("price", "costs {o}|is sold for {o}|is priced at {o}",
             "{n} euros|€{n}|{n} EUR|${n}|£{n}|{n} pounds|{n} crowns", 3, 900,
             "is more expensive than|costs more than|is dearer than",
             "is cheaper than|costs less than", "most expensive", "cheapest"),
    _measure("monthly fee", "costs {o} a month|is {o} a month|comes to {o} per month",
             "{n} euros|€{n}|${n}|{n} pounds", 4, 95,
             "costs more per month than", "costs less per month than|is cheaper than",
             "most expensive", "cheapest"),
    _measure("deposit", "requires a deposit of {o}|asks for a deposit of {o}",
             "{n} euros|${n}|£{n}", 10, 400, "asks for a higher deposit than",
             "asks for a lower deposit than", "", ""),
    _measure("weight", "weighs {o}|has a weight of {o}", "{n} kg|{n} g|{n} tonnes", 2, 90,
             "is heavier than|weighs more than", "is lighter than|weighs less than",
             "heaviest", "lightest"),
    _measure("length", "is {o} long|has a length of {o}", "{n} m|{n} km|{n} metres|{n} cm", 2, 400,
             "is longer than", "is shorter than", "longest", "shortest"),
    _measure("height", "is {o} high|rises to {o}", "{n} m|{n} metres|{n} feet", 5, 3000,
             "is higher than|is taller than", "is lower than", "highest", "lowest"),
    _measure("range", "has a range of {o}|goes {o}", "{n} km|{n} miles", 20, 600,
             "goes further than|has a longer range than", "has a shorter range than", "", ""),
    _measure("capacity", "holds {o}|has a capacity of {o}", "{n} litres|{n} people|{n} kg", 5, 900,
             "holds more than", "holds less than", "", ""),
    _measure("number of seats", "has {o} seats|seats {o}", "{n}", 2, 300,
             "has more seats than", "has fewer seats than", "", ""),
    _measure("number of rooms", "has {o} rooms", "{n}", 2, 300,
             "has more rooms than", "has fewer rooms than", "", ""),
    _measure("number of members", "has {o} members", "{n}", 9, 4000,
             "has more members than", "has fewer members than", "", ""),
    _measure("opened", "opened in {o}|has been open since {o}", "{n}", 1830, 2024,
             "is newer than|opened later than|opened after", "is older than|opened before",
             "newest", "oldest"),
    _measure("founded", "was founded in {o}|goes back to {o}", "{n}", 1600, 2023,
             "is younger than|was founded after", "is older than|was founded before",
             "youngest", "oldest"),
    _measure("delivery time", "is delivered within {o}|arrives after {o}", "{n} days|{n} weeks",
             2, 40, "takes longer to arrive than", "arrives sooner than|is delivered faster than",
             "", ""),
    _measure("duration", "takes {o}|lasts {o}", "{n} minutes|{n} hours|{n} days", 2, 90,
             "takes longer than|lasts longer than", "is shorter than|takes less time than",
             "longest", "shortest"),
    _measure("warranty", "comes with a warranty of {o}|has a warranty of {o}",
             "{n} years|{n} months", 2, 30, "has a longer warranty than",
             "has a shorter warranty than", "", ""),
    _measure("top speed", "reaches {o}|has a top speed of {o}", "{n} km/h|{n} mph|{n} knots",
             6, 300, "is faster than", "is slower than", "fastest", "slowest"),
    _measure("rating", "is rated {o}|scores {o}", "{n} out of 100|{n} points", 20, 99,
             "is rated higher than|scores more than", "is rated lower than|scores less than",
             "", ""),
    _measure("population", "has {o} inhabitants|has a population of {o}", "{n}", 300, 90000,
             "has more inhabitants than", "has fewer inhabitants than",
             "most populous", "least populous"),
    _measure("distance to the station", "is {o} from the station", "{n} km|{n} metres", 2, 900,
             "is further from the station than", "is nearer to the station than",
             "", ""),
    _measure("age", "is {o} old", "{n} years", 3, 90,
             "is older than", "is younger than", "oldest", "youngest"),
    _measure("temperature", "is kept at {o}", "{n} degrees|{n} °C", 2, 90,
             "is kept warmer than", "is kept colder than", "warmest", "coldest"),
    _measure("floor area", "covers {o}|has a floor area of {o}", "{n} m²|{n} square metres",
             20, 9000, "is larger than", "is smaller than", "largest", "smallest"),
    _measure("battery life", "runs for {o} on one charge", "{n} hours|{n} days", 3, 60,
             "runs longer than", "does not run as long as", "", ""),
)  # fmt: skip
_DAYS = _cut("Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday")
_TEXTS: Final = {
    "manager": "is managed by {o}",
    "owner": "belongs to {o}",
    "operator": "is run by {o}",
    "director": "is headed by {o}",
    "designer": "was designed by {o}",
    "architect": "was built to plans by {o}",
    "manufacturer": "is made by {o}",
    "publisher": "is published by {o}",
    "colour": "comes in {o}",
    "material": "is made of {o}",
    "location": "is in {o}",
    "author": "was written by {o}",
    "composer": "was composed by {o}",
}
"""Labels of the evidence sets whose values are drawn from there, and how prose tells them."""

_COUNTS = ("none", "one", "two", "three", "four", "five")


class _Table(NamedTuple):
    """Rows by columns; an unstated cell has no number and no text."""

    rows: tuple[str, ...]
    columns: tuple[_Column, ...]
    numbers: Mapping[tuple[str, str], int]
    texts: Mapping[tuple[str, str], str]

    def stated(self, column: _Column) -> list[str]:
        """The rows with a stated cell in this column."""
        return [row for row in self.rows if (row, column.label) in self.texts]


class _Case(NamedTuple):
    sentence: str
    verdict: Verdict
    cells: tuple[tuple[str, str], ...] = ()
    wrong: str = ""


def table_statements(sets: Sequence[Statement], *, count: int, seed: int) -> Iterator[Statement]:
    """Statements on tables, half of them written as triples and half as prose.

    Args:
        sets: One statement of each evidence set; names, values and filling sentences are theirs.
        count: Number of tables.
        seed: Seed of all choices.
    """
    names, values, prose = _material(sets)
    columns = [*_MEASURES, _Column("day", ("is open on {o}", "is delivered on {o}"), _DAYS)]
    columns += [
        _Column(label, (phrase,), tuple(sorted(values[label])))
        for label, phrase in _TEXTS.items()
        if len(values[label]) >= 6
    ]
    for number in range(count):
        chooser = random.Random(f"{seed}/table statements/{number}")
        table = _drawn(names, columns, chooser)
        triples = number % 2 == 0
        statements, places = _as_triples(table) if triples else _as_prose(table, prose, chooser)
        for case in _cases(table, columns, chooser):
            start = case.sentence.find(case.wrong) if case.wrong else -1
            yield Statement(
                group=f"told table {number}",
                kind="table",
                triples=triples,
                statements=statements,
                question="",
                context="",
                sentence=case.sentence[:1].upper() + case.sentence[1:],
                verdict=case.verdict,
                span=(start, start + len(case.wrong)) if start >= 0 else None,
                cited=frozenset(places[cell] for cell in case.cells),
            )


def _material(
    sets: Iterable[Statement],
) -> tuple[list[str], Mapping[str, set[str]], list[str]]:
    """Names of things, values by label, and sentences of the evidence sets."""
    names: set[str] = set()
    values: dict[str, set[str]] = defaultdict(set)
    prose: set[str] = set()
    for item in sets:
        for fact in triple_facts(item.statements if item.triples else ()):
            values[fact.name].add(fact.value)
            if len(fact.subject) < 40:
                names.add(fact.subject)
        if not item.triples:
            prose.update(text for text in item.statements if 5 <= len(text.split()) <= 25)
    return sorted(names), values, sorted(prose)


def _drawn(names: Sequence[str], columns: Sequence[_Column], chooser: random.Random) -> _Table:
    rows = tuple(chooser.sample(names, chooser.choice((2, 2, 3, 3, 4, 5))))
    used = _unlike(chooser.sample(columns, chooser.choice((1, 1, 2, 2, 3, 4))))
    numbers: dict[tuple[str, str], int] = {}
    texts: dict[tuple[str, str], str] = {}
    for column in used:
        form = chooser.choice(column.values)
        for row in rows:
            if chooser.random() < 0.12:
                continue
            cell = row, column.label
            if column.numbers is None:
                texts[cell] = chooser.choice(column.values)
                continue
            drawn = [number for (_, label), number in numbers.items() if label == column.label]
            again = drawn and chooser.random() < 0.15
            numbers[cell] = chooser.choice(drawn) if again else chooser.randint(*column.numbers)
            texts[cell] = _written(form, numbers[cell])
    return _Table(rows, used, numbers, texts)


def _unlike(columns: Iterable[_Column]) -> tuple[_Column, ...]:
    """Columns with distinct words of comparison: *older* by age or by founding."""
    kept: list[_Column] = []
    for column in columns:
        words = {column.most, column.least, *column.more, *column.less} - {""}
        if all(words.isdisjoint((c.most, c.least, *c.more, *c.less)) for c in kept):
            kept.append(column)
    return tuple(kept)


def _written(form: str, number: int) -> str:
    return form.format(n=f"{number:,}" if number >= 3000 else number)


def _as_triples(table: _Table) -> tuple[tuple[str, ...], dict[tuple[str, str], int]]:
    cells = [(row, column.label) for row in table.rows for column in table.columns]
    stated = [cell for cell in cells if cell in table.texts]
    statements = tuple(
        Triple(subject=row, property=label, value=table.texts[row, label]).statement
        for row, label in stated
    )
    return statements or ("Nothing is known.",), {cell: place for place, cell in enumerate(stated)}


def _as_prose(
    table: _Table, prose: Sequence[str], chooser: random.Random
) -> tuple[tuple[str, ...], dict[tuple[str, str], int]]:
    """Sentences that tell the table by columns or by rows, among sentences on other things."""
    stated: list[tuple[str, list[tuple[str, str]]]] = [
        (text, []) for text in chooser.sample(prose, min(len(prose), chooser.randint(0, 4)))
    ]
    if len(table.columns) > 1 and chooser.random() < 0.35:
        for row in table.rows:
            some = [c for c in table.columns if (row, c.label) in table.texts]
            parts = [chooser.choice(c.phrases).format(o=table.texts[row, c.label]) for c in some]
            if parts:
                stated.append((f"{row} {_listed(parts)}.", [(row, c.label) for c in some]))
    else:
        for column in table.columns:
            if rows := table.stated(column):
                text = _parallel(table, column, rows, chooser)
                stated.append((text, [(row, column.label) for row in rows]))
    chooser.shuffle(stated)
    places = {cell: place for place, (_, cells) in enumerate(stated) for cell in cells}
    return tuple(text for text, _ in stated) or ("Nothing is known.",), places


def _parallel(table: _Table, column: _Column, rows: Sequence[str], chooser: random.Random) -> str:
    """One sentence that tells the column of several rows."""
    values = [table.texts[row, column.label] for row in rows]
    phrase = chooser.choice(column.phrases)
    clauses = [f"{row} {phrase.format(o=o)}" for row, o in zip(rows, values, strict=True)]
    form = chooser.randrange(6)
    if form == 0:  # the verb stands once
        parts = [clauses[0], *(f"{row} {o}" for row, o in zip(rows[1:], values[1:], strict=True))]
        return f"{_listed(parts)}."
    if form == 1:
        parts = [f"{o} for {row}" for row, o in zip(rows, values, strict=True)]
        return f"The {column.label} is {_listed(parts)}."
    if form == 2 and len(rows) > 1:
        return f"The {column.label} of {_listed(rows)} is {_listed(values)} respectively."
    if form == 3:
        parts = [f"{row} {o}" for row, o in zip(rows, values, strict=True)]
        return f"{column.label.capitalize()}: {'; '.join(parts)}."
    return f"{_listed(clauses)}." if form == 4 else "; ".join(clauses) + "."


def _listed(parts: Sequence[str]) -> str:
    return " and ".join((", ".join(parts[:-1]), parts[-1])) if len(parts) > 1 else parts[0]


def _cases(table: _Table, columns: Sequence[_Column], chooser: random.Random) -> Iterator[_Case]:
    """Statements on a table: each way of telling with its twins."""
    for column in table.columns:
        rows = table.stated(column)
        if rows:
            yield from _values(table, column, chooser.choice(rows), chooser)
        if len(rows) > 1 and column.numbers:
            yield from _comparisons(table, column, chooser.sample(rows, 2), chooser)
        if len(rows) > 2 and column.most:
            yield from _extremes(table, column, rows, chooser)
        untold = [row for row in table.rows if row not in rows]
        if untold and rows:
            row, other = chooser.choice(untold), chooser.choice(rows)
            text = table.texts[other, column.label]
            yield _Case(
                f"{row} {chooser.choice(column.phrases).format(o=text)}.", Verdict.UNSUPPORTED
            )
            if column.more:
                yield _Case(
                    f"{row} {chooser.choice(column.more + column.less)} {other}.",
                    Verdict.UNSUPPORTED,
                )
    new = chooser.choice([column for column in columns if column not in table.columns])
    text = chooser.choice(new.values)
    if new.numbers:
        text = _written(text, chooser.randint(*new.numbers))
    phrase = chooser.choice(new.phrases).format(o=text)
    yield _Case(f"{chooser.choice(table.rows)} {phrase}.", Verdict.UNSUPPORTED)
    yield from _pairs_of_facts(table, phrase, chooser)


def _values(table: _Table, column: _Column, row: str, chooser: random.Random) -> Iterator[_Case]:
    """The value of a cell, right, wrong and denied."""
    cell = row, column.label
    right = rewritten(table.texts[cell], chooser)
    phrase = chooser.choice((*column.phrases, ""))

    def stated(value: str) -> str:
        if phrase:
            return f"{row} {phrase.format(o=value)}."
        return f"The {column.label} of {row} is {value}."

    yield _Case(stated(right), Verdict.SUPPORTED, (cell,))
    others = {
        text
        for (other, label), text in table.texts.items()
        if label == column.label and other != row and text != table.texts[cell]
    }
    if not others:
        return
    wrong = chooser.choice(sorted(others))
    yield _Case(stated(wrong), Verdict.CONTRADICTED, (cell,), wrong)
    if chooser.random() < 0.3:
        start = f"The {column.label} of {row} is not "
        yield _Case(f"{start}{wrong}.", Verdict.SUPPORTED, (cell,))
        yield _Case(f"{start}{right}.", Verdict.CONTRADICTED, (cell,), "not")


def _comparisons(
    table: _Table, column: _Column, pair: Sequence[str], chooser: random.Random
) -> Iterator[_Case]:
    """Two rows compared, rightly and the other way round."""
    cells = tuple((row, column.label) for row in pair)
    first, second = (table.numbers[cell] for cell in cells)
    same = f"{pair[0]} and {pair[1]} have the same {column.label}."
    if first == second:
        yield _Case(same, Verdict.SUPPORTED, cells)
        words = chooser.choice(column.more + column.less)
        yield _Case(f"{pair[0]} {words} {pair[1]}.", Verdict.CONTRADICTED, cells, words)
        return
    if chooser.random() < 0.2:
        yield _Case(same, Verdict.CONTRADICTED, cells, "same")
    more, less = chooser.choice(column.more), chooser.choice(column.less)
    right, wrong = (more, less) if first > second else (less, more)
    yield _Case(f"{pair[0]} {right} {pair[1]}.", Verdict.SUPPORTED, cells)
    yield _Case(f"{pair[0]} {wrong} {pair[1]}.", Verdict.CONTRADICTED, cells, wrong)


def _extremes(
    table: _Table, column: _Column, rows: Sequence[str], chooser: random.Random
) -> Iterator[_Case]:
    """The row with the largest or smallest number, and another one."""
    if len(rows) < len(table.rows):
        return
    word, best = chooser.choice(((column.most, max), (column.least, min)))
    numbers = {row: table.numbers[row, column.label] for row in rows}
    ends = [row for row in rows if numbers[row] == best(numbers.values())]
    if len(ends) > 1:
        return
    cells = tuple((row, column.label) for row in rows)
    of = chooser.choice(("", f" of the {_COUNTS[len(rows)]}", " of all"))
    other = chooser.choice([row for row in rows if row not in ends])
    yield _Case(f"{ends[0]} is the {word}{of}.", Verdict.SUPPORTED, cells)
    yield _Case(f"{other} is the {word}{of}.", Verdict.CONTRADICTED, cells, other)


def _pairs_of_facts(table: _Table, unknown: str, chooser: random.Random) -> Iterator[_Case]:
    """Two facts of a row in one sentence: both right, one of another row, one unstated."""
    row = chooser.choice(table.rows)
    known = [column for column in table.columns if (row, column.label) in table.texts]
    if not known:
        return
    first, *more = chooser.sample(known, min(2, len(known)))
    begin = f"{row} {chooser.choice(first.phrases).format(o=table.texts[row, first.label])}"
    cell = row, first.label
    yield _Case(f"{begin} and {unknown}.", Verdict.UNSUPPORTED, (cell,), unknown)
    for second in more:
        cells = cell, (row, second.label)
        right = table.texts[cells[1]]
        phrase = chooser.choice(second.phrases)
        yield _Case(f"{begin} and {phrase.format(o=right)}.", Verdict.SUPPORTED, cells)
        others = {table.texts[other, second.label] for other in table.stated(second)} - {right}
        if others:
            wrong = chooser.choice(sorted(others))
            yield _Case(
                f"{begin} and {phrase.format(o=wrong)}.", Verdict.CONTRADICTED, cells, wrong
            )
