"""The people graph that ships with the package: some 1,000 persons with Wikidata ids."""

from __future__ import annotations

import gzip
from functools import cache
from importlib.resources import files
from io import BytesIO

from pyoxigraph import RdfFormat, Store

from guardrail.core.errors import KnowledgeGraphError
from kg.store import OxigraphGraph, snapshot_of

__all__ = ["open_people_graph"]


def open_people_graph() -> OxigraphGraph:
    """Open the embedded people graph, in memory; made by ``training.people``.

    Each call gives a graph of its own over one shared store, so that closing one does not
    disturb another; the store itself is read once in a process. Read only by convention: what
    one caller adds to the store, all see.

    Raises:
        KnowledgeGraphError: If the package is installed without its data.
    """
    store, snapshot = _store()
    return OxigraphGraph(store, profile="wikidata", name="people", snapshot=snapshot)


@cache
def _store() -> tuple[Store, str]:
    source = files("kg").joinpath("data/people.nt.gz")
    try:
        packed = source.read_bytes()
        text = gzip.decompress(packed)
    except (OSError, EOFError) as error:
        raise KnowledgeGraphError(
            f"the people graph is missing or damaged ({error}); reinstall kg-guardrail"
        ) from error
    store = Store()
    # The file is written by this project's own build, so its IRIs need no second check.
    store.bulk_load(input=text, format=RdfFormat.N_TRIPLES, lenient=True)
    return store, snapshot_of(BytesIO(packed))
