"""Triples as English: several paraphrases a property, and a rule for properties never seen.

The phrasings of some 180 common properties are data (``verbalisation.psv``); for every
other property its label decides, by its grammatical form, how it reads as a predicate
(``owned by`` -> *is owned by*, ``capital of`` -> *is the capital of*, ``currency`` ->
*has … as currency*). Needs no model; CAQA 4.4 uses a chat model in this place.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from guardrail.core.text.lexicon import lexicon
from guardrail.core.types import Triple

__all__ = [
    "DATE_FORMS",
    "Phrasing",
    "article",
    "finish",
    "inversions",
    "phrasing",
    "predicate",
    "property_forms",
    "questions",
    "sentence",
    "sentences",
    "surface",
]

_ISO = re.compile(r"([+-]?)(\d{4})-(\d\d)-(\d\d)(?:T[\d:.]+Z?)?")
_WRITTEN = re.compile(r"(\d{1,2}) ([A-Z][a-z]+) (\d{4})")
_DOUBLED = re.compile(r",\s*([,.?!])")
_YEAR = re.compile(r"\d{1,4}( BC)?")

DATE_FORMS = 4
"""Number of ways a full date is written: 27 January 1756, January 27, 1756, 1756-01-27,
the 27th of January 1756."""


@dataclass(frozen=True, slots=True)
class Phrasing:
    """How one property reads in English.

    Templates hold ``{s}`` for the subject, ``{v}`` for the value and ``{av}`` for the value with
    its indefinite article.

    Attributes:
        noun: The property as a noun that the value fills: *birthplace*.
        predicates: What follows the subject: ``was born in {v}``.
        inversions: Whole sentences in another order: ``{v} is the birthplace of {s}``.
        questions: Questions that the value answers: ``Where was {s} born?``.
        subject_kind: What the subject is, as a noun: ``person``, ``film``, ``thing``.
        value_kind: What the value is, as a noun: ``place``, ``date``, ``thing``.
        known: False where the phrasing was derived from the label.
    """

    noun: str
    predicates: tuple[str, ...]
    inversions: tuple[str, ...]
    questions: tuple[str, ...]
    subject_kind: str = "thing"
    value_kind: str = "thing"
    known: bool = True


@cache
def phrasing(label: str) -> Phrasing:
    """The phrasing of a property, from the data or else from the form of its label."""
    return _table().get(label) or _from_label(label)


def predicate(label: str, value: str, variant: int = 0) -> str:
    """What follows the subject: ``predicate("place of birth", "Rome")`` -> *was born in Rome*."""
    choices = phrasing(label).predicates
    return _fill(choices[variant % len(choices)], "", value)


def sentence(triple: Triple, variant: int = 0) -> str:
    """One paraphrase of a triple; ``variant`` picks it and the written form of a date."""
    forms = phrasing(triple.property)
    templates = (*(f"{{s}} {part}" for part in forms.predicates), *forms.inversions)
    value = surface(triple.value, variant // len(templates))
    return finish(_fill(templates[variant % len(templates)], triple.subject, value))


def sentences(triple: Triple) -> tuple[str, ...]:
    """Every paraphrase of a triple; a date has the first of its forms."""
    forms = phrasing(triple.property)
    return tuple(sentence(triple, i) for i in range(len(forms.predicates) + len(forms.inversions)))


def questions(label: str, subject: str) -> tuple[str, ...]:
    """Questions that the value of the property answers, such as *Where was Ada born?* for Ada."""
    return tuple(_fill(template, subject, "") for template in phrasing(label).questions)


def inversions(label: str, subject: str, value: str) -> tuple[str, ...]:
    """Sentences that start elsewhere than the subject, e.g. *Rome is where Ada was born*."""
    return tuple(_fill(template, subject, value) for template in phrasing(label).inversions)


def surface(value: str, form: int = 0) -> str:
    """A value as a person would write it; dates in one of ``DATE_FORMS`` forms.

    The first of January stands for a year alone, as graphs write a date that is known to the
    year; years below zero become BC.
    """
    months: list[str] = lexicon("calendar")["months"]
    if match := _ISO.fullmatch(value):
        sign, year, month, day = match[1], int(match[2]), int(match[3]), int(match[4])
    elif (match := _WRITTEN.fullmatch(value)) and match[2].lower() in months:
        sign, year, day = "", int(match[3]), int(match[1])
        month = months.index(match[2].lower()) + 1
    else:
        return value
    if not 1 <= month <= 12 or (month, day) == (1, 1):
        return f"{year} BC" if sign == "-" else str(year)
    era = " BC" if sign == "-" else ""
    name = months[month - 1].title()
    return (
        f"{day} {name} {year}{era}",
        f"{name} {day}, {year}{era}",
        f"{day} {name} {year}{era}" if era else f"{year:04}-{month:02}-{day:02}",
        f"the {day}{_ordinal(day)} of {name} {year}{era}",
    )[form % DATE_FORMS]


def _ordinal(day: int) -> str:
    return "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def finish(text: str) -> str:
    """A capital at the start, one full stop at the end, no comma before it."""
    text = _DOUBLED.sub(r"\1", text.strip().rstrip(","))
    capital = text[:1].upper()
    # A letter whose capital belongs to another letter too (ı, ß) stays, or the name would change.
    first = capital if capital.lower() == text[:1] else text[:1]
    return first + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def _fill(template: str, subject: str, value: str) -> str:
    if _YEAR.fullmatch(value):
        template = template.replace(" on {v}", " in {v}")
    if "{av}" in template:
        template = template.replace("{av}", f"{article(value)} {{v}}" if value else "{v}")
    return template.replace("{s}", subject).replace("{v}", value)


def article(noun: str) -> str:
    """*a* or *an*, by the first letter, with the usual exceptions."""
    first = noun.split(maxsplit=1)[0].lower() if noun.strip() else ""
    if first.startswith(tuple(property_forms()["consonant_sounds"])):
        return "a"
    return "an" if first[:1] in "aeiou" and first else "a"


# --- properties without a phrasing of their own --------------------------------------------


@cache
def property_forms() -> dict[str, frozenset[str]]:
    """Lists of words and labels that tell how a property reads and whether it has one value."""
    text = Path(__file__).with_name("property_forms.json").read_text(encoding="utf-8")
    return {name: frozenset(words) for name, words in json.loads(text).items() if name != "about"}


def _from_label(label: str) -> Phrasing:
    words = re.sub(r"\s*\([^)]*\)\s*", " ", label).strip().split() or [label]
    name = " ".join(words)
    head, tail = words[0], words[-1]
    forms = property_forms()
    prepositions = forms["prepositions"]
    active = head in forms["active"]
    participle = head.endswith("ed") or head in forms["irregular_participles"]
    verb = (
        head.endswith("s")
        and not head.endswith("ss")
        and head not in forms["not_verbs"]
        and len(words) > 1
        and words[1] != "of"
    ) or label in forms["verbs"]
    if head == "has" and len(words) > 1:
        return _noun(" ".join(words[1:]))
    if tail in prepositions and participle:
        verbal = name if active else f"was {name}"
        question = f"What was {{s}} {name}?"
        if active:
            question = f"What is it that {{s}} {name}?"
        elif tail == "by":
            question = f"Who or what was {{s}} {name}?"
        return _verbal(verbal, question, f"thing that it {verbal}")
    if tail in prepositions and not verb and len(words) > 1:
        return _verbal(f"is the {name}", f"What is {{s}} the {name}?", f"thing it is {name}")
    if verb and (tail in prepositions or len(words) == 1):
        return _verbal(name, f"What is it that {{s}} {name}?", name)
    if (verb or participle) and not prepositions.isdisjoint(words):
        return _entry(name)
    return _noun(name)


def _entry(name: str) -> Phrasing:
    """A label that is no phrase of English on its own, such as *located at street address*."""
    return Phrasing(
        noun=f'"{name}" entry',
        predicates=(f'has {{v}} under "{name}"', f'has the "{name}" entry {{v}}'),
        inversions=(f'{{v}} is the "{name}" entry of {{s}}',),
        questions=(f'What stands under "{name}" for {{s}}?',),
        known=False,
    )


def _verbal(verb: str, question: str, noun: str) -> Phrasing:
    cleft = f"It is {{v}} that {{s}} {verb}"
    return Phrasing(noun, (f"{verb} {{v}}",), (cleft,), (question,), known=False)


def _noun(noun: str) -> Phrasing:
    date = "date" in noun.split() or noun.endswith(("time", "year"))
    return Phrasing(
        noun=noun,
        predicates=(f"has {{v}} as {noun}", f"has the {noun} {{v}}"),
        inversions=(f"{{v}} is the {noun} of {{s}}", f"The {noun} of {{s}} is {{v}}"),
        questions=(f"What is the {noun} of {{s}}?",),
        value_kind="date" if date else "thing",
        known=False,
    )


@cache
def _table() -> dict[str, Phrasing]:
    table: dict[str, Phrasing] = {}
    text = Path(__file__).with_name("verbalisation.psv").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        labels, subject, value, predicates, inverted, asked, noun = line.split(" | ")
        names = tuple(name.strip() for name in labels.split(" = "))
        forms = Phrasing(
            noun=noun.strip() or names[0],
            predicates=_parts(predicates),
            inversions=_parts(inverted),
            questions=_parts(asked),
            subject_kind=subject.strip() or "thing",
            value_kind=value.strip() or "thing",
        )
        table.update(dict.fromkeys(names, forms))
    return table


def _parts(column: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in column.split(" / ") if part.strip())
