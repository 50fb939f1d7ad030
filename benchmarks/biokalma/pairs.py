"""Name pairs and their disambiguation (KaLMA 2.2): two persons that a stated relation connects."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from guardrail.core.errors import InputError
from guardrail.core.types import Entity, Triple, Value
from kg.base import KnowledgeGraph, QueryResult

__all__ = ["NamePair", "PersonPair", "disambiguate", "pairs_from_csv", "pairs_from_graph"]

# Relations of Wikidata whose subject and value are both persons.
PERSON_RELATIONS = (
    "P22",  # father
    "P25",  # mother
    "P26",  # spouse
    "P40",  # child
    "P451",  # unmarried partner
    "P1038",  # relative
    "P1066",  # student of
    "P802",  # student
    "P184",  # doctoral advisor
    "P185",  # doctoral student
    "P737",  # influenced by
    "P1327",  # partner in business or sport
    "P3373",  # sibling
)

# A family name and a given name: shorter names are too ambiguous (KaLMA 2.2).
_MIN_WORDS = 2


class NamePair(Value):
    """Two names and the relation between them, as a text or a table states it."""

    first: str
    relation: str
    second: str


class PersonPair(Value):
    """Two entities of the graph, and the triple that connects them."""

    first: Entity
    second: Entity
    link: Triple


class Queryable(Protocol):
    """A graph that answers SPARQL."""

    def query(self, sparql: str) -> QueryResult:
        """Run a query."""
        ...


def pairs_from_graph(graph: Queryable, limit: int = 100_000) -> list[NamePair]:
    """The name pairs of all person–person relations of a graph with Wikidata's vocabulary.

    Args:
        graph: A graph that answers SPARQL.
        limit: Most pairs to read.

    Raises:
        KnowledgeGraphError: The graph cannot answer.
        InputError: It holds no such relations.
    """
    relations = " ".join(f"wdt:{relation}" for relation in PERSON_RELATIONS)
    result = graph.query(
        "PREFIX wdt: <http://www.wikidata.org/prop/direct/> "
        "PREFIX wd: <http://www.wikidata.org/entity/> "
        "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
        "SELECT DISTINCT ?first ?relation ?second WHERE { "
        f"VALUES ?p {{ {relations} }} ?a ?p ?b . "
        "?a wdt:P31 wd:Q5 . ?b wdt:P31 wd:Q5 . "
        "?a rdfs:label ?first . ?b rdfs:label ?second . "
        'FILTER(LANG(?first) IN ("en", "") && LANG(?second) IN ("en", "")) '
        'BIND(STRAFTER(STR(?p), "direct/") AS ?relation) '
        f"}} ORDER BY ?first ?relation ?second LIMIT {limit}"
    )
    pairs = [
        NamePair(first=str(row[0]), relation=str(row[1]), second=str(row[2]))
        for row in result.rows
        if None not in row
    ]
    if not pairs:
        raise InputError(
            "the graph has no person–person relations of Wikidata; give name pairs with --pairs"
        )
    return pairs


def pairs_from_csv(path: Path) -> list[NamePair]:
    """Read name pairs from a CSV file with the columns name, relation, name.

    The relation is a property's label or id; a header line ``first,relation,second`` is skipped.

    Raises:
        InputError: The file cannot be read, or a line has no three columns.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read name pairs from {path}: {error}") from error
    if rows and [cell.lower() for cell in rows[0]] == ["first", "relation", "second"]:
        rows = rows[1:]
    for number, row in enumerate(rows, start=1):
        if len(row) != 3 or not all(row):
            raise InputError(f"{path}, pair {number}: expected three columns, name,relation,name")
    return [NamePair(first=row[0], relation=row[1], second=row[2]) for row in rows]


def disambiguate(graph: KnowledgeGraph, pairs: Iterable[NamePair]) -> list[PersonPair]:
    """Map each pair of names to the two entities that the stated relation connects (KaLMA 2.2).

    Pairs with an incomplete name, and pairs that no two entities connect, are left out; of two
    pairs of the same persons the first stays.

    Raises:
        KnowledgeGraphError: The graph cannot answer.
    """
    complete = [
        pair
        for pair in dict.fromkeys(pairs)
        if min(len(pair.first.split()), len(pair.second.split())) >= _MIN_WORDS
        and pair.first != pair.second
    ]
    names = list(dict.fromkeys(name for pair in complete for name in (pair.first, pair.second)))
    found = dict(zip(names, graph.find(names), strict=True))
    ids = list(dict.fromkeys(entity.id for entities in found.values() for entity in entities))
    links: dict[tuple[str, str], list[Triple]] = {}
    for triple in graph.links(ids):
        if triple.subject_id and triple.value_id:
            links.setdefault((triple.subject_id, triple.value_id), []).append(triple)
    result: list[PersonPair] = []
    seen: set[frozenset[str]] = set()
    for pair in complete:
        match = _connected(found[pair.first], pair.relation, found[pair.second], links)
        if match is None or frozenset((match.first.id, match.second.id)) in seen:
            continue
        seen.add(frozenset((match.first.id, match.second.id)))
        result.append(match)
    return result


def _connected(
    firsts: Sequence[Entity],
    relation: str,
    seconds: Sequence[Entity],
    links: dict[tuple[str, str], list[Triple]],
) -> PersonPair | None:
    for first in firsts:
        for second in seconds:
            for triple in links.get((first.id, second.id), ()):
                if relation in (triple.property, triple.property_id):
                    return PersonPair(first=first, second=second, link=triple)
    return None
