"""What is asked and answered, and how a question names the fault that some part is to have."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

__all__ = [
    "CANARY",
    "CASES",
    "DEADLINE_S",
    "FAULTS",
    "HANG_S",
    "LATE_S",
    "PARTS",
    "PERSONS",
    "RIGHT",
    "Case",
    "Fault",
    "Part",
    "Way",
    "answer_about",
    "fault_of",
    "faults_in",
    "turtle",
]

Way = Literal["check", "ask", "rank", "gateway", "stream", "mcp", "bulk", "load"]
Part = Literal["none", "graph", "model", "judge", "disk"]
Fault = Literal["none", "late", "hang", "reset", "garbage", "half", "full"]

DEADLINE_S = 2.0
"""Seconds that an answer may take."""
LATE_S = 2.6
"""Delay of late replies, in seconds: longer than the deadline."""
HANG_S = 5.0
"""Seconds for which what hangs hangs."""

FAULTS: tuple[Fault, ...] = ("late", "hang", "reset", "garbage", "half", "full")
"""An answer that comes too late, none, a broken connection or an error that nobody foresaw, an
answer that is none, one that is cut short, and no room left."""

Stage = Literal["names", "facts"]
STAGES: tuple[Stage, ...] = ("names", "facts")

PERSONS: dict[str, tuple[Fault, Stage]] = {
    "Mary Shelley": ("none", "names"),
    "Jane Goodall": ("late", "names"),
    "Alan Turing": ("hang", "names"),
    "Grace Hopper": ("reset", "names"),
    "Marie Curie": ("garbage", "names"),
    "Charles Darwin": ("half", "names"),
    "Jane Austen": ("full", "names"),
    "Isaac Newton": ("late", "facts"),
    "Emmy Noether": ("hang", "facts"),
    "Rosalind Franklin": ("reset", "facts"),
    "Lise Meitner": ("garbage", "facts"),
    "Niels Bohr": ("half", "facts"),
    "Virginia Woolf": ("full", "facts"),
}
"""Who a question is about: how the graph's endpoint fails in queries for all but the first, and
whether while their names are looked up or while their facts are read."""

FIRST_ID = 900_000
"""The number of the first person's node; the others follow."""

CANARY = "zanzibarcanary"
"""Marks the false sentence of every answer; no released text may contain it."""
RIGHT = "was a writer"
"""Marks the true sentence of every answer."""

PARTS: dict[Way, tuple[Part, ...]] = {
    "check": ("graph", "judge", "disk"),
    "ask": ("graph", "model", "judge", "disk"),
    "rank": ("graph", "judge", "disk"),
    "gateway": ("graph", "model", "judge", "disk"),
    "stream": ("graph", "model", "judge", "disk"),
    "mcp": ("graph", "judge", "disk"),
    "bulk": ("graph", "judge", "disk"),
    "load": ("disk",),
}

_TOKEN = re.compile(r"\((model|judge) (\w+)\)")


class Case(NamedTuple):
    """One run: entry point, faulty part, its fault and, for a graph, the failing queries."""

    way: Way
    part: Part
    fault: Fault
    stage: Stage = "names"

    @property
    def person(self) -> str:
        """Who the question is about."""
        wanted = (self.fault, self.stage) if self.part == "graph" else ("none", "names")
        return next(name for name, fails in PERSONS.items() if fails == wanted)

    @property
    def question(self) -> str:
        """The question, which names the fault of a model or a judge."""
        token = f" ({self.part} {self.fault})" if self.part in ("model", "judge") else ""
        return f"Who was {self.person}?{token}"

    @property
    def answer(self) -> str:
        """A true sentence and a false one."""
        return answer_about(self.person)


def answer_about(person: str) -> str:
    """A true sentence about somebody and a false one."""
    return f"{person} {RIGHT}. {person} was born in 1999 in {CANARY}."


def fault_of(query: str) -> Fault:
    """How the endpoint fails in a query."""
    for number, (name, (fault, stage)) in enumerate(PERSONS.items(), start=FIRST_ID):
        if (name if stage == "names" else f"Q{number}") in query:
            return fault
    return "none"


def faults_in(text: str) -> dict[str, str]:
    """The faults that a question names, by part."""
    return dict(_TOKEN.findall(text))


def _can_fail(way: Way, part: Part, fault: Fault) -> bool:
    """Whether there is such a fault: nothing waits for a disk in ``bulk`` and ``load``."""
    return not (way in ("bulk", "load") and part == "disk" and fault in ("late", "hang"))


CASES: tuple[Case, ...] = tuple(
    case
    for way, parts in PARTS.items()
    for case in (
        Case(way, "none", "none"),
        *(
            Case(way, part, fault, stage)
            for part in parts
            for fault in FAULTS
            for stage in (STAGES if part == "graph" else STAGES[:1])
            if _can_fail(way, part, fault)
        ),
    )
)
"""Every case there is."""


def turtle() -> str:
    """What the graph knows of the persons, in Wikidata's form."""
    lines = [
        "@prefix wd: <http://www.wikidata.org/entity/> .",
        "@prefix wdt: <http://www.wikidata.org/prop/direct/> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        "@prefix wikibase: <http://wikiba.se/ontology#> .",
        'wd:Q5 rdfs:label "human"@en .',
        'wd:P31 wikibase:directClaim wdt:P31 ; rdfs:label "instance of"@en .',
        'wd:P106 wikibase:directClaim wdt:P106 ; rdfs:label "occupation"@en .',
    ]
    lines += [
        f'wd:Q{FIRST_ID + number} rdfs:label "{person}"@en ; wdt:P31 wd:Q5 ; wdt:P106 "writer" .'
        for number, person in enumerate(PERSONS)
    ]
    return "\n".join(lines) + "\n"
