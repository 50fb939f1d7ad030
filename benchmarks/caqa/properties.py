"""Properties that the construction treats apart, by their labels."""

from __future__ import annotations

from guardrail.core.types import Triple

__all__ = ["NEAR", "WIDE", "is_sensitive"]

NEAR = tuple(
    frozenset(names.split("; "))
    for names in (
        "capital; capital of; located in the administrative territorial entity; country; part of",
        "native language; languages spoken; languages spoken, written or signed",
        "original language of film or TV show; language of work or name",
        "location; located in the administrative territorial entity; country; continent; part of",
        "headquarters location; location; location of formation; country",
        "father; mother; child; relative; sibling",
        "student; student of; doctoral advisor; doctoral student; influenced by",
        "spouse; cohabitant; relative",
        "followed by; follows; succeeded by; succeeds",
        "occupation; position held; field of work; noble title",
        "position (on team); position played on team; position played on team / speciality",
        "part of; has part; subclass of; instance of; member of",
        "twin town; diplomatic relation",
        "award received; nominated for",
        "place of death; place of burial; residence",
        "cause of death; manner of death; killed by",
        "author; creator; screenwriter; composer; lyrics by; designer; developer; manufacturer",
        "producer; production company; director",
        "genre; movement; sport; field of work",
        "country of origin; country of citizenship; country for sport",
        "employer; work location; affiliation; member of",
        "publication date; inception; start time",
    )
)
"""Properties whose facts bear on each other; one of them does not surround a query on another."""

WIDE = frozenset({"has part", "instance of", "part of", "subclass of"})
"""Properties of things of every type, which are not asked about: an exchanged value is absurd."""

_SENSITIVE = {
    "P91": ("sexual orientation",),
    "P140": ("religion", "religion or worldview"),
    "P172": ("ethnic group", "ethnicity"),
    "P1050": ("medical condition",),
    "P1399": ("convicted of",),
    "P157": ("killed by",),
    "P3461": ("designated as terrorist by",),
}
"""Ids and labels of what is never said falsely of anybody: the special categories of personal data
of Art. 9 of the GDPR (sex life and orientation, religion, ethnic origin, health) and the offences
of its Art. 10. Wikidata's policy on living people asks for the same care with such statements.
Parties and political ideologies, which Art. 9 names too, are public in politicians and stay in."""
_SENSITIVE_LABELS = frozenset(label for labels in _SENSITIVE.values() for label in labels)


def is_sensitive(triple: Triple) -> bool:
    """Whether a false fact of this property would tell something intimate or defamatory."""
    return triple.property_id in _SENSITIVE or triple.property.casefold() in _SENSITIVE_LABELS
