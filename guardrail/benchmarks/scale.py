"""Loading and look-ups by the size of the graph: ``python -m guardrail.benchmarks.scale``.

A graph of persons is written as gzipped N-Triples and loaded, once by the store alone and once as
``guardrail kg load`` does it, with labels indexed and files merged. Then names are spotted, found
and their neighbourhoods read, each person once, so that no cache helps.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, cast

from pyoxigraph import RdfFormat, Store

from guardrail.types import Value
from kg import OxigraphGraph, load_graph
from kg.memory import peak_mb

__all__ = ["Measured", "measure", "write_people"]

_LABEL: Final = "<http://www.w3.org/2000/01/rdf-schema#label>"
_DATE: Final = "<http://www.w3.org/2001/XMLSchema#date>"
_WD, _WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
_CITIES: Final = 100
_PER_PERSON: Final = 6
_FIRST: Final = 1000
_HUB_EVERY: Final = 8
"""One person in so many was born in the first city, which is the hub."""


class Measured(Value):
    """What was measured on a graph of one size; times in milliseconds of processor time.

    Attributes:
        triples: Triples of the graph.
        store_rate: Triples a second of the store alone, by wall time.
        load_rate: Triples a second of the whole load, by wall time.
        processor_ratio: Processor time of the whole load over that of the store alone.
        look_up: Median of a person: spot, find, one hop.
        look_up_p95: The 95th percentile.
        hub: The hub, on a graph opened anew.
        peak_mb: Most memory of the process so far.
    """

    triples: int
    store_rate: float
    load_rate: float
    processor_ratio: float
    look_up: float
    look_up_p95: float
    hub: float
    peak_mb: float | None


def write_people(path: Path, triples: int, seed: int = 1) -> int:
    """Write a graph of about so many triples; returns the number of its persons."""
    persons = max(1, triples // _PER_PERSON)
    with gzip.open(path, "wt", compresslevel=5) as file:
        for line in _lines(persons, random.Random(seed)):
            file.write(line)
    return persons


def _lines(persons: int, chance: random.Random) -> Iterator[str]:
    for city in range(1, _CITIES + 1):
        yield f'<{_WD}Q{city}> {_LABEL} "City{city}"@en .\n'
    for pid, label in (("P19", "place of birth"), ("P26", "spouse"), ("P569", "date of birth")):
        yield f'<{_WD}{pid}> {_LABEL} "{label}"@en .\n'
    for n in range(persons):
        node = f"<{_WD}Q{_FIRST + n}>"
        city = 1 if n % _HUB_EVERY == 0 else chance.randint(2, _CITIES)
        yield (
            f'{node} {_LABEL} "{_name(n)}"@en .\n'
            f"{node} <{_WDT}P31> <{_WD}Q5> .\n"
            f"{node} <{_WDT}P19> <{_WD}Q{city}> .\n"
            f'{node} <{_WDT}P569> "19{chance.randint(10, 99)}-01-1{n % 10}"^^{_DATE} .\n'
            f"{node} <{_WDT}P26> <{_WD}Q{_FIRST + chance.randrange(persons)}> .\n"
            f'{node} <{_WDT}P106> "job {chance.randrange(5000)}"@en .\n'
        )


def _name(n: int) -> str:
    return f"Ana{n} Smith{n // 7}"


def measure(triples: int, folder: Path, *, look_ups: int = 2000) -> Measured:
    """Write, load and look up a graph of one size in a folder."""
    source = folder / f"{triples}.nt.gz"
    persons = write_people(source, triples)
    wall, spent = time.perf_counter(), time.process_time()
    store = Store(str(folder / f"store{triples}"))
    with gzip.open(source) as file:
        store.bulk_load(input=cast("IO[bytes]", file), format=RdfFormat.N_TRIPLES)
    alone_wall, alone = time.perf_counter() - wall, time.process_time() - spent
    del store
    spent = time.process_time()
    report = load_graph(source, folder / f"graph{triples}")
    whole = time.process_time() - spent
    graph = OxigraphGraph.open(folder / f"graph{triples}")
    graph.find(["City2"])
    chosen = random.Random(2).sample(range(persons), min(look_ups, persons))
    times = sorted(_look_up(graph, _name(n)) for n in chosen)
    graph.close()
    graph = OxigraphGraph.open(folder / f"graph{triples}")
    graph.find(["City2"])
    hub = _look_up(graph, "City1")
    graph.close()
    return Measured(
        triples=report.triples,
        store_rate=report.triples / alone_wall,
        load_rate=report.rate,
        processor_ratio=whole / alone,
        look_up=statistics.median(times),
        look_up_p95=times[int(0.95 * len(times))],
        hub=hub,
        peak_mb=peak_mb(),
    )


def _look_up(graph: OxigraphGraph, name: str) -> float:
    started = time.thread_time()
    [mention] = graph.spot(f"Where was {name} seen?")
    [[entity]] = graph.find([mention.text])
    graph.subgraphs([entity.id], limit=200)
    return (time.thread_time() - started) * 1e3


def main() -> None:
    """Measure the sizes named on the command line and print a table."""
    parser = argparse.ArgumentParser(description="Load and look up graphs of several sizes.")
    parser.add_argument("sizes", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--json", action="store_true", help="one JSON object a size")
    options = parser.parse_args()
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"# {os.cpu_count()} cores, load {load}")
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(size, Path(folder))
        if options.json:
            print(json.dumps(found.model_dump()), flush=True)
            continue
        memory = "" if found.peak_mb is None else f", peak {found.peak_mb:,.0f} MiB"
        print(
            f"{found.triples:,} triples: load {found.load_rate:,.0f}/s (store alone "
            f"{found.store_rate:,.0f}/s; processor {found.processor_ratio:.2f} of it); "
            f"look-up {found.look_up:.2f} ms (p95 {found.look_up_p95:.2f}), "
            f"hub {found.hub:.2f} ms{memory}",
            flush=True,
        )


if __name__ == "__main__":
    main()
