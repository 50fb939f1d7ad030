"""Short biographies that the verbaliser writes from the shipped people graph."""

from __future__ import annotations

import random

from guardrail.core.types import Triple

__all__ = ["biographies"]

FACTS = 5
"""Facts about each person, in four sentences."""

PERSONS = """
    PREFIX wd: <http://www.wikidata.org/entity/> PREFIX wdt: <http://www.wikidata.org/prop/direct/>
    SELECT DISTINCT ?person WHERE { ?person wdt:P31 wd:Q5 }
"""

UNTOLD = frozenset(
    {
        "sex or gender", "given name", "surname", "instance of", "topic's main category",
        "topic's main infobox", "described by source", "depicted by", "list of works",
        "discography", "filmography", "archives at",
    }
)  # fmt: skip
"""Properties that no biography states, although their values occur in it as names."""


def biographies(rng: random.Random) -> list[tuple[str, tuple[Triple, ...]]]:
    """One text a person, with all facts that the graph has on them.

    Args:
        rng: Chooses facts and phrasings.
    """
    from benchmarks.verbalise import finish, predicate, surface
    from kg import open_people_graph

    graph = open_people_graph()
    ids = sorted(
        str(row[0]).rpartition("/")[2] for row in graph.query(PERSONS).rows if row[0] is not None
    )
    found = []
    for subgraph in graph.subgraphs(ids):
        facts = [fact for fact in subgraph.triples if fact.property not in UNTOLD]
        if len(facts) < FACTS:
            continue
        name = subgraph.entity.label
        sex = next((f.value for f in subgraph.triples if f.property == "sex or gender"), None)
        phrases = [
            predicate(fact.property, surface(fact.value, rng.randrange(4)), rng.randrange(3))
            for fact in rng.sample(facts, FACTS)
        ]
        he = {"male": "He", "female": "She"}.get(sex or "", name)
        lines = (
            f"{name} {phrases[0]}",
            f"{he} {phrases[1]} and {phrases[2]}",
            f"{he} {phrases[3]}",
            f"{he} {phrases[4]}",
        )
        triples = tuple(fact for fact in subgraph.triples if fact.property not in UNTOLD)
        found.append((" ".join(finish(line) for line in lines), triples))
    return found
