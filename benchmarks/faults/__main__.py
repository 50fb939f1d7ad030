"""The command; see the package."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from benchmarks.faults.facts import CASES, HANG_S, Case, Way
from benchmarks.faults.leaks import Held, held
from benchmarks.faults.seen import OUTCOMES, Seen
from benchmarks.faults.server import serving
from benchmarks.faults.ways import Ways

__all__ = ["Report", "main", "measure"]

AT_ONCE = 8
"""Runs under way at once, sound ones beside those that fail."""
SHOWN = 20
"""Runs that went wrong of which one is told what it said."""


class Report(NamedTuple):
    """What all runs came to.

    Attributes:
        runs: Each case that was run, with what was seen.
        leaked: What is held after all runs that was not held after the first round of them.
        counted: Runs between the two.
        seconds: Wall time.
        slack_s: Seconds past a deadline that still count as in time.
    """

    runs: list[tuple[Case, Seen]]
    leaked: Held
    counted: int
    seconds: float
    slack_s: float

    def totals(self) -> dict[str, float]:
        """The numbers that must be 0, but for memory, which is a growth in MiB."""
        seen = [item for _, item in self.runs]
        sound = [item for case, item in self.runs if case.fault == "none"]
        return {
            "unjudged bytes out": sum(item.unjudged for item in seen),
            "supported wrongly": sum(item.wrong for item in seen),
            "deadlines missed": sum(item.late_s > self.slack_s for item in seen),
            "untyped errors": sum(item.bad for item in seen),
            "sound answers not delivered": sum(item.outcome != "delivered" for item in sound),
            "records lost unsaid": sum(item.lost for item in seen),
            "threads leaked": self.leaked.threads,
            "files leaked": self.leaked.files,
            "sockets leaked": self.leaked.sockets,
        }


async def measure(runs: int, seed: int, ways: Sequence[Way], slack_s: float) -> Report:
    """Run every case, in an order drawn by chance, again and again.

    Args:
        runs: How many runs.
        seed: Of the order and of what is random in a run.
        ways: The ways in.
        slack_s: Seconds past a deadline that still count as in time.
    """
    rng = random.Random(seed)
    begin = time.perf_counter()
    done: list[tuple[Case, Seen]] = []
    with serving() as url, tempfile.TemporaryDirectory(prefix="faults-") as folder:
        async with Ways(url, Path(folder)) as opened:
            known = [case for case in CASES if case.way in ways]
            drawn = [case for _ in range(-(-runs // len(known))) for case in _shuffled(known, rng)]
            first = drawn[: len(known)]
            for case in (case for case in known if case.fault == "none"):
                await opened.run(case, rng)  # loads what the first of its way loads
            await _round(opened, first, rng, done)
            before = await _settled()
            for start in range(len(known), runs, len(known)):
                some = drawn[start : min(start + len(known), runs)]
                await _round(opened, some, rng, done)
            leaked = (await _settled()).since(before)
    seconds = time.perf_counter() - begin
    return Report(done, leaked, max(0, runs - len(first)), seconds, slack_s)


def _shuffled(cases: Sequence[Case], rng: random.Random) -> list[Case]:
    return rng.sample(list(cases), len(cases))


async def _round(
    ways: Ways, cases: Sequence[Case], rng: random.Random, done: list[tuple[Case, Seen]]
) -> None:
    """Run cases, some at once; those whose disk fails one after another, at the end."""
    room = asyncio.Semaphore(AT_ONCE)

    async def run(case: Case, seed: int) -> None:
        async with room:
            done.append((case, await ways.run(case, random.Random(seed))))

    alone = [case for case in cases if case.part == "disk"]
    together = [case for case in cases if case.part != "disk"]
    await asyncio.gather(*(run(case, rng.getrandbits(32)) for case in together))
    for case in alone:
        await run(case, rng.getrandbits(32))


async def _settled() -> Held:
    """What is held once everything that hangs has come back."""
    await asyncio.sleep(4 * HANG_S)
    return held()


def table(report: Report) -> str:
    """The report as two tables and what went wrong."""
    lines = [f"| part | fault | runs | {' | '.join(OUTCOMES)} |", f"|---|---|{'--:|' * 6}"]
    cells = Counter((case.part, case.fault, seen.outcome) for case, seen in report.runs)
    for part, fault in dict.fromkeys((case.part, case.fault) for case in CASES):
        row = [cells[part, fault, outcome] for outcome in OUTCOMES]
        if sum(row):
            lines.append(f"| {part} | {fault} | {sum(row)} | {' | '.join(map(str, row))} |")
    lines += ["", f"| way | runs | {' | '.join(OUTCOMES)} |", f"|---|{'--:|' * 6}"]
    cells = Counter((case.way, seen.outcome) for case, seen in report.runs)  # type: ignore[misc]
    for way in get_args(Way):
        row = [cells[way, outcome] for outcome in OUTCOMES]  # type: ignore[index]
        if sum(row):
            lines.append(f"| {way} | {sum(row)} | {' | '.join(map(str, row))} |")
    lines += ["", "| | |", "|---|--:|"]
    lines += [f"| {name} | {number:g} |" for name, number in report.totals().items()]
    lines.append(
        f"| memory after {report.counted} runs more, MiB | {report.leaked.memory_mib:+.1f} |"
    )
    lines.append("")
    lines.append(f"{len(report.runs)} runs in {report.seconds:.0f} s")
    return "\n".join(lines)


def _amiss(case: Case, seen: Seen, slack_s: float) -> bool:
    late = seen.late_s > slack_s
    bad = seen.unjudged or seen.wrong or late or seen.bad or seen.lost
    return bool(bad) or (case.fault == "none" and seen.outcome != "delivered")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; the status is 0 where all numbers are that must be."""
    parser = argparse.ArgumentParser(description="What comes out while parts fail.")
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=get_args(Way), default=get_args(Way))
    parser.add_argument("--slack", type=float, default=1.5, help="seconds past a deadline")
    parser.add_argument("--json", action="store_true", help="one JSON object in place of tables")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # thousands of faults, each of them wanted
    report = asyncio.run(measure(options.runs, options.seed, options.ways, options.slack))
    wrong = [(case, seen) for case, seen in report.runs if _amiss(case, seen, options.slack)]
    for case, seen in wrong[:SHOWN]:
        print(*case, seen, file=sys.stderr)
    print(json.dumps(report.totals()) if options.json else table(report))
    return 1 if any(report.totals().values()) else 0


if __name__ == "__main__":
    sys.exit(main())
