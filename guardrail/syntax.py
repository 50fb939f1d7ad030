"""What several modules read from spaCy's parse in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from spacy.tokens import Token as ParsedToken

__all__ = [
    "CLAUSAL_SUBJECTS",
    "COMPLEMENTS",
    "MODIFIERS",
    "RELATIVE",
    "SUBJECTS",
    "end_of",
    "is_main_subject",
    "possessors",
]

SUBJECTS: Final = frozenset({"nsubj", "nsubjpass"})
"""Dependencies of nouns and pronouns that are subjects."""

CLAUSAL_SUBJECTS: Final = SUBJECTS | {"csubj", "csubjpass"}
"""The same with clauses that are subjects."""

COMPLEMENTS: Final = frozenset({"acomp", "attr", "oprd"})
"""How what somebody is hangs on its verb."""

MODIFIERS: Final = frozenset({"amod", "compound", "nmod"})
"""How a word hangs on the noun that it specifies."""

RELATIVE: Final = frozenset({"WP", "WDT"})
"""Tags of *who* and *which*."""


def end_of(token: ParsedToken) -> int:
    """Offset past a token's last character."""
    return int(token.idx + len(token.text))


def is_main_subject(token: ParsedToken) -> bool:
    """Whether a token is the subject of its sentence's main clause."""
    return token.dep_ in CLAUSAL_SUBJECTS and token.head.dep_ == "ROOT"


def possessors(noun: ParsedToken) -> Iterator[ParsedToken]:
    """Yield whose a noun is: *Bruno* and *her* in *father of Bruno* and *her father*."""
    for child in noun.children:
        if child.dep_ == "prep" and child.lower_ == "of":
            yield next((one for one in child.children if one.dep_ == "pobj"), child)
        elif child.dep_ == "poss":
            yield child
