"""What the bench measures on graphs of one size, a part at a time.

``python -m benchmarks.scale PART FOLDER --triples N`` runs one part in a process of its
own, so that its peak of memory is its own, and prints one JSON object. The graph is one of persons,
written as gzipped N-Triples. Each person is looked up once, so that no cache helps.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Literal, cast, get_args

from pyoxigraph import RdfFormat, Store

from benchmarks import baselines
from guardrail.core.types import Value
from kg import OxigraphGraph, load_graph
from kg.load import peak_mb

if TYPE_CHECKING:
    from guardrail import GuardrailConfig

__all__ = ["Measured", "Part", "measure", "write_people"]

Part = Literal[
    "store", "load", "look-up", "hub", "rdflib", "sparql", "sparql-cached",
    "check", "pairs", "calls", "bulk",
]  # fmt: skip

_LABEL: Final = "<http://www.w3.org/2000/01/rdf-schema#label>"
_DATE: Final = "<http://www.w3.org/2001/XMLSchema#date>"
_WD, _WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
_CITIES: Final = 100
_PER_PERSON: Final = 6
_FIRST: Final = 1000
_HUB_EVERY: Final = 8
"""One person in so many was born in the first city, which is the hub."""
_LOOK_UPS: Final = 2000
_HUB_LOOK_UPS: Final = 5
_BASELINE_LOOK_UPS: Final = 200
_CHECKS: Final = 60
_LIMIT: Final = 200


class Measured(Value):
    """What one part measured.

    Attributes:
        values: One value a repetition: triples or rows a second, or milliseconds, by wall time.
        triples: Triples of the graph.
        peak_mb: Most memory that one process held, in MiB; None where the system does not tell.
        disk_mb: What the graph takes on disk, in MiB, where it was loaded.
    """

    values: tuple[float, ...]
    triples: int
    peak_mb: float | None
    disk_mb: float | None = None


def write_people(path: Path, triples: int, seed: int = 1) -> int:
    """Write a graph of about so many triples; returns the number of its persons."""
    persons = _persons(triples)
    with gzip.open(path, "wt", compresslevel=5) as file:
        for line in _lines(persons, random.Random(seed)):
            file.write(line)
    return persons


def measure(
    part: Part,
    folder: Path,
    triples: int,
    *,
    judge: str | None = None,
    rows: int = 1000,
    workers: int = 1,
) -> Measured:
    """Measure one part; ``load`` has to be measured before those that read the graph.

    Args:
        part: ``store`` loads by the store alone, ``load`` as ``guardrail kg load`` does;
            ``look-up`` spots a name, finds its bearer and reads one hop, ``hub`` does so for a
            city with an eighth of all persons, on a graph opened anew each time; ``rdflib``,
            ``sparql`` and ``sparql-cached`` do it with rdflib and at an endpoint; ``check`` checks
            answers of two sentences, ``pairs`` judges them pair by pair; ``calls`` and ``bulk``
            check rows, one call a row and as ``guardrail bulk`` does.
        folder: Where files and graphs of all parts are kept.
        triples: Size of the graph.
        judge: Judge of ``check``, ``calls`` and ``bulk``; None for the usual one.
        rows: Rows of ``calls`` and ``bulk``.
        workers: Processes of ``bulk``.
    """
    source, graph = folder / f"{triples}.nt.gz", folder / f"graph{triples}"
    if part in ("store", "load") and not source.exists():
        write_people(source, triples)
    values: tuple[float, ...]
    if part == "store":
        values = (_store_rate(source, folder / f"store{triples}"),)
    elif part == "load":
        shutil.rmtree(graph, ignore_errors=True)
        values = (load_graph(source, graph).rate,)
    elif part == "look-up":
        names = _chosen(triples, _LOOK_UPS)
        values = _look_ups(graph, names)
    elif part == "hub":
        values = tuple(_look_ups(graph, ["City1"])[0] for _ in range(_HUB_LOOK_UPS))
    elif part == "rdflib":
        values = baselines.rdflib_look_ups(source, _chosen(triples, _BASELINE_LOOK_UPS))
    elif part in ("sparql", "sparql-cached"):
        names = list(dict.fromkeys(_chosen(triples, _BASELINE_LOOK_UPS)))
        values = baselines.sparql_look_ups(graph, names, cached=part == "sparql-cached")
    elif part == "pairs":
        checks = [(name, _sentences(name)) for name in _chosen(triples, _CHECKS)]
        values = baselines.pair_by_pair(graph, checks, judge)
    elif part == "check":
        values = _checks(graph, judge, _chosen(triples, _CHECKS))
    elif part == "calls":
        values = (_calls_rate(graph, judge, _chosen(triples, rows)),)
    else:
        values = (_bulk_rate(folder, graph, judge, _chosen(triples, rows), workers),)
    disk_mb = _disk_mb(graph) if part == "load" else None
    return Measured(values=values, triples=triples, peak_mb=_largest_mb(), disk_mb=disk_mb)


def _persons(triples: int) -> int:
    return max(1, triples // _PER_PERSON)


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


def _chosen(triples: int, count: int) -> list[str]:
    """Names of persons, the same in every run; each once where there are enough of them."""
    persons = _persons(triples)
    chance = random.Random(2)
    chosen = chance.sample(range(persons), min(count, persons))
    return [_name(n) for n in chosen + chance.choices(range(persons), k=count - len(chosen))]


def _store_rate(source: Path, folder: Path) -> float:
    started = time.perf_counter()
    store = Store(str(folder))
    with gzip.open(source) as file:
        store.bulk_load(input=cast("IO[bytes]", file), format=RdfFormat.N_TRIPLES)
    seconds = time.perf_counter() - started
    rate = len(store) / seconds
    del store
    shutil.rmtree(folder)
    return rate


def _look_ups(location: Path, names: list[str]) -> tuple[float, ...]:
    graph = OxigraphGraph.open(location)
    graph.find(["City2"])
    times = []
    for name in names:
        started = time.perf_counter()
        [mention] = graph.spot(f"Where was {name} seen?")
        [[entity]] = graph.find([mention.text])
        graph.subgraphs([entity.id], limit=_LIMIT)
        times.append(_ms(started))
    graph.close()
    return tuple(times)


def _checks(graph: Path, judge: str | None, names: list[str]) -> tuple[float, ...]:
    from guardrail import Guardrail

    guard = Guardrail(_config(graph, judge))
    guard.warm_up()
    times = []
    for row in map(_row, [*names[:5], *names]):
        started = time.perf_counter()
        answer = guard.check(question=row["question"], answer=row["answer"])
        times.append(_ms(started))
        if answer.errors or not answer.entities:
            raise RuntimeError(f"the check went wrong: {answer.errors or 'nobody was linked'}")
    guard.close()
    return tuple(times[5:])


def _calls_rate(graph: Path, judge: str | None, names: list[str]) -> float:
    from guardrail import Guardrail

    started = time.perf_counter()
    guard = Guardrail(_config(graph, judge))
    for row in map(_row, names):
        guard.check(question=row["question"], answer=row["answer"])
    guard.close()
    return len(names) / (time.perf_counter() - started)


def _bulk_rate(
    folder: Path, graph: Path, judge: str | None, names: list[str], workers: int
) -> float:
    from guardrail.bulk.run import SHARD_ROWS, run_bulk
    from guardrail.bulk.scorer import BulkScorer

    source, output = folder / "rows.jsonl", folder / f"checked{workers}"
    source.write_text("".join(json.dumps(_row(name)) + "\n" for name in names))
    shutil.rmtree(output, ignore_errors=True)
    scorer = BulkScorer(task="check", config=_config(graph, judge))
    shard = max(1, min(SHARD_ROWS, len(names) // (4 * workers)))
    summary = run_bulk(scorer, str(source), str(output), workers=workers, shard_rows=shard)
    if summary.errors:
        raise RuntimeError(f"{summary.errors} of {summary.rows} rows went wrong")
    return summary.rows_per_second


def _sentences(name: str) -> list[str]:
    return [f"{name} was born in City2.", f"{name} was born on 11 January 1950."]


def _row(name: str) -> dict[str, str]:
    return {"question": f"Where was {name} born?", "answer": " ".join(_sentences(name))}


def _config(graph: Path, judge: str | None) -> GuardrailConfig:
    from guardrail import GuardrailConfig

    settings: dict[str, object] = {"graph": {"location": str(graph)}}
    return GuardrailConfig.model_validate(
        settings if judge is None else settings | {"judge": judge}
    )


def _largest_mb() -> float | None:
    """The most memory that this process or one that it started held."""
    own = peak_mb()
    try:
        from resource import RUSAGE_CHILDREN, getrusage
    except ImportError:  # Windows
        return own
    unit = 1 if sys.platform == "darwin" else 1024
    return None if own is None else max(own, getrusage(RUSAGE_CHILDREN).ru_maxrss * unit / 2**20)


def _disk_mb(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20


def _ms(started: float) -> float:
    return (time.perf_counter() - started) * 1e3


def main() -> None:
    """Measure the part named on the command line and print it as JSON."""
    parser = argparse.ArgumentParser(description="Measure one part on a graph of one size.")
    parser.add_argument("part", choices=get_args(Part))
    parser.add_argument("folder", type=Path, help="where files and graphs are kept")
    parser.add_argument("--triples", type=int, default=100_000)
    parser.add_argument("--judge", help="that of check and bulk")
    parser.add_argument("--rows", type=int, default=1000, help="of bulk")
    parser.add_argument("--workers", type=int, default=1, help="processes of bulk")
    options = parser.parse_args()
    found = measure(
        options.part,
        options.folder,
        options.triples,
        judge=options.judge,
        rows=options.rows,
        workers=options.workers,
    )
    print(found.model_dump_json())


if __name__ == "__main__":
    main()
