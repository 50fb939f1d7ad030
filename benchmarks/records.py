"""The score log under load.

    python -m benchmarks.records kill [--writes 10000] [--writers 4]
    python -m benchmarks.records cost [--rows 1000]

``kill`` starts writers and kills them without warning. ``cost`` times single writes of answers over
the shipped graph.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from guardrail import Guardrail, GuardrailConfig
from guardrail.core.types import Action, GuardedAnswer, Score, ScoreCard
from guardrail.guard import CheckRequest
from guardrail.log.records import SQLiteLog

__all__ = ["main", "small_answer"]

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
        acknowledged = [Path(folder, f"acknowledged{n}") for n in range(writers)]
        processes = []
        for file in acknowledged:
            with file.open("w") as out:
                command = [sys.executable, "-c", WRITER, str(path), str(writes // writers)]
                processes.append(subprocess.Popen(command, stdout=out))
        enough = share * writes
        begin = time.perf_counter()
        while sum(file.stat().st_size for file in acknowledged) // 33 < enough:
            time.sleep(0.01)
            if all(process.poll() is not None for process in processes):
                break
        alive = sum(process.poll() is None for process in processes)
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.wait()
        seconds = time.perf_counter() - begin
        # A line cut short by the kill was not acknowledged.
        ids = [line for file in acknowledged for line in file.read_text().split("\n")[:-1]]
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
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.sqlite")
        wall, work = [], []
        with SQLiteLog(path) as log:
            for answer in answers:
                begin, busy = time.perf_counter(), time.thread_time()
                log.write(answer)
                wall.append((time.perf_counter() - begin) * 1000)
                work.append((time.thread_time() - busy) * 1000)
        size = path.stat().st_size / len(answers)
    cuts = statistics.quantiles(wall, n=100)
    print(
        f"{len(answers)} writes, p50 {cuts[49]:.3f} ms, p95 {cuts[94]:.3f} ms, "
        f"p99 {cuts[98]:.3f} ms wall; p50 {statistics.median(work):.3f} ms processor; "
        f"{size:.0f} bytes a record"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a benchmark and print its numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parts = parser.add_subparsers(dest="part", required=True)
    kill = parts.add_parser("kill")
    kill.add_argument("--writes", type=int, default=10_000)
    kill.add_argument("--writers", type=int, default=4)
    kill.add_argument("--share", type=float, default=0.5)
    cost = parts.add_parser("cost")
    cost.add_argument("--rows", type=int, default=1000)
    chosen = parser.parse_args(arguments)
    if chosen.part == "kill":
        _kill(chosen.writes, chosen.writers, chosen.share)
    else:
        _cost(chosen.rows)


if __name__ == "__main__":
    main()
