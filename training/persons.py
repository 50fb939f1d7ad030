"""The source rows of the shipped people graph as RDF with Wikidata ids.

The source names the values of facts by their labels only. What becomes of a value:

- a date becomes an ``xsd:date`` literal;
- the name of a person of the graph, as value of a relation between persons, becomes a link to
  that person's node, if exactly one person bears the name (or exactly one of several states the
  inverse relation) and the two life spans allow it;
- any other value becomes a plain literal: the source gives no id for it, a node made up here
  could not be cited, and "painter" or "German" must not be linked as if it were an entity.

Left out: values that are bare ids without a label, pages of Wikimedia's own housekeeping
(``Category:``, ``Template:``), and properties without a Wikidata id.
Each person also gets a ``schema:description`` put together from occupation, country and years.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError
from pyoxigraph import Literal, NamedNode, Triple

from guardrail.core.errors import KnowledgeGraphError
from guardrail.core.types import Value

__all__ = ["Fact", "Person", "build", "read_people"]

WD = "http://www.wikidata.org/entity/"
_WDT = "http://www.wikidata.org/prop/direct/"
_RDF_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_LABEL = NamedNode("http://www.w3.org/2000/01/rdf-schema#label")
_ALIAS = NamedNode("http://www.w3.org/2004/02/skos/core#altLabel")
_DESCRIPTION = NamedNode("http://schema.org/description")
_PROPERTY = NamedNode("http://wikiba.se/ontology#Property")
_DIRECT_CLAIM = NamedNode("http://wikiba.se/ontology#directClaim")
_DATE_TYPE = NamedNode("http://www.w3.org/2001/XMLSchema#date")
_INSTANCE_OF, HUMAN = "P31", "Q5"
_BORN, _DIED, _OCCUPATION, _CITIZEN = "P569", "P570", "P106", "P27"

_DATE = re.compile(r"-?\d{4,}-\d\d-\d\d")
_BARE_ID = re.compile(r"[QPL]\d+")
_HOUSEKEEPING = ("Category:", "Template:")
# Relations from person to person, with their inverses where Wikidata has one.
_FATHER, _MOTHER, _CHILD = "P22", "P25", "P40"
_BETWEEN_PERSONS: dict[str, tuple[str, ...]] = {
    _FATHER: (_CHILD,),
    _MOTHER: (_CHILD,),
    _CHILD: (_FATHER, _MOTHER),
    "P26": ("P26",),  # spouse
    "P451": ("P451",),  # unmarried partner
    "P1038": ("P1038",),  # relative
    "P3373": ("P3373",),  # sibling
    "P802": ("P1066",),  # student
    "P1066": ("P802",),  # student of
    "P184": ("P185",),  # doctoral supervisor
    "P185": ("P184",),  # doctoral student
    "P1290": (),  # godparent
    "P737": (),  # influenced by
    "P1327": ("P1327",),  # professional or sporting partner
    "P1365": ("P1366",),  # replaces
    "P1366": ("P1365",),  # replaced by
}
# Parents are this many years older than their children; other relations that need two living
# people ask for life spans that overlap. Unknown years forbid nothing.
_PARENT_AGE = (11, 90)
_CONTEMPORARY = ("P26", "P451", "P3373", "P802", "P1066", "P184", "P185", "P1290", "P1327")
_LONGEST_LIFE = 110


class Fact(Value):
    """One row of the source: property id, its label there, and the value's label."""

    pid: str | None
    property: str
    value: str


class Person(Value):
    """A person of the source with all facts."""

    qid: str
    name: str
    facts: tuple[Fact, ...]

    def first(self, pid: str) -> str | None:
        """The first value of a property."""
        return next((fact.value for fact in self.facts if fact.pid == pid), None)

    def year(self, pid: str) -> int | None:
        """The year of a date property; negative before the common era."""
        date = self.first(pid)
        if date is None or not _DATE.fullmatch(date):
            return None
        return int(date.rsplit("-", 2)[0])


def read_people(source: Path, stream: Iterable[bytes]) -> Iterator[Person]:
    """Read ``{qid, name, facts: [{pid, property, value}]}`` lines.

    Raises:
        KnowledgeGraphError: A line is no person; names the line.
    """
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        try:
            yield Person.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise KnowledgeGraphError(
                f"{source}, line {number}: not a person ({where or 'JSON'}: {first['msg']})"
            ) from error


def build(people: Iterable[Person], property_labels: dict[str, str]) -> Iterator[Triple]:
    """Yield the RDF of persons, sorted by person and property.

    Args:
        people: The persons with their facts.
        property_labels: Labels by property id; a label that the source uses and this table
            does not becomes an alias of the property.
    """
    people = sorted(people, key=lambda person: int(person.qid[1:]))
    by_name: dict[str, list[Person]] = defaultdict(list)
    for person in people:
        by_name[person.name].append(person)
    by_label: dict[str, list[str]] = defaultdict(list)
    for known, label in property_labels.items():
        by_label[label].append(known)
    spelling: dict[str, Counter[str]] = defaultdict(Counter)

    yield Triple(NamedNode(WD + HUMAN), _LABEL, Literal("human", language="en"))
    for person in people:
        node = NamedNode(WD + person.qid)
        yield Triple(node, _LABEL, Literal(person.name, language="en"))
        description = _describe(person)
        if description:
            yield Triple(node, _DESCRIPTION, Literal(description, language="en"))
        for fact in person.facts:
            owners = by_label.get(fact.property, [])
            pid = fact.pid if fact.pid or len(owners) != 1 else owners[0]
            value = fact.value.strip()
            if pid is None or not value or _BARE_ID.fullmatch(value):
                continue
            if value.startswith(_HOUSEKEEPING):
                continue
            spelling[pid][fact.property] += 1
            yield Triple(node, NamedNode(_WDT + pid), _value(person, pid, value, by_name))

    for used in sorted(spelling, key=lambda pid: int(pid[1:])):
        node = NamedNode(WD + used)
        label = property_labels.get(used) or spelling[used].most_common(1)[0][0]
        yield Triple(node, _RDF_TYPE, _PROPERTY)
        yield Triple(node, _DIRECT_CLAIM, NamedNode(_WDT + used))
        yield Triple(node, _LABEL, Literal(label, language="en"))
        for other in sorted(set(spelling[used]) - {label}):
            yield Triple(node, _ALIAS, Literal(other, language="en"))


def _value(
    person: Person, pid: str, value: str, by_name: dict[str, list[Person]]
) -> NamedNode | Literal:
    if pid == _INSTANCE_OF and value == "human":
        return NamedNode(WD + HUMAN)
    if pid in (_BORN, _DIED) and _DATE.fullmatch(value):
        return Literal(value, datatype=_DATE_TYPE)
    if pid in _BETWEEN_PERSONS:
        bearers = [
            other
            for other in by_name.get(value, ())
            if other.qid != person.qid and _possible(person, pid, other)
        ]
        if len(bearers) > 1:
            inverses = _BETWEEN_PERSONS[pid]
            bearers = [
                other
                for other in bearers
                if any(f.pid in inverses and f.value == person.name for f in other.facts)
            ]
        if len(bearers) == 1:
            return NamedNode(WD + bearers[0].qid)
    return Literal(value)


def _possible(person: Person, pid: str, other: Person) -> bool:
    """Whether the life spans allow ``other`` as the value of the relation."""
    if pid in (_FATHER, _MOTHER, _CHILD):
        parent, child = (person, other) if pid == _CHILD else (other, person)
        born, begot = parent.year(_BORN), child.year(_BORN)
        if born is not None and begot is not None:
            return _PARENT_AGE[0] <= begot - born <= _PARENT_AGE[1]
        return True
    if pid not in _CONTEMPORARY:
        return True
    (start, end), (other_start, other_end) = _life(person), _life(other)
    return start <= other_end and other_start <= end


def _life(person: Person) -> tuple[float, float]:
    """First and last year a person may have lived in."""
    born, died = person.year(_BORN), person.year(_DIED)
    start = born if born is not None else (died - _LONGEST_LIFE if died is not None else None)
    end = died if died is not None else (born + _LONGEST_LIFE if born is not None else None)
    return (
        float("-inf") if start is None else start,
        float("inf") if end is None else end,
    )


def _describe(person: Person) -> str | None:
    """One line such as ``painter, Italy (1593–1656)`` from the person's own facts."""
    parts = [
        value
        for pid in (_OCCUPATION, _CITIZEN)
        if (value := person.first(pid)) and not _BARE_ID.fullmatch(value)
    ]
    text = ", ".join(parts)
    born, died = person.year(_BORN), person.year(_DIED)
    if born is not None or died is not None:
        years = f"{_write(born)}–{_write(died)}"
        text = f"{text} ({years})" if text else years
    return text or None


def _write(year: int | None) -> str:
    if year is None:
        return "?"
    return str(year) if year > 0 else f"{-year} BC"
