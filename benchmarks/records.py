"""The score log under load, and whether its gap list names what a graph really lacks.

    python -m benchmarks.records gaps --data DIR --log FILE [--texts dart|tekgen]
        [--judge none] [--rows 1000] [--removed 0.3] [--seed 1]
    python -m benchmarks.records kill [--writes 10000] [--writers 4]
    python -m benchmarks.records cost [--rows 1000]

``gaps`` reads texts that people wrote with the facts each states, builds a graph of those facts,
takes a share of them out, checks the texts against what is left, logs every check, and compares
the log's gap list with what was taken out. The texts are ``DIR/triples/dart_dev.jsonl.gz``, or
with ``--texts tekgen`` sentences of Wikipedia, ``DIR/triples/tekgen_*.jsonl.gz``, of which one fact
each is known.
``kill`` starts writers and kills them without warning. ``cost`` times single writes of
answers over the shipped graph.
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
from pathlib import Path
from urllib.parse import quote

from pyoxigraph import Literal, NamedNode, Quad, Store

from guardrail import Guardrail, GuardrailConfig
from guardrail.core.errors import InputError
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.words import fold, property_words, tokenise
from guardrail.core.types import Action, GuardedAnswer, Score, ScoreCard, SpanKind, Triple, Value
from guardrail.guard import CheckRequest
from guardrail.log.records import SQLiteLog, open_log
from guardrail.report.gaps import GapFinder
from kg import OxigraphGraph

__all__ = ["GapReport", "Stated", "measure_gaps", "read_texts"]

NODE = "urn:node:"
PROPERTY = "urn:property:"
LABEL = NamedNode("http://www.w3.org/2000/01/rdf-schema#label")
TOP = 50
"""Places of the gap list that are compared with what was taken out."""


class Stated(Value):
    """A text and the facts it states."""

    text: str
    facts: tuple[Triple, ...]


class GapReport(Value):
    """How well a gap list names the facts that were taken out of a graph.

    Attributes:
        checks: Texts checked and logged.
        removed: Facts in them that were taken out.
        marked: Of these, facts whose value stands in the text marked as lacking support.
        entities: Of those marked, facts whose subject the list names.
        named: Of those marked, facts whose subject and property the list names.
        listed: Entries of the whole list.
        top: Length of the list's head.
        top_entities: Entries of the head whose entity lost a fact.
        top_named: Entries of the head that are a removed fact, entity and property.
        kept_named: Entries of the whole list that the graph still holds.
        seconds: Wall time of the checks and of the list.
    """

    checks: int
    removed: int
    marked: int
    entities: int
    named: int
    listed: int
    top: int
    top_entities: int
    top_named: int
    kept_named: int
    seconds: float


def read_texts(data: Path, texts: str) -> list[Stated]:
    """Read texts with their facts.

    Args:
        data: The folder.
        texts: ``dart`` or ``tekgen``.

    Raises:
        InputError: A file is missing or has another shape.
    """
    names = {"dart": ("dart_dev",), "tekgen": ("tekgen_train", "tekgen_validation")}[texts]
    stated = []
    for name in names:
        path = data / "triples" / f"{name}.jsonl.gz"
        try:
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                rows = [json.loads(line) for line in lines]
            for row in rows:
                known = (
                    row["triples"]
                    if texts == "dart"
                    else [(row["sub_label"], row["rel_label"], row["obj_label"])]
                )
                facts = tuple(
                    Triple(subject=subject, property=name, value=value)
                    for subject, name, value in known
                    if not subject.startswith("[")  # DART's name for a whole table
                )
                text = row["texts"][0] if texts == "dart" else row["sent"]
                if facts:
                    stated.append(Stated(text=text, facts=facts))
        except (OSError, KeyError, ValueError) as error:
            raise InputError(f"cannot read texts from {path}: {error!r}") from error
    return stated


def measure_gaps(
    texts: Sequence[Stated],
    log: SQLiteLog,
    *,
    judge: str = "none",
    rows: int,
    removed: float,
    seed: int,
) -> GapReport:
    """Check texts against a graph that lacks a share of what they state.

    Args:
        texts: The texts; all their facts make the graph.
        log: Where the checks are recorded.
        judge: The guardrail's judge by name; none leaves the verdict to exact evidence.
        rows: Texts to check.
        removed: Share of the pairs of subject and property in them that is taken out.
        seed: Of the choices.
    """
    dice = random.Random(seed)
    chosen = dice.sample(list(texts), min(rows, len(texts)))
    pairs = sorted({_pair(fact) for item in chosen for fact in item.facts})
    lost = set(dice.sample(pairs, round(removed * len(pairs))))
    facts = [fact for item in texts for fact in item.facts]
    graph = _graph([fact for fact in facts if _pair(fact) not in lost], facts)
    begin = time.perf_counter()
    with Guardrail(GuardrailConfig(judge=judge), graph=graph, log=log) as guard:
        requests = [
            CheckRequest(question=f"What is known of {item.facts[0].subject}?", answer=item.text)
            for item in chosen
        ]
        answers: list[GuardedAnswer] = []
        for first in range(0, len(requests), 50):
            answers += guard.check_batch(requests[first : first + 50])
            _tell(f"{len(answers)} of {len(requests)} checked")
    finder = GapFinder()
    for record in log.records():
        finder.add(record)
    listed = [
        (fold(gap.entity), property_words(gap.property)) for gap in finder.result(10**6).facts
    ]
    held = {_pair(fact) for fact in facts} - lost
    missing = [(item, fact) for item in chosen for fact in item.facts if _pair(fact) in lost]
    marked = {
        (answer.original, fold(span.text))
        for answer in answers
        for sentence in answer.sentences
        for span in sentence.spans
        if span.kind is SpanKind.NA
    }
    asked = {
        place
        for place, (item, fact) in enumerate(missing)
        if any(text == item.text and _shares(phrase, fact.value) for text, phrase in marked)
    }
    entities = {entity for entity, _ in listed}
    return GapReport(
        checks=len(answers),
        removed=len(missing),
        marked=len(asked),
        entities=sum(fold(missing[place][1].subject) in entities for place in asked),
        named=sum(_pair(missing[place][1]) in listed for place in asked),
        listed=len(listed),
        top=min(TOP, len(listed)),
        top_entities=sum(entity in {item for item, _ in lost} for entity, _ in listed[:TOP]),
        top_named=sum(pair in lost for pair in listed[:TOP]),
        kept_named=sum(pair in held for pair in listed),
        seconds=time.perf_counter() - begin,
    )


def _pair(fact: Triple) -> tuple[str, str]:
    return fold(fact.subject), property_words(fact.property)


def _shares(phrase: str, value: str) -> bool:
    """Whether a marked phrase shows part of a value."""
    words = {token.stem for token in tokenise(value)} - lexicon_set("function_words", "stop_words")
    return bool(words & {token.stem for token in tokenise(phrase)})


def _graph(facts: Sequence[Triple], named: Sequence[Triple]) -> OxigraphGraph:
    """A graph of facts; entities keep their labels whether or not a fact of theirs is left."""
    store = Store()
    for fact in named:
        for kind, label in ((NODE, fact.subject), (NODE, fact.value), (PROPERTY, fact.property)):
            store.add(Quad(_iri(kind, label), LABEL, Literal(label, language="en")))
    for fact in facts:
        store.add(
            Quad(_iri(NODE, fact.subject), _iri(PROPERTY, fact.property), _iri(NODE, fact.value))
        )
    return OxigraphGraph(store, name="texts")


def _iri(kind: str, label: str) -> NamedNode:
    return NamedNode(kind + quote(label, safe=""))


WRITER = """
import sys
from benchmarks.records import small_answer
from guardrail.log.records import Record, SQLiteLog
log = SQLiteLog(sys.argv[1])
for n in range(int(sys.argv[2])):
    record = Record(answer=small_answer(str(n)))
    log.write_record(record)
    sys.stdout.write(record.id + "\\n")
    sys.stdout.flush()
"""


PEOPLE = {
    "Who was Wolfgang Amadeus Mozart?": "Wolfgang Amadeus Mozart was a composer born in Salzburg. "
    "He was born in 1770. His father was Leopold. He was taught by Agostino Tassi.",
    "Who was Ada Lovelace?": "Ada Lovelace was born in London in 1815 and worked with Charles "
    "Babbage. Her father was Lord Byron. She died in London in 1852.",
    "Who was Artemisia Gentileschi?": "Artemisia Gentileschi was a painter born in Rome. Her "
    "father Orazio Gentileschi taught her. She lived in Naples.",
}


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


def _cost(rows: int) -> None:
    """Time writes of whole answers over the shipped graph, prepared and committed one by one."""
    with Guardrail(GuardrailConfig(judge="none")) as guard:
        requests = [
            CheckRequest(question=question, answer=answer) for question, answer in PEOPLE.items()
        ]
        checked = guard.check_batch(requests)
    facts = statistics.mean(len(answer.evidence) for answer in checked)
    print(f"answers of {facts:.0f} facts of evidence on average")
    answers = [checked[place % len(checked)] for place in range(rows)]
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
    gaps.add_argument("--texts", choices=("dart", "tekgen"), default="dart")
    gaps.add_argument("--judge", default="none")
    gaps.add_argument("--rows", type=int, default=1000)
    gaps.add_argument("--removed", type=float, default=0.3)
    gaps.add_argument("--seed", type=int, default=1)
    kill = parts.add_parser("kill")
    kill.add_argument("--writes", type=int, default=10_000)
    kill.add_argument("--writers", type=int, default=4)
    kill.add_argument("--share", type=float, default=0.5)
    cost = parts.add_parser("cost")
    cost.add_argument("--rows", type=int, default=1000)
    chosen = parser.parse_args(arguments)
    if chosen.part == "kill":
        _kill(chosen.writes, chosen.writers, chosen.share)
    elif chosen.part == "cost":
        _cost(chosen.rows)
    else:
        with SQLiteLog(chosen.log) as log:
            report = measure_gaps(
                read_texts(chosen.data, chosen.texts),
                log,
                judge=chosen.judge,
                rows=chosen.rows,
                removed=chosen.removed,
                seed=chosen.seed,
            )
        for name, value in report.model_dump().items():
            print(f"{name:14} {value:.1f}" if isinstance(value, float) else f"{name:14} {value}")


if __name__ == "__main__":
    main()
