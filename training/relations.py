"""What training needs to know of relations: which have one value, which mirror each other."""

from __future__ import annotations

__all__ = [
    "FUNCTIONAL",
    "IMPLIED",
    "INVERSE",
    "MIXED_UP",
    "ONE_WAY",
    "readable",
    "single_valued",
]


def _labels(text: str) -> frozenset[str]:
    return frozenset(" ".join(label.split()) for label in text.split(";"))


FUNCTIONAL = _labels(
    """
    date of birth; date of death; place of birth; place of death; father; mother; sex or gender;
    gender; surname; family name; cause of death; manner of death; place of burial; birth place;
    death place; birth date; death date; birth name; country; capital; continent; country of origin;
    headquarters location; inception; original network; original broadcaster; parent taxon;
    mouth of the watercourse; constellation; publication date; start time; end time; director;
    author; voice type; competition class; league; country for sport; mountain range;
    site of astronomical discovery; sports season of league or competition; followed by;
    origin of the watercourse; drainage basin; minor planet group; place of publication;
    next higher rank; military casualty classification; parent peak; reservoir created;
    location of formation; native language; manufacturer; language of work or name;
    original language of film or tv show; place of residence; location of landing;
    spacecraft docking/undocking date; date of official opening; point in time; height; mass;
    elevation above sea level; population; area; length;
    food; price range; customer rating; family friendly; located in;
    leader name; leader; president; runway length; elevation; established; city served; city; date;
    operating organisation; isbn number; issn number; oclc number; lccn number; number of members;
    number of pages; number of students; academic staff size; first elected; result; year;
    completion date; floor count; floor area; building start date; currency; demonym; position;
    nationality; state; largest city; icao location identifier; campus; status; score; enrollment;
    date of retirement; year of construction; county; architectural style; time; directed by;
    written by; original air date; 1st runway length feet; full name; abbreviation; preceded by;
    championship; population density; location; owner; operator; publisher; hometown; commander
    """
)
"""Labels of relations that have one true value, lower case; a second value contradicts.

Where a label can have several values in principle (director), text that names one of them is
still read as excluding another."""

INVERSE = {
    "spouse": "spouse",
    "sibling": "sibling",
    "student": "student of",
    "student of": "student",
    "capital": "capital of",
    "capital of": "capital",
    "has part": "part of",
    "part of": "has part",
    "shares border with": "shares border with",
    "twinned administrative body": "twinned administrative body",
    "diplomatic relation": "diplomatic relation",
    "followed by": "follows",
    "follows": "followed by",
}
"""Relation that holds from value to subject when the key holds from subject to value."""

IMPLIED = {"father": "child", "mother": "child", **INVERSE}
"""Relation from value to subject that follows from the key; not every one follows back."""

ONE_WAY = _labels(
    """
    father; mother; child; student; student of; doctoral advisor; doctoral student; part of;
    has part; capital; capital of; follows; followed by; replaces; replaced by; influenced by;
    parent astronomical body; parent taxon; tributary; mouth of the watercourse; employer;
    founded by; named after; killed by
    """
)
"""Labels of relations that cannot hold both from A to B and from B to A."""

MIXED_UP = (
    ("date of birth", "date of death"),
    ("place of birth", "place of death"),
    ("father", "mother"),
    ("father", "child"),
    ("mother", "child"),
    ("place of death", "place of burial"),
    ("inception", "publication date"),
    ("director", "author"),
    ("student", "student of"),
    ("follows", "followed by"),
)
"""Pairs of relations that a careless reader takes for each other."""


def readable(label: str) -> str:
    """A relation's label as words: ``RUNWAY_LENGTH`` and ``runwayLength`` -> *runway length*."""
    spaced = "".join(
        f" {c}" if c.isupper() and i and label[i - 1].islower() else c for i, c in enumerate(label)
    )
    return " ".join(spaced.replace("_", " ").strip("[] ").lower().split())


def single_valued(label: str) -> bool:
    """Tell whether a relation has one true value."""
    return readable(label) in FUNCTIONAL
