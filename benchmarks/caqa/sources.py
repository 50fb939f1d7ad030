"""Read the triples of a data folder: the people graph, and larger graphs put together."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.caqa.graph import FactGraph, node_of
from guardrail.core.errors import InputError
from guardrail.core.types import Triple

if TYPE_CHECKING:
    from kg.sparql import SparqlGraph
    from kg.store import OxigraphGraph

__all__ = ["assemble", "from_knowledge_graph", "open_source", "people_graph", "read_json_lines"]

_BARE_ID = re.compile(r"Q\d+")
_HUMAN = "Q5"
_BATCH = 256
_SKIP = frozenset(
    {
        "topic's main category", "topic's main infobox", "coat of arms", "described by source",
        "said to be the same as", "discography", "filmography", "list of works", "depicted by",
    }
)  # fmt: skip
"""Properties that link a wiki's own pages, not the world."""


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Rows of a JSON-lines file, gzipped or not.

    Raises:
        InputError: The file is missing or a line is not a JSON object.
    """
    if not path.is_file():
        raise InputError(f"no such file: {path}")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            row = json.loads(line)
            if not isinstance(row, dict):
                raise InputError(f"{path}:{number} is not a JSON object")
            yield row


def people_graph(path: Path) -> FactGraph:
    """The graph of ``people.jsonl.gz``; values that are persons of the file get their id."""
    triples = list(_people(path))
    return FactGraph(_joined(triples), _humans(triples))


def assemble(data: Path) -> FactGraph:
    """The larger graph: people, the triples of TekGen and those of ParaRel.

    Labels that exactly one id carries are joined to it, so that facts of different sources meet.

    Args:
        data: Folder with ``kg/`` and ``triples/``.
    """
    labels = {
        str(row["pid"]): str(row["label"])
        for row in read_json_lines(data / "kg/wikidata_property_labels.jsonl.gz")
    }
    triples = list(_people(data / "kg/people.jsonl.gz"))
    for part in ("train", "validation"):
        for row in read_json_lines(data / f"triples/tekgen_{part}.jsonl.gz"):
            pid = str(row["rel"])
            triples.append(
                Triple(
                    subject=str(row["sub_label"]),
                    property=labels.get(pid, str(row["rel_label"])),
                    value=str(row["obj_label"]),
                    subject_id=str(row["sub"]) if row["sub"] else None,
                    property_id=pid,
                    value_id=str(row["obj"]) if row["obj"] else None,
                )
            )
    for row in read_json_lines(data / "triples/pararel.jsonl.gz"):
        pid = str(row["pid"])
        triples.append(
            Triple(
                subject=str(row["sub_label"]),
                property=labels.get(pid, pid),
                value=str(row["obj_label"]),
                property_id=pid,
            )
        )
    return FactGraph(_joined(triples), _humans(triples))


def open_source(source: str, *, limit: int = 1_000_000, ids: Sequence[str] = ()) -> FactGraph:
    """The graph that a command names.

    Args:
        source: A folder of benchmark data (``assemble``), a JSON-lines file of persons or of
            triples (``subject``, ``property``, ``value`` and their ids), or what
            ``kg.opening.open_graph`` opens: an on-disk graph, an RDF file, a SPARQL
            endpoint, ``people`` for the shipped graph.
        limit: Most subjects to read from a graph.
        ids: Read these entities and their neighbours instead of the first ``limit``.

    Raises:
        KnowledgeGraphError: There is no graph, or it cannot be read.
    """
    path = Path(source)
    if (path / "kg/people.jsonl.gz").is_file():
        return assemble(path)
    if path.is_file() and path.name.removesuffix(".gz").endswith(".jsonl"):
        first = next(read_json_lines(path), {})
        return people_graph(path) if "facts" in first else _triple_file(path)
    from kg.opening import open_graph

    graph = open_graph(source)
    try:
        return from_knowledge_graph(graph, limit=limit, ids=ids)
    finally:
        graph.close()


def from_knowledge_graph(
    graph: OxigraphGraph | SparqlGraph, *, limit: int = 1_000_000, ids: Sequence[str] = ()
) -> FactGraph:
    """Read a graph that is open: all of it, or the entities given and their neighbours."""
    if ids:
        nodes = list(ids)
        around = graph.subgraphs(nodes)
        nodes += [
            t.value_id
            for sub in around
            for t in sub.triples
            if t.value_id and t.value_id not in ids
        ]
        nodes = list(dict.fromkeys(nodes))[:limit]
    else:
        asked = "SELECT DISTINCT ?s WHERE { ?s ?p ?o . FILTER(isIRI(?s)) }"
        rows = graph.query(f"{asked} LIMIT {limit}").rows
        nodes = [graph.profile.short(str(row[0])) for row in rows]
    triples: list[Triple] = []
    types: dict[str, tuple[str, ...]] = {}
    for start in range(0, len(nodes), _BATCH):
        batch = nodes[start : start + _BATCH]
        for sub in graph.subgraphs(batch):
            triples += (t for t in sub.triples if t.property not in _SKIP)
            if sub.entity.types:
                types[node_of(sub.entity.label, sub.entity.id)] = sub.entity.types
    return FactGraph(triples, types)


def _triple_file(path: Path) -> FactGraph:
    return FactGraph(Triple.model_validate(row) for row in read_json_lines(path))


def _people(path: Path) -> Iterator[Triple]:
    for row in read_json_lines(path):
        facts = row["facts"]
        if not isinstance(facts, list):
            raise InputError(f"{path}: a person without a list of facts")
        for fact in facts:
            if _BARE_ID.fullmatch(fact["value"]) or fact["property"] in _SKIP:
                continue
            yield Triple(
                subject=str(row["name"]),
                property=fact["property"],
                value=fact["value"],
                subject_id=str(row["qid"]),
                property_id=fact["pid"],
            )


def _humans(triples: list[Triple]) -> dict[str, tuple[str, ...]]:
    return {
        node_of(t.subject, t.subject_id): (_HUMAN,)
        for t in triples
        if t.property == "instance of" and t.value == "human"
    }


def _joined(triples: list[Triple]) -> Iterator[Triple]:
    """Give nodes without id the id that their label has elsewhere, where it has just one."""
    ids: dict[str, set[str]] = {}
    for triple in triples:
        for label, known in ((triple.subject, triple.subject_id), (triple.value, triple.value_id)):
            if known:
                ids.setdefault(label, set()).add(known)
    only = {label: next(iter(found)) for label, found in ids.items() if len(found) == 1}
    for triple in triples:
        yield triple.model_copy(
            update={
                "subject_id": triple.subject_id or only.get(triple.subject),
                "value_id": triple.value_id or only.get(triple.value),
            }
        )
