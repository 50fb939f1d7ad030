"""How English prose words the relations of knowledge graphs: cues, inverses, nationalities.

All tables are keyed by property labels in folded form, so they serve Wikidata labels
(``place of birth``), camel case (``birthPlace``) and upper snake case (``BIRTH_PLACE``) alike.
A property that no table knows is worded by its own label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from guardrail.cue_words import BORN, CUES, INVERSE_CUES
from guardrail.text.values import fold, stem, tokenise, word_set

__all__ = [
    "FUNCTIONAL",
    "RECORDS",
    "STOP_WORDS",
    "SYMMETRIC",
    "can_word",
    "cues",
    "describes_entity",
    "governs",
    "inverse_cues",
    "is_event",
    "is_functional",
    "is_language",
    "is_nationality",
    "is_personal",
    "is_place",
    "is_related",
    "is_role",
    "is_tie",
    "needs_word",
    "property_words",
    "ties",
]

STOP_WORDS = word_set(
    "a an the of in on at to by for from with as and or nor but is are was were be been being has "
    "have had do does did it its he she his her him hers they them their theirs this that these "
    "those which who whom whose what when where while than then there here not no also very too s "
    "into onto over under about after before during between through within without both each all "
    "any some more most other such only own same so can will would could should may might must i "
    "you we me my your our one if up out off per via"
)

SYMMETRIC = frozenset(
    {"spouse", "sibling", "cohabitant", "relative", "professional or sports partner"}
)

FUNCTIONAL = frozenset(
    {
        "date of birth", "birth date", "birth year", "date of death", "death date", "death year",
        "place of birth", "birth place", "place of death", "death place", "place of burial",
        "father", "mother", "sex or gender", "capital", "founded", "inception", "founding year",
        "elevation above the sea level", "population", "population total", "height",
        "area total", "customer rating", "price range", "family friendly", "runway length",
        "number of students",
        "area code", "postal code", "release date", "publication date", "eye color",
        "cause of death",
    }
)  # fmt: skip
"""Properties of which an entity has one value, so that another value contradicts it."""

DESCRIBING = frozenset(
    {
        "occupation", "instance of", "country of citizenship", "nationality", "ethnic group",
        "sex or gender", "eat type", "type", "profession", "noble title", "military rank",
        "position held", "field of work", "genre", "movement", "religion",
        "position played on team", "voice type", "sport", "instrument", "position", "category",
    }
)  # fmt: skip
"""Properties whose value alone describes the entity: "the Italian Baroque painter"."""

KIN = frozenset(
    {
        "father", "mother", "parent", "child", "children", "spouse", "sibling", "relative",
        "cohabitant",
    }
)  # fmt: skip
"""Family ties: two names side by side do not state them without a word for the tie."""

TIES = KIN | {
    "student of", "student", "doctoral advisor", "doctoral student", "influenced by",
    "professional or sports partner", "unmarried partner", "significant other",
}  # fmt: skip
"""Relations of one person to another."""

WORDED = TIES - {"influenced by"} | {"killed by"}
"""Ties that no sentence states without a word for them; influence is told in many ways."""

EVENTS = frozenset(
    {
        "date of birth", "birth date", "birth year", "place of birth", "birth place",
        "date of death", "death date", "death year", "place of death", "death place",
        "place of burial",
    }
)  # fmt: skip
"""What happens to somebody once."""

PERSONAL = EVENTS | {
    "occupation", "profession", "country of citizenship", "nationality", "ethnic group",
    "sex or gender", "noble title", "military rank", "position held", "field of work", "religion",
    "family", "noble family", "educated at", "alma mater", "academic degree", "employer",
    "member of", "member of political party", "residence", "work location", "ancestral home",
    "award received", "military branch", "languages spoken written or signed", "native language",
    "cause of death", "manner of death",
}  # fmt: skip
"""What is told of one person at a time: not of whoever else the clause names."""

ROLES = frozenset(
    {"instance of", "occupation", "profession", "position held", "noble title", "military rank"}
)
"""Properties whose value somebody is called."""

NATIONALITIES = frozenset({"country of citizenship", "nationality", "citizenship"})

LANGUAGES = ("languages spoken", "native language")

RECORDS = frozenset(
    {
        "given name", "surname", "family name", "depicted by", "described by source",
        "list of works", "discography", "filmography", "archives at", "topic s main category",
        "topic s main infobox", "topic s main template", "commons category", "different from",
        "said to be the same as", "name in native language", "birth name", "named after",
        "on focus list of wikimedia project", "has list", "maintained by wikiproject",
    }
)  # fmt: skip
"""Facts on names and records of an entity: a name in a sentence states none of them."""

GOVERNING = word_set("born died buried interred married wed divorced graduated")
"""Verbs that word one relation only, so that what they govern is a value of no other one."""

DOING = word_set(
    "worked works working lived lives living resided resides moved settled studied studies taught "
    "teaches travelled traveled visited met collaborated"
)
"""Verbs of what people do, which word neither their birth and death nor a tie to somebody."""

RELATED = word_set(
    "mother father parent parents mom dad stepmother stepfather child children son sons daughter "
    "daughters husband wife spouse partner lover widow widower fiance fiancee brother brothers "
    "sister sisters sibling siblings twin cousin uncle aunt nephew niece grandfather grandmother "
    "grandson granddaughter grandparents family teacher mentor tutor student students pupil friend "
    "friends colleague colleagues rival"
)
"""Nouns for somebody who is known as another one's: *her mother* is somebody else than she."""


@lru_cache(maxsize=16_384)
def property_words(label: str) -> str:
    """A property label as plain words: ``birthPlace``, ``BIRTH_PLACE`` → ``birth place``."""
    spaced = label if label.isupper() else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", label)
    return " ".join(re.sub(r"[\W_]+", " ", fold(spaced)).split())


@lru_cache(maxsize=16_384)
def cues(label: str) -> frozenset[str]:
    """Stems of the words by which prose names a property.

    Args:
        label: The property's label in any spelling.
    """
    words = property_words(label)
    return _stems(words.split()) | _stems(CUES.get(words, "").split())


@lru_cache(maxsize=16_384)
def inverse_cues(label: str) -> frozenset[str]:
    """Stems of the words that name a property read from its value to its subject."""
    words = property_words(label)
    if words in SYMMETRIC:
        return cues(label)
    return _stems(INVERSE_CUES.get(words, "").split()) or cues(label)


def is_functional(label: str) -> bool:
    """Whether an entity has one value of a property, so that another one contradicts it."""
    return property_words(label) in FUNCTIONAL


def describes_entity(label: str) -> bool:
    """Whether the value alone, put beside the entity, states the property."""
    return property_words(label) in DESCRIBING


def is_personal(label: str) -> bool:
    """Whether a property tells of one person what its clause says of its own subject."""
    return property_words(label) in PERSONAL


def is_event(label: str) -> bool:
    """Whether a property tells when or where somebody was born, died or was buried."""
    return property_words(label) in EVENTS


def is_role(label: str) -> bool:
    """Whether a property tells what somebody is called: a painter, a governor, a duke."""
    return property_words(label) in ROLES


def is_tie(label: str) -> bool:
    """Whether a property joins one person to another."""
    return property_words(label) in TIES


def is_language(label: str) -> bool:
    """Whether a property tells a language that somebody knows."""
    return property_words(label).startswith(LANGUAGES)


def is_place(label: str) -> bool:
    """Whether a property tells where something is or somebody was, which no adjective tells."""
    return not {"place", "location", "residence"}.isdisjoint(property_words(label).split())


def is_nationality(label: str) -> bool:
    """Whether a property tells the country that somebody is a citizen of."""
    return property_words(label) in NATIONALITIES


def needs_word(label: str) -> bool:
    """Whether prose states a property only with a word for it: an *Italian painter* speaks any."""
    words = property_words(label)
    return words in WORDED or is_event(label) or words in RECORDS or is_language(label)


def governs(word: str, label: str) -> bool:
    """Whether what a verb's stem governs is a value of a property only where it words that."""
    words = property_words(label)
    life = words in TIES or words in EVENTS
    return word in _GOVERNING_STEMS or (life and word in _DOING_STEMS)


def is_related(word: str) -> bool:
    """Whether a folded noun stands for somebody by their tie to another: *mother*, *teacher*."""
    return word in RELATED


def ties(label: str, noun: str) -> bool:
    """Whether a property is the tie that a noun names: *mother* and *parent*, not *occupation*."""
    return property_words(label) in TIES and stem(noun) in cues(label) | inverse_cues(label)


def can_word(word: str, label: str) -> bool:
    """Whether a verb's stem can word a property; any can one that no table knows."""
    words = property_words(label)
    if words not in CUES and words not in DESCRIBING:
        return True
    return (
        word in cues(label)
        or word in inverse_cues(label)
        or (words in KIN and word in BORN.split())
    )


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(
        token.stem for word in words for token in tokenise(word) if token.folded not in STOP_WORDS
    )


_GOVERNING_STEMS = _stems(GOVERNING)
_DOING_STEMS = _stems(DOING)
