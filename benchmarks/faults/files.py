"""The ways in that read and write files: jobs of many rows, and loading a graph."""

from __future__ import annotations

import gzip
import json
import random
from contextlib import ExitStack
from pathlib import Path

from pyoxigraph import DefaultGraph, RdfFormat, Store

from benchmarks.faults.disk import no_room, spoilt
from benchmarks.faults.facts import CANARY, DEADLINE_S, Case, turtle
from benchmarks.faults.seen import Began, Seen, seen_answers, seen_error
from guardrail.bulk.run import run_bulk
from guardrail.bulk.scorer import BulkScorer
from guardrail.config import GuardrailConfig
from guardrail.core.types import GuardedAnswer
from kg import load_graph
from kg.store import OxigraphGraph

__all__ = ["run_bulk_case", "run_load_case"]

ROOM = 200
"""Bytes that a file may have on a disk that is full."""


def run_bulk_case(case: Case, rng: random.Random, folder: Path, config: GuardrailConfig) -> Seen:
    """Judge a row whose part fails between sound ones; spoil what a job wrote and run it again.

    Args:
        case: The case.
        rng: Of what is random.
        folder: An empty folder.
        config: Of the guardrail.
    """
    sound = Case("bulk", "none", "none")
    rows = [sound, case, sound]
    source, output = folder / "rows.jsonl", folder / "out"
    lines = [{"id": str(i), "question": r.question, "answer": r.answer} for i, r in enumerate(rows)]
    source.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    scorer = BulkScorer(task="check", config=config)

    def run() -> None:
        run_bulk(scorer, str(source), str(output), shard_rows=2)

    began = Began.now()
    try:
        with ExitStack() as stack:
            if case.part == "disk" and case.fault == "full":
                stack.enter_context(no_room(ROOM))
            elif case.part == "disk":
                run()
                _spoil(case, source if rng.random() < 0.3 else output, rng)
            run()
    except Exception as error:  # what comes is what is measured
        seen = seen_error(error)
        if seen.bad or case.fault != "full":
            return seen
        run()  # there is room again: the same command goes on where it was
        return _rows_seen(case, output)._replace(outcome="typed error", detail=seen.detail)
    seen = _rows_seen(case, output)
    return seen.timed(began, DEADLINE_S * len(rows))


def _rows_seen(case: Case, output: Path) -> Seen:
    """What a job wrote: the sound rows must be there, whatever the one between came to."""
    found = [
        json.loads(line)
        for path in sorted(output.glob("part-*"))
        for line in path.read_text(encoding="utf-8").split("\n")
        if line
    ]
    seen = [
        seen_answers(
            case if row["id"] == "1" else Case("bulk", "none", "none"),
            [GuardedAnswer.model_validate({key: row[key] for key in row if key != "row"})],
        )
        if "error" not in row
        else Seen("untyped error" if "internal fault" in row["error"] else "typed error",
                  detail=row["error"])
        for row in found
    ]  # fmt: skip
    between = next((item for item, row in zip(seen, found, strict=True) if row["id"] == "1"), None)
    others = [item for item in seen if item is not between]
    if between is None or len(found) != 3:
        return Seen("untyped error", detail=f"{len(found)} of 3 rows came out")
    for item in others:
        # One that shares its pass with a row that hangs shares its time, and says so.
        if item.outcome != "delivered" and not item.detail.startswith("deadline: "):
            return item._replace(outcome="untyped error", detail=f"a sound row: {item.detail}")
    wrong = sum(item.wrong for item in seen)
    return between._replace(unjudged=sum(item.unjudged for item in seen), wrong=wrong)


def run_load_case(case: Case, rng: random.Random, folder: Path) -> Seen:
    """Load a second file into a graph while the disk fails; the graph must stay what it was.

    Args:
        case: The case.
        rng: Of what is random.
        folder: An empty folder.
    """
    store = Store()
    store.load(turtle().encode(), RdfFormat.TURTLE)
    first, second, target = folder / "first.nt", folder / "second.nt", folder / "graph"
    content = store.dump(format=RdfFormat.N_TRIPLES, from_graph=DefaultGraph())
    assert content is not None
    first.write_bytes(content)
    more = "".join(
        f'<http://www.wikidata.org/entity/Q{number}> <http://example.org/{CANARY}> "{number}" .\n'
        for number in range(200)
    ).encode()
    if rng.random() < 0.5:
        second = folder / "second.nt.gz"
        more = gzip.compress(more, mtime=0)
    second.write_bytes(spoilt(more, case.fault, rng))
    if case.fault == "reset":
        second.unlink()
    load_graph(first, target)
    before = _triples(target)
    began = Began.now()
    try:
        with no_room(ROOM) if case.fault == "full" else ExitStack():
            load_graph(second, target)
    except Exception as error:  # what comes is what is measured
        seen = seen_error(error)
        if _triples(target) != before:
            return Seen("untyped error", detail=f"the graph is another after: {seen.detail}")
        return seen
    seen = Seen("delivered").timed(began)
    after = _triples(target)
    if not before <= after <= before + 200 or (case.fault == "none" and after != before + 200):
        return Seen("untyped error", detail=f"{before} triples became {after}")
    return seen


def _triples(target: Path) -> int:
    graph = OxigraphGraph.open(target)
    try:
        return len(graph.store)
    finally:
        graph.close()


def _spoil(case: Case, place: Path, rng: random.Random) -> None:
    """Spoil one of the files of a finished job.

    Noise inside a result that leaves it valid JSON is not detected, so results get none.
    """
    files = sorted(path for path in place.rglob("*") if path.is_file()) or [place]
    if case.fault == "garbage":
        files = [path for path in files if not path.name.startswith("part-")]
    file = rng.choice(files)
    if case.fault == "reset":
        file.unlink()
    else:
        file.write_bytes(spoilt(file.read_bytes(), case.fault, rng))
