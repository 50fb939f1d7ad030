"""The score log under load, and whether its gap list names what a graph really lacks.

    python -m guardrail.benchmarks.records gaps --data DIR --log FILE [--rows 1000] [--removed 0.3]
    python -m guardrail.benchmarks.records kill [--writes 10000] [--writers 4]
    python -m guardrail.benchmarks.records cost [--log FILE] [--rows 1000]

``gaps`` reads ``DIR/triples/tekgen_*.jsonl.gz`` (sentences of Wikipedia with the Wikidata fact
each states), builds a graph of those facts, takes a share of them out, checks the sentences
against what is left, logs every check, and compares the log's gap list with what was taken out.
``kill`` starts writers and kills them without warning. ``cost`` times one write of records as
they are in FILE.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from pyoxigraph import Literal, NamedNode, Quad, Store

from guardrail import Guardrail, GuardrailConfig
from guardrail.errors import InputError
from guardrail.gaps import GapFinder
from guardrail.guard import CheckRequest
from guardrail.records import SQLiteLog, open_log
from guardrail.types import Action, GuardedAnswer, Score, ScoreCard, Value
from guardrail.vocabulary import property_words
from kg import OxigraphGraph

__all__ = ["Fact", "GapReport", "measure_gaps", "read_facts"]

ENTITY = "http://www.wikidata.org/entity/"
DIRECT = "http://www.wikidata.org/prop/direct/"
LABEL = NamedNode("http://www.w3.org/2000/01/rdf-schema#label")
TOP = 50
"""Places of the gap list that are compared with what was taken out."""


class Fact(Value):
    """A sentence and the fact it states."""

    sentence: str
    subject: str
    subject_id: str
    property: str
    property_id: str
    value: str
    value_id: str


class GapReport(Value):
    """How well a gap list names the facts that were taken out of a graph.

    Attributes:
        checks: Sentences checked and logged.
        removed: Of these, sentences whose fact was taken out.
        marked: Of those, sentences with a phrase that lacks support.
        entities: Of the removed, those whose entity the list names.
        named: Of the removed, those whose entity and property the list names.
        top: Length of the list's head.
        top_entities: Entries of the head whose entity lost a fact.
        top_named: Entries of the head that are a removed fact, entity and property.
        kept_named: Listed pairs of entity and property that the graph still holds.
        seconds: Wall time of the checks and of the list.
    """

    checks: int
    removed: int
    marked: int
    entities: int
    named: int
    top: int
    top_entities: int
    top_named: int
    kept_named: int
    seconds: float


def read_facts(data: Path) -> list[Fact]:
    """Read the sentences with their facts.

    Raises:
        InputError: A file is missing or has another shape.
    """
    facts = []
    for name in ("tekgen_train", "tekgen_validation"):
        path = data / "triples" / f"{name}.jsonl.gz"
        try:
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                for line in lines:
                    row = json.loads(line)
                    if isinstance(row["obj"], str) and row["obj"].startswith("Q"):
                        facts.append(
                            Fact(
                                sentence=row["sent"],
                                subject=row["sub_label"],
                                subject_id=row["sub"],
                                property=row["rel_label"].strip(),
                                property_id=row["rel"],
                                value=row["obj_label"],
                                value_id=row["obj"],
                            )
                        )
        except (OSError, KeyError, ValueError) as error:
            raise InputError(f"cannot read facts from {path}: {error!r}") from error
    return facts


def measure_gaps(
    facts: Sequence[Fact], log: SQLiteLog, *, rows: int, removed: float, seed: int
) -> GapReport:
    """Check sentences against a graph that lacks a share of what they state.

    Args:
        facts: All facts of the graph, with their sentences.
        log: Where the checks are recorded.
        rows: Sentences to check.
        removed: Share of their facts that is taken out.
        seed: Of the choice.
    """
    dice = random.Random(seed)
    chosen = dice.sample(list(facts), min(rows, len(facts)))
    lost = {(one.subject_id, one.property_id) for one in chosen[: round(removed * len(chosen))]}
    graph = _graph([one for one in facts if (one.subject_id, one.property_id) not in lost], facts)
    begin = time.perf_counter()
    with Guardrail(GuardrailConfig(judge="none"), graph=graph, log=log) as guard:
        requests = [
            CheckRequest(question=f"What is known about {one.subject}?", answer=one.sentence)
            for one in chosen
        ]
        answers: list[GuardedAnswer] = []
        for first in range(0, len(requests), 50):
            answers += guard.check_batch(requests[first : first + 50])
            _tell(f"{len(answers)} of {len(requests)} checked")
    finder = GapFinder()
    for record in log.records():
        finder.add(record)
    listed = finder.result(most=10 * rows).facts
    seconds = time.perf_counter() - begin
    wanted = {
        (one.subject_id, property_words(one.property))
        for one in chosen
        if (one.subject_id, one.property_id) in lost
    }
    held = {(one.subject_id, property_words(one.property)) for one in facts} - wanted
    pairs = [(gap.entity_id, property_words(gap.property)) for gap in listed]
    gone = [place for place, one in enumerate(chosen) if (one.subject_id, one.property_id) in lost]
    ids = {entity for entity, _ in pairs}
    return GapReport(
        checks=len(answers),
        removed=len(gone),
        marked=sum(any(one.na for one in answers[place].sentences) for place in gone),
        entities=sum(chosen[place].subject_id in ids for place in gone),
        named=sum(
            (chosen[place].subject_id, property_words(chosen[place].property)) in pairs
            for place in gone
        ),
        top=min(TOP, len(pairs)),
        top_entities=sum(entity in {id_ for id_, _ in wanted} for entity, _ in pairs[:TOP]),
        top_named=sum(pair in wanted for pair in pairs[:TOP]),
        kept_named=sum(pair in held for pair in pairs),
        seconds=seconds,
    )


def _graph(facts: Sequence[Fact], named: Sequence[Fact]) -> OxigraphGraph:
    """A graph of facts; entities keep their labels whether or not a fact of theirs is left."""
    store = Store()
    for one in named:
        for iri, label in (
            (ENTITY + one.subject_id, one.subject),
            (ENTITY + one.value_id, one.value),
            (ENTITY + one.property_id, one.property),
        ):
            store.add(Quad(NamedNode(iri), LABEL, Literal(label, language="en")))
    for one in facts:
        store.add(
            Quad(
                NamedNode(ENTITY + one.subject_id),
                NamedNode(DIRECT + one.property_id),
                NamedNode(ENTITY + one.value_id),
            )
        )
    return OxigraphGraph(store, profile="wikidata", name="tekgen")


WRITER = """
import sys
from guardrail.benchmarks.records import small_answer
from guardrail.records import Record, SQLiteLog
log = SQLiteLog(sys.argv[1])
for n in range(int(sys.argv[2])):
    record = Record(answer=small_answer(str(n)))
    log.write_record(record)
    sys.stdout.write(record.id + "\\n")
    sys.stdout.flush()
"""


def small_answer(answer_id: str) -> GuardedAnswer:
    """An answer to fill a log with."""
    return GuardedAnswer(
        id=answer_id,
        question="Where was Ada Lovelace born?",
        text="Ada Lovelace was born in London.",
        marked="Ada Lovelace was born in London [Q7259, place of birth: London].",
        action=Action.PASS,
        scorecard=ScoreCard(overall=Score(value=1.0)),
    )


def _kill(writes: int, writers: int, share: float) -> None:
    """Kill the writers when they have acknowledged a share of their writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.sqlite")
        SQLiteLog(path).close()
        told = [Path(folder, f"acknowledged{n}") for n in range(writers)]
        processes = []
        for file in told:
            with file.open("w") as out:
                command = [sys.executable, "-c", WRITER, str(path), str(writes // writers)]
                processes.append(subprocess.Popen(command, stdout=out))
        enough = share * writes
        begin = time.perf_counter()
        while sum(file.stat().st_size for file in told) // 33 < enough:
            time.sleep(0.01)
            if all(process.poll() is not None for process in processes):
                break
        alive = sum(process.poll() is None for process in processes)
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.wait()
        seconds = time.perf_counter() - begin
        # A line cut short by the kill was not acknowledged.
        ids = [line for file in told for line in file.read_text().split("\n")[:-1]]
        with SQLiteLog(path) as log:
            kept = [record.id for record in log.records()]
            log.write(small_answer("after"))
    print(
        f"{writers} writers, {alive} of them killed amid {writes} writes after {seconds:.1f} s: "
        f"{len(ids)} acknowledged, {len(set(ids) - set(kept))} of them lost, "
        f"{len(kept)} in the log, {len(kept) - len(set(kept))} twice; the log opens and takes more"
    )


def _cost(source: Path | None, rows: int) -> None:
    """Time writes of whole answers, prepared and committed one by one."""
    answers = (
        [small_answer(str(n)) for n in range(rows)]
        if source is None
        else [record.answer for record in islice(open_log(source).records(), rows)]
    )
    for name in ("log.sqlite", "log.jsonl"):
        with tempfile.TemporaryDirectory() as folder:
            log = open_log(Path(folder, name))
            wall, work = [], []
            for answer in answers:
                begin, busy = time.perf_counter(), time.thread_time()
                log.write(answer)
                wall.append((time.perf_counter() - begin) * 1000)
                work.append((time.thread_time() - busy) * 1000)
            log.close()
            size = Path(folder, name).stat().st_size / len(answers)
        cuts = statistics.quantiles(wall, n=100)
        print(
            f"{name}: {len(answers)} writes, p50 {cuts[49]:.3f} ms, p95 {cuts[94]:.3f} ms, "
            f"p99 {cuts[98]:.3f} ms wall; p50 {statistics.median(work):.3f} ms processor; "
            f"{size:.0f} bytes a record"
        )


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text}", end="", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a benchmark and print its numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parts = parser.add_subparsers(dest="part", required=True)
    gaps = parts.add_parser("gaps")
    gaps.add_argument("--data", type=Path, required=True)
    gaps.add_argument("--log", type=Path, required=True)
    gaps.add_argument("--rows", type=int, default=1000)
    gaps.add_argument("--removed", type=float, default=0.3)
    gaps.add_argument("--seed", type=int, default=1)
    kill = parts.add_parser("kill")
    kill.add_argument("--writes", type=int, default=10_000)
    kill.add_argument("--writers", type=int, default=4)
    kill.add_argument("--share", type=float, default=0.5)
    cost = parts.add_parser("cost")
    cost.add_argument("--log", type=Path)
    cost.add_argument("--rows", type=int, default=1000)
    chosen = parser.parse_args(arguments)
    if chosen.part == "kill":
        _kill(chosen.writes, chosen.writers, chosen.share)
    elif chosen.part == "cost":
        _cost(chosen.log, chosen.rows)
    else:
        with SQLiteLog(chosen.log) as log:
            report = measure_gaps(
                read_facts(chosen.data),
                log,
                rows=chosen.rows,
                removed=chosen.removed,
                seed=chosen.seed,
            )
        for name, value in report.model_dump().items():
            print(f"{name:14} {value:.1f}" if isinstance(value, float) else f"{name:14} {value}")


if __name__ == "__main__":
    main()
