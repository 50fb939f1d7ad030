"""Whether bulk gives the same whatever runs it, and how much faster several workers are.

    python -m benchmarks.bulk [--rows 20000] [--workers 2] [--engines local ray]
        [--judge NAME] [--folder DIR]

Rows about the persons of the graph that ships, of one sentence each, every other one with a wrong
value, go through one process, through several, and through Ray. Then they go through several
again, one killed when half of the shards are finished, and the run is started anew. The
outputs, their lines sorted, must be the same to the byte. Prints a table and ends with status 1
where they are not. Rates are by wall time, loading of parser and judge included.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal, get_args

from guardrail.bulk.run import SHARD_ROWS, run_bulk
from guardrail.bulk.scorer import BulkScorer
from guardrail.config import GuardrailConfig
from guardrail.core.errors import GuardrailError
from guardrail.core.types import Triple, Value

__all__ = ["Run", "compare", "write_rows"]

Engine = Literal["local", "ray"]
_SEED: Final = 7
_POLL_S: Final = 0.05


class Run(Value):
    """One way in which the rows were judged.

    Attributes:
        way: Engine and number of workers.
        rows: Rows of the output.
        seconds: Wall time; of what was started anew both parts together.
        digest: SHA-256 of the sorted lines of the output.
    """

    way: str
    rows: int
    seconds: float
    digest: str

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds


def write_rows(path: Path, count: int) -> None:
    """Write rows of ``guardrail bulk check`` about persons of the graph that ships."""
    facts = list(_facts())
    chance = random.Random(_SEED)
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            fact = chance.choice(facts)
            value = fact.value if number % 2 == 0 else chance.choice(facts).value
            answer = f"The {fact.property} of {fact.subject} is {value}."
            question = f"What is the {fact.property} of {fact.subject}?"
            row = {"id": number, "question": question, "answer": answer}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def compare(
    folder: Path,
    rows: int,
    workers: int,
    *,
    engines: tuple[Engine, ...] = get_args(Engine),
    judge: str | None = None,
    shard_rows: int = SHARD_ROWS,
) -> list[Run]:
    """Judge the same rows in several ways.

    Args:
        folder: An empty folder for rows and outputs.
        rows: How many rows.
        workers: Processes or actors of the ways with several.
        engines: Which of them run with several.
        judge: Name of the judge; None for the usual one.
        shard_rows: Rows of a shard.

    Returns:
        One process first, then each engine, then the local one with a worker killed.

    Raises:
        GuardrailError: No worker could be killed: the run was over too soon.
    """
    source = folder / "rows.jsonl"
    write_rows(source, rows)
    config = GuardrailConfig() if judge is None else GuardrailConfig(judge=judge)
    scorer = BulkScorer(task="check", config=config)

    def run(way: str, engine: Engine, workers: int, *, kill: bool = False) -> Run:
        output = folder / way.replace(" ", "-")
        started = time.perf_counter()

        def go_on() -> None:
            run_bulk(
                scorer, str(source), str(output),
                engine=engine, workers=workers, shard_rows=shard_rows,
            )  # fmt: skip

        if kill:
            _run_and_kill(go_on, output, -(-rows // shard_rows) // 2)
        go_on()
        return _run(way, output, time.perf_counter() - started)

    done = [run("local 1", "local", 1)]
    done += [run(f"{engine} {workers}", engine, workers) for engine in engines]
    return [*done, run(f"local {workers}, killed half way", "local", workers, kill=True)]


def _facts() -> Iterator[Triple]:
    from kg import open_graph

    graph = open_graph("people")
    try:
        found = graph.query("SELECT DISTINCT ?who { ?who wdt:P31 wd:Q5 } ORDER BY ?who")
        ids = [who.value.rpartition("/")[2] for [who] in found.rows if who is not None]
        for subgraph in graph.subgraphs(ids):
            yield from subgraph.triples
    finally:
        graph.close()


def _run_and_kill(go: Callable[[], None], output: Path, shards: int) -> None:
    """Run until half of the shards are finished, then kill a worker."""
    killed = threading.Event()
    over = threading.Event()

    def kill() -> None:
        while not over.is_set():
            if len(list(output.glob("part-*.jsonl"))) >= shards:
                for worker in multiprocessing.active_children()[:1]:
                    worker.kill()
                    killed.set()
                return
            time.sleep(_POLL_S)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        go()
    except GuardrailError:
        if not killed.is_set():
            raise
    finally:
        over.set()
        killer.join()
    if not killed.is_set():
        raise GuardrailError("the run was over before a worker was killed; give it more rows")


def _run(way: str, output: Path, seconds: float) -> Run:
    lines = sorted(
        line for part in output.glob("part-*") for line in part.read_bytes().splitlines(True)
    )
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    return Run(way=way, rows=len(lines), seconds=seconds, digest=digest)


def main() -> None:
    """Judge rows in several ways and print how they compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=max(2, os.cpu_count() or 2))
    parser.add_argument("--engines", nargs="*", choices=get_args(Engine), default=get_args(Engine))
    parser.add_argument("--judge", help="the usual one unless given")
    parser.add_argument("--folder", type=Path, help="kept afterwards; a temporary one unless given")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        done = compare(
            folder, options.rows, options.workers,
            engines=tuple(options.engines), judge=options.judge,
        )  # fmt: skip
    print("| way | rows | seconds | rows/s | against one process | SHA-256 of the sorted lines |")
    print("|---|--:|--:|--:|--:|---|")
    for run in done:
        ratio = run.rate / done[0].rate
        print(
            f"| {run.way} | {run.rows:,} | {run.seconds:,.0f} | {run.rate:,.1f} | {ratio:.2f} "
            f"| {run.digest[:16]}… |"
        )
    if len({(run.rows, run.digest) for run in done}) > 1:
        sys.exit("the outputs differ")


if __name__ == "__main__":
    main()
