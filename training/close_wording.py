"""Statements in nearly the words of their evidence, and their twins with one thing wrong.

People paraphrase when they write statements for training; chatbots mostly repeat. A judge that
has only read paraphrases takes a repeated sentence for a near miss of its neighbours.
"""

from __future__ import annotations

import calendar
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from guardrail.core.text.words import content_stems
from guardrail.core.types import Triple, Verdict
from training.forms import near_miss, same_value
from training.relation_templates import RELATIONS
from training.relations import single_valued
from training.statements import Statement

__all__ = ["Fact", "close_wording", "made_tables", "rewritten", "triple_facts"]

ROWS_PER_SET = 4
"""Most statements of an evidence set that are repeated, each with its twins."""

_TRIPLE = re.compile(r"(.+?), ([^,:]+): (.+)\.")

_NAMED = (
    "The {p} of {s} is {o}.",
    "{s}'s {p} is {o}.",
    "{s} has the {p} {o}.",
    "{s}: {p} {o}.",
    "The {p} for {s} is {o}.",
    "For {s}, the {p} is {o}.",
    "{o} is the {p} of {s}.",
)
_UNNAMED = ("The {p} is {o}.", "Its {p} is {o}.", "It is {o}.")
"""Sentences that leave the subject to the question before them."""

_VERBS = {
    "price": ("{s} costs {o}.", "{s} is sold for {o}.", "You pay {o} for {s}."),
    "fee": ("{s} costs {o}.", "{o} is charged for {s}."),
    "weight": ("{s} weighs {o}.", "{s} has a weight of {o}."),
    "height": ("{s} is {o} high.", "{s} has a height of {o}."),
    "length": ("{s} is {o} long.", "{s} has a length of {o}."),
    "width": ("{s} is {o} wide.",),
    "capacity": ("{s} holds {o}.", "{s} has a capacity of {o}."),
    "seats": ("{s} has {o} seats.", "{s} seats {o}."),
    "beds": ("{s} has {o} beds.",),
    "rooms": ("{s} has {o} rooms.",),
    "population": ("{s} has {o} inhabitants.", "{o} people live in {s}."),
    "opened": ("{s} opened in {o}.", "{s} has been open since {o}."),
    "location": ("{s} is in {o}.", "{s} is located in {o}."),
    "warranty": ("{s} has a warranty of {o}.", "{s} comes with a warranty of {o}."),
    "colour": ("{s} is {o}.", "{s} comes in {o}."),
    "material": ("{s} is made of {o}.",),
    "operator": ("{s} is run by {o}.", "{o} operates {s}."),
    "manufacturer": ("{s} is made by {o}.", "{o} makes {s}."),
} | {label: relation.templates for relation in RELATIONS for label in relation.labels}

_CONTRASTS = (", not {}", ", and not {}", " and not {}", " rather than {}", " (not {})")
CONTRASTED = 0.35
"""Share of wrong values that are also paired with the right one: *Rome, not Oslo*."""

_INTRODUCTIONS = ("", "", "", "According to the page: ", "Yes: ")
_NEGATED = re.compile(r"\b(is|are|was|were|can|will|must|should|may|has|have) (?!not\b|no\b)")
_BARE_NUMBER = re.compile(r"(?<![\d.,:/-])\d{4,}(?![\d.,:/-])")
_MORNING = re.compile(r"\b(1?\d)(?::(\d\d))? ?([ap])\.?m\b\.?", re.IGNORECASE)
_ISO_DATE = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b(?!T)")
_SIGN_OF_MONEY = re.compile(r"(€|\$|£)(\d[\d,]*(?:\.\d+)?)(?!\d| ?(?:k\b|m\b|million|billion))")
_MONEY = {"€": "euros", "$": "dollars", "£": "pounds"}


class Fact(NamedTuple):
    """A triple at its place among the numbered statements."""

    place: int
    subject: str
    name: str
    value: str


def close_wording(sets: Iterable[Statement], *, seed: int) -> Iterator[Statement]:
    """Sentences that repeat a statement of their evidence, and twins that change or lack it.

    Args:
        sets: One statement of each evidence set.
        seed: Seed of all choices.
    """
    for item in sets:
        chooser = random.Random(f"{seed}/close wording/{item.group}")
        bare = item._replace(
            kind="close_wording", question="", context="", verdict=Verdict.SUPPORTED, span=None
        )
        yield from (_of_triples if item.triples else _of_passages)(bare, chooser)


def made_tables(sets: Iterable[Statement], *, count: int, seed: int) -> Iterator[Statement]:
    """Tables as companies have them: some subjects, each with a value of the same properties.

    Subjects, properties and values are those of the sets, thrown together.

    Args:
        sets: One statement of each evidence set.
        count: Number of tables.
        seed: Seed of all choices.
    """
    chooser = random.Random(f"{seed}/tables")
    values: dict[str, set[str]] = defaultdict(set)
    subjects = set()
    for item in sets:
        for fact in triple_facts(item.statements if item.triples else ()):
            values[fact.name].add(fact.value)
            subjects.add(fact.subject)
    columns = sorted(name for name, some in values.items() if len(some) >= 6)
    known = sorted(subjects)
    for number in range(count):
        names = chooser.sample(columns, min(len(columns), chooser.randint(1, 5)))
        rows = chooser.sample(known, min(len(known), chooser.randint(2, 8)))
        triples = [
            Triple(subject=subject, property=name, value=chooser.choice(sorted(values[name])))
            for subject in rows
            for name in names
        ]
        yield Statement(
            group=f"table {number}",
            kind="close_wording",
            triples=True,
            statements=tuple(triple.statement for triple in triples),
            question="",
            context="",
            sentence="",
            verdict=Verdict.SUPPORTED,
            span=None,
            cited=frozenset(),
        )


def triple_facts(statements: Iterable[str]) -> Iterator[Fact]:
    """The facts of numbered triples; those with a colon in their property are left out."""
    for place, text in enumerate(statements):
        if match := _TRIPLE.fullmatch(text):
            yield Fact(place, match[1], match[2], match[3])


def _of_triples(statement: Statement, chooser: random.Random) -> Iterator[Statement]:
    facts = list(triple_facts(statement.statements))
    for fact in chooser.sample(facts, min(ROWS_PER_SET, len(facts))):
        alike = [f for f in facts if f.name == fact.name]
        own = [f for f in alike if f.subject == fact.subject]
        question, template = _template(fact, chooser)
        row = statement._replace(question=question, cited=frozenset({fact.place}))

        def stated(fact: Fact, template: str = template, row: Statement = row) -> Statement:
            return row._replace(sentence=_filled(template, fact))

        yield stated(fact._replace(value=rewritten(fact.value, chooser)))
        if len(own) > 1:
            continue
        wrong = _wrong_value(fact, facts, chooser)
        if wrong is not None:
            value = rewritten(wrong, chooser)
            twin = stated(fact._replace(value=value))
            start = twin.sentence.find(value)
            yield twin._replace(verdict=Verdict.CONTRADICTED, span=(start, start + len(value)))
            if template.endswith("{o}.") and chooser.random() < CONTRASTED:
                contrast = chooser.choice(_CONTRASTS)
                yield stated(fact._replace(value=fact.value + contrast.format(value)))
                end = start + len(value)
                yield stated(fact._replace(value=value + contrast.format(fact.value)))._replace(
                    verdict=Verdict.CONTRADICTED, span=(start, end)
                )
        other = chooser.choice(alike)
        if other is not fact and not same_value(other.value, fact.value):
            yield from _pairs(statement, fact, other, template, chooser)
        if not any(f is not fact and same_value(f.value, fact.value) for f in facts):
            yield _without(stated(fact))


def _template(fact: Fact, chooser: random.Random) -> tuple[str, str]:
    """A question, mostly empty, and the sentence that tells the fact."""
    drawn = chooser.random()
    if fact.name in _VERBS and drawn < 0.5:
        return "", chooser.choice(_VERBS[fact.name])
    question = f"What is the {fact.name} of {fact.subject}?"
    if drawn < 0.7:
        return (question if chooser.random() < 0.4 else ""), chooser.choice(_NAMED)
    return question, chooser.choice(_UNNAMED)


def _filled(template: str, fact: Fact) -> str:
    text = template.format(s=fact.subject, p=fact.name, o=fact.value)
    text = text[:1].upper() + text[1:]
    return text[:-1] if text.endswith("..") else text


def _wrong_value(fact: Fact, facts: Sequence[Fact], chooser: random.Random) -> str | None:
    """Another value where the property has one: a neighbour's, another property's, a near miss."""
    number = any(sign.isdigit() for sign in fact.value)
    by_subject = Counter(item.subject for item in facts if item.name == fact.name)
    column = len(by_subject) > 1 and max(by_subject.values()) == 1
    if not (number or column or single_valued(fact.name)):
        return None
    near = near_miss(fact.value, chooser)
    others = [
        item.value
        for item in facts
        if (item.name == fact.name or (number and item.subject == fact.subject))
        and not same_value(item.value, fact.value)
        and any(sign.isdigit() for sign in item.value) == number
    ]
    if others and (near is None or chooser.random() < 0.6):
        return chooser.choice(others)
    return near if near is not None and not same_value(near, fact.value) else None


def _pairs(
    statement: Statement, fact: Fact, other: Fact, template: str, chooser: random.Random
) -> Iterator[Statement]:
    """Two facts in one sentence, right and with the values exchanged."""
    joint = chooser.choice((" and ", ", while ", ", and ", "; "))
    both = statement._replace(cited=frozenset({fact.place, other.place}))
    if "{s}" not in template:
        template = chooser.choice(_NAMED)

    def stated(first: str, second: str) -> str:
        left = _filled(template, fact._replace(value=first)).removesuffix(".")
        right = template.format(s=other.subject, p=other.name, o=second)
        right = right[:1].lower() + right[1:] if template.startswith("The") else right
        return left + joint + right.replace("..", ".")

    yield both._replace(sentence=stated(fact.value, other.value))
    yield both._replace(
        sentence=stated(other.value, fact.value), verdict=Verdict.CONTRADICTED, span=None
    )


def _without(row: Statement) -> Statement:
    """The same sentence with evidence that lacks its support."""
    kept = [text for place, text in enumerate(row.statements) if place not in row.cited]
    return row._replace(
        statements=tuple(kept) or ("Nothing is known.",),
        windows=(),
        verdict=Verdict.UNSUPPORTED,
        cited=frozenset(),
        span=None,
    )


def _of_passages(statement: Statement, chooser: random.Random) -> Iterator[Statement]:
    whole = [
        place
        for place, text in enumerate(statement.statements)
        if 5 <= len(text.split()) <= 40 and text[:1].isalnum() and text[-1:] in ".!"
    ]
    for place in chooser.sample(whole, min(ROWS_PER_SET, len(whole))):
        text = statement.statements[place]
        introduction = chooser.choice(_INTRODUCTIONS)
        row = statement._replace(cited=frozenset({place}))

        def stated(text: str, introduction: str = introduction, row: Statement = row) -> Statement:
            return row._replace(sentence=introduction + text)

        yield stated(rewritten(text, chooser))
        wrong = near_miss(text, chooser)
        if wrong is not None and chooser.random() < 0.7:
            twin = stated(wrong)
            start, end = _changed(text, wrong)
            span = (start + len(introduction), end + len(introduction))
            yield twin._replace(verdict=Verdict.CONTRADICTED, span=span)
            if chooser.random() < CONTRASTED:
                contrast = chooser.choice(_CONTRASTS)
                yield stated(_contrasted(text, wrong, contrast))
                yield stated(_contrasted(wrong, text, contrast))._replace(
                    verdict=Verdict.CONTRADICTED, span=span
                )
        elif found := _NEGATED.search(text):
            denied = "cannot " if found[1] == "can" else f"{found[1]} not "
            start = found.start() + len(introduction)
            yield stated(text[: found.start()] + denied + text[found.end() :])._replace(
                verdict=Verdict.CONTRADICTED, span=(start, start + len(denied) - 1)
            )
        stems = content_stems(text)
        others = [content_stems(t) for at, t in enumerate(statement.statements) if at != place]
        if stems and max((len(stems & some) / len(stems) for some in others), default=0) < 0.4:
            yield _without(stated(text))


def _changed(text: str, other: str) -> tuple[int, int]:
    """Where the words of the other text stand that differ; both have as many words."""
    words = zip(text.split(" "), re.finditer(r"[^ ]+", other), strict=True)
    places = [match for word, match in words if word != match[0]]
    return places[0].start(), places[-1].start() + len(places[-1][0].rstrip(".,;:!?"))


def _contrasted(text: str, other: str, contrast: str) -> str:
    """The text with a denial of the other text's value after its own value."""
    start, end = _changed(other, text)
    _, end_of_other = _changed(text, other)
    return text[:end] + contrast.format(other[start:end_of_other]) + text[end:]


def rewritten(text: str, chooser: random.Random) -> str:
    """The same with a date, a time, an amount or a number written another way, at times."""
    if chooser.random() < 0.5:
        return text
    text = _SIGN_OF_MONEY.sub(lambda m: f"{m[2]} {_MONEY[m[1]]}", text)
    text = _BARE_NUMBER.sub(lambda m: f"{int(m[0]):,}" if len(m[0]) > 4 else m[0], text)
    text = _ISO_DATE.sub(_in_words, text)
    return _MORNING.sub(_on_the_clock, text)


def _in_words(date: re.Match[str]) -> str:
    month = int(date[2])
    return f"{int(date[3])} {calendar.month_name[month]} {date[1]}" if 1 <= month <= 12 else date[0]


def _on_the_clock(time: re.Match[str]) -> str:
    hour = int(time[1]) % 12 + (12 if time[3] in "pP" else 0)
    return f"{hour}:{time[2] or '00'}"
