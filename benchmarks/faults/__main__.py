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
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, get_args

from benchmarks.faults.facts import CASES, DEADLINE_S, HANG_S, Case, Way
from benchmarks.faults.leaks import NOISE_MIB, Held, fill_shared_pools, held, names_of_threads
from benchmarks.faults.seen import OUTCOMES, Seen
from benchmarks.faults.server import serving
from benchmarks.faults.ways import Ways

__all__ = ["Report", "main", "measure"]

AT_ONCE = 8
"""Concurrent runs, healthy and faulty ones."""
POINTS = 4
"""Looks at what is held, after the first round."""
STARVED_S = DEADLINE_S / 2
"""Seconds without a core after which a sound answer that is late tells of the machine alone."""
SHOWN = 20
"""Number of failed runs that are printed with their messages."""


class Report(NamedTuple):
    """What all runs came to.

    Attributes:
        runs: Each case that was run, with what was seen.
        at_rest: What is held before the first run that is counted, with everything closed.
        points: After how many runs what was held, with everything open and nothing in work.
        ended: What is held after the last run, with everything closed again.
        seconds: Wall time.
        slack_s: Seconds past a deadline that still count as in time.
    """

    runs: list[tuple[Case, Seen]]
    at_rest: Held
    points: list[tuple[int, Held]]
    ended: Held
    seconds: float
    slack_s: float

    def totals(self) -> dict[str, float]:
        """The numbers that must be 0."""
        seen = [item for _, item in self.runs]
        leaked = self.ended.since(self.at_rest)
        return {
            "unjudged bytes out": sum(item.unjudged for item in seen),
            "supported wrongly": sum(item.wrong for item in seen),
            "deadlines missed": sum(_missed(item, self.slack_s) for item in seen),
            "untyped errors": sum(item.bad for item in seen),
            "sound answers not delivered": sum(_withheld(*each) for each in self.runs),
            "records lost unsaid": sum(item.lost for item in seen),
            "threads leaked": leaked.threads,
            "files leaked": leaked.files,
            "sockets leaked": leaked.sockets,
            "memory leaked, MiB": self.grown_mib(),
        }

    def grown_mib(self) -> float:
        """Resident memory that the later half of the runs added, beyond ``NOISE_MIB``."""
        middle, last = self.points[len(self.points) // 2][1], self.points[-1][1]
        grown = last.memory_mib - middle.memory_mib
        return grown if grown > NOISE_MIB else 0.0


def _missed(seen: Seen, slack_s: float) -> bool:
    return seen.late_s > slack_s + seen.waited_s


async def measure(runs: int, seed: int, ways: Sequence[Way], slack_s: float) -> Report:
    """Run every case, in an order drawn by chance, again and again.

    All is opened, run once and closed before what is counted, so that what loads once for a
    process, and the pools that all of it shares, are there.

    Args:
        runs: How many runs.
        seed: Of the order and of what is random in a run.
        ways: The ways in.
        slack_s: Seconds past a deadline that still count as in time.
    """
    rng = random.Random(seed)
    begin = time.perf_counter()
    done: list[tuple[Case, Seen]] = []
    points: list[tuple[int, Held]] = []
    known = [case for case in CASES if case.way in ways]
    drawn = [case for _ in range(-(-runs // len(known))) for case in _shuffled(known, rng)][:runs]
    first, later = drawn[: len(known)], drawn[len(known) :]
    with serving() as url, tempfile.TemporaryDirectory(prefix="faults-") as folder:
        await fill_shared_pools()
        async with _opened(url, Path(folder, "first"), known, rng) as opened:
            await _round(opened, first, rng, done)
            await _settled()
        at_rest = await _settled()
        async with _opened(url, Path(folder, "later"), known, rng) as opened:
            points.append((len(done), await _settled()))
            for some in _parts(later):
                await _round(opened, some, rng, done)
                points.append((len(done), await _settled()))
        ended = await _settled()
    return Report(done, at_rest, points, ended, time.perf_counter() - begin, slack_s)


@asynccontextmanager
async def _opened(
    url: str, folder: Path, known: Sequence[Case], rng: random.Random
) -> AsyncIterator[Ways]:
    """All entry points, each warmed up by a first run."""
    folder.mkdir()
    async with Ways(url, folder) as opened:
        for case in known:
            if case.fault == "none":
                await opened.run(case, rng)
        yield opened


def _parts(cases: Sequence[Case]) -> list[Sequence[Case]]:
    """Cases in ``POINTS`` parts of one size, as near as may be."""
    size = max(1, -(-len(cases) // POINTS))
    return [cases[start : start + size] for start in range(0, len(cases), size)]


def _shuffled(cases: Sequence[Case], rng: random.Random) -> list[Case]:
    return rng.sample(list(cases), len(cases))


async def _round(
    ways: Ways, cases: Sequence[Case], rng: random.Random, done: list[tuple[Case, Seen]]
) -> None:
    """Run cases, some at once; those whose disk fails one after another, at the end."""
    room = asyncio.Semaphore(AT_ONCE)

    async def run(case: Case, seed: int) -> None:
        async with room:
            seen = await ways.run(case, random.Random(seed))
            # What is kept of each run counts as memory: of most, what they said is left out.
            amiss = _odd(case, seen) or seen.late_s > 0
            done.append((case, seen if amiss else seen._replace(detail="")))

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
    seen = [item for _, item in report.runs]
    late = sum(item.late_s > report.slack_s and not _missed(item, report.slack_s) for item in seen)
    lines.append(f"| late by waiting for a core, not counted | {late} |")
    starved = sum(
        case.fault == "none" and item.outcome != "delivered" and not _withheld(case, item)
        for case, item in report.runs
    )
    lines.append(f"| sound, not delivered for want of a core, not counted | {starved} |")
    lines += ["", "| held | threads | files | sockets | MiB | blocks of Python |"]
    lines.append(f"|---|{'--:|' * 5}")
    rows = [("closed, before", report.at_rest)]
    rows += [(f"open, after {number} runs", item) for number, item in report.points]
    for name, item in [*rows, ("closed, after", report.ended)]:
        counts = f"{item.threads} | {item.files} | {item.sockets}"
        lines.append(f"| {name} | {counts} | {item.memory_mib:.1f} | {item.blocks} |")
    lines.append("")
    lines.append(f"{len(report.runs)} runs in {report.seconds:.0f} s")
    return "\n".join(lines)


def _odd(case: Case, seen: Seen) -> bool:
    bad = seen.unjudged or seen.wrong or seen.bad or seen.lost
    return bool(bad) or _withheld(case, seen)


def _withheld(case: Case, seen: Seen) -> bool:
    """Whether a sound answer did not come, though there was a core to judge it."""
    starved = seen.waited_s > STARVED_S
    return case.fault == "none" and seen.outcome != "delivered" and not starved


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; the status is 0 where all numbers are that must be."""
    parser = argparse.ArgumentParser(description="What comes out while parts fail.")
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=get_args(Way), default=get_args(Way))
    parser.add_argument("--slack", type=float, default=1.0, help="seconds past a deadline")
    parser.add_argument("--json", action="store_true", help="one JSON object in place of tables")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # thousands of faults, each of them wanted
    report = asyncio.run(measure(options.runs, options.seed, options.ways, options.slack))
    wrong = [
        (case, seen)
        for case, seen in report.runs
        if _odd(case, seen) or _missed(seen, options.slack)
    ]
    for case, seen in wrong[:SHOWN]:
        print(*case, seen, file=sys.stderr)
    if report.totals()["threads leaked"]:
        print("threads now:", names_of_threads(), file=sys.stderr)
    print(json.dumps(report.totals()) if options.json else table(report))
    return 1 if any(report.totals().values()) else 0


if __name__ == "__main__":
    sys.exit(main())
