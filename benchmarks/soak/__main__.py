"""The command; see the package."""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import logging
import random
import re
import statistics
import sys
import tempfile
import time
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from starlette.types import ASGIApp

from benchmarks.faults.facts import HANG_S
from benchmarks.faults.leaks import NOISE_MIB, Held, fill_shared_pools, held
from benchmarks.faults.seen import OUTCOMES, Outcome
from benchmarks.faults.server import serving
from benchmarks.faults.ways import GATEWAY_S, config_of
from benchmarks.soak.traffic import FAILING, Draw, Sent, draw, send
from chains.gateway import GatewaySettings, create_app, freeze_loaded
from guardrail import Guardrail
from guardrail.log.records import open_log

__all__ = ["Report", "Tally", "main", "soak"]

USUAL = 0.08
"""Requests without a fault before those of each quarter, as a share of these."""
WARMING = 200
"""Requests before all that is counted."""
HEALTHY = "none none"
NUMBER = re.compile(r"\[(\d+)\]$")
"""Of a request, at the end of its question."""
POINTS = 4
"""Looks at what is held while it lasts. From the middle one on nothing may grow: by then the
memories of words and texts are full, 16,384 of each, in a soak of 50,000 different questions."""
IDLE_S = 6.0
"""Seconds without a request before a look. Connections that are kept for the next call are no leak:
they end after five, when a call comes by."""
AFTER_IDLE = 5
"""Requests without a fault between that and the look, and how many of them a second: one by one, so
that they keep one connection."""
SHOWN = 20
"""Number of failed requests that are printed with their messages."""
MOST_TIMES = 2.0
"""Maximum growth of the p99 of healthy requests while others fail, as a factor."""
CALLS = 32
"""``limits.concurrency``: a call that hangs keeps its place for the time of its answer, so that
the rate times the share that hangs times that time must fit, in addition to the healthy ones."""
RATE = 25.0
"""Requests a second. Python runs on one core: where it is busy throughout, requests wait for it,
the more the longer a stretch lasts, and their times say nothing of faults; ``Tally.busy`` tells."""


class Tally:
    """What became of many requests, in little memory: what is kept of each would look like a leak.

    Attributes:
        outcomes: How many met a fault and ended in a way.
        healthy_s: Seconds of the healthy ones.
        recorded: The numbers of those whose answers say that they are in the log.
        unjudged: Bytes that left and were not judged.
        wrong: Sentences called supported that are false.
        amiss: What went wrong, for people.
        wall_s: Seconds while they were sent.
        cpu_s: Seconds of all cores that this process took meanwhile.
    """

    def __init__(self) -> None:
        self.outcomes = Counter[tuple[str, Outcome | None]]()
        self.healthy_s = array("d")
        self.recorded = array("l")
        self.unjudged = self.wrong = 0
        self.wall_s = self.cpu_s = 0.0
        self.amiss: list[str] = []

    def add(self, sent: Sent) -> None:
        """Count one request."""
        self.outcomes[sent.draw.fault, sent.outcome] += 1
        if sent.draw.healthy:
            self.healthy_s.append(sent.seconds)
        if sent.recorded:
            self.recorded.append(sent.draw.number)
        self.unjudged += sent.unjudged
        self.wrong += sent.wrong
        odd = sent.draw.healthy and sent.outcome != "delivered"
        if sent.unjudged or sent.wrong or odd or sent.outcome == "untyped error":
            self.amiss.append(f"{sent.draw} {sent.outcome} {sent.detail}")

    @property
    def busy(self) -> float:
        """Cores that this process kept busy."""
        return self.cpu_s / self.wall_s

    def p99_s(self) -> float:
        """The 99th percentile of the healthy ones, in seconds."""
        return statistics.quantiles(self.healthy_s, n=100)[98]


class Report(NamedTuple):
    """What a soak came to.

    Attributes:
        usual: The requests of stretches without a fault.
        mixed: Those of stretches with faults among them.
        points: After how many requests what was held, with none in work.
        lost: Answers that say they are in the log and are not.
        records: Records in the log.
        seconds: Wall time.
    """

    usual: Tally
    mixed: Tally
    points: list[tuple[int, Held]]
    lost: int
    records: int
    seconds: float

    @property
    def requests(self) -> int:
        """How many were sent with faults among them."""
        return self.mixed.outcomes.total()

    def totals(self) -> dict[str, float]:
        """The numbers that must be 0."""
        both = (self.usual, self.mixed)
        grown = self.points[-1][1].since(self.points[POINTS // 2][1])
        cells = self.usual.outcomes + self.mixed.outcomes
        healthy = sum(number for (fault, _), number in cells.items() if fault == HEALTHY)
        times = self.mixed.p99_s() / self.usual.p99_s()
        return {
            "unjudged bytes out": sum(tally.unjudged for tally in both),
            "supported wrongly": sum(tally.wrong for tally in both),
            "untyped errors": sum(n for (_, out), n in cells.items() if out == "untyped error"),
            "healthy requests not answered": healthy - cells[HEALTHY, "delivered"],
            "records lost": self.lost,
            "threads more than after half": grown.threads,
            "files more": grown.files,
            "sockets more": grown.sockets,
            "MiB more, beyond noise": grown.memory_mib if grown.memory_mib > NOISE_MIB else 0.0,
            f"p99 beyond {MOST_TIMES:g} times the usual": times if times > MOST_TIMES else 0.0,
        }


async def soak(
    requests: int, share: float, rate: float, seed: int, idle_s: float = IDLE_S
) -> Report:
    """Send requests at a rate: in each quarter first healthy ones alone, then with faults.

    Args:
        requests: How many with faults among them.
        share: Of each fault.
        rate: Requests a second.
        seed: Of all that is random.
        idle_s: Seconds without a request before each look.
    """
    rng = random.Random(seed)
    begin = time.perf_counter()
    numbers = itertools.count()
    points: list[tuple[int, Held]] = []
    warmed, usual, mixed = Tally(), Tally(), Tally()
    with ExitStack() as stack:
        stack.callback(gc.unfreeze)  # what runs behind this may be no server
        url = stack.enter_context(serving())
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-"))
        await fill_shared_pools()
        path = Path(folder, "scores.sqlite")
        limits = {"concurrency": CALLS}
        settings = GatewaySettings(upstream=f"{url}/v1", timeout_s=GATEWAY_S)
        async with Guardrail(config_of(url, log=path, limits=limits)) as guard:
            guard.warm_up()
            app = create_app(guard, settings, on_loaded=freeze_loaded)  # as it is served

            async def some(number: int, share: float, tally: Tally, rate: float = rate) -> None:
                drawn = (draw(next(numbers), share, rng) for _ in range(number))
                wall, cpu = time.perf_counter(), time.process_time()
                await _at_a_rate(app, drawn, rate, rng, tally)
                tally.wall_s += time.perf_counter() - wall
                tally.cpu_s += time.process_time() - cpu
                await asyncio.sleep(2 * HANG_S)

            async def looked() -> Held:
                await asyncio.sleep(idle_s)
                await some(AFTER_IDLE, 0.0, warmed, AFTER_IDLE)
                return held()

            async with app.router.lifespan_context(app):
                await some(WARMING, 1 / len(FAILING), warmed)
                points.append((0, await looked()))
                for place in range(POINTS):
                    size = requests * (place + 1) // POINTS - mixed.outcomes.total()
                    await some(max(100, int(size * USUAL)), 0.0, usual)
                    await some(size, share, mixed)
                    points.append((mixed.outcomes.total(), await looked()))
        found = _numbers(path)
    lost = sum(number not in found for each in (warmed, usual, mixed) for number in each.recorded)
    return Report(usual, mixed, points, lost, len(found), time.perf_counter() - begin)


async def _at_a_rate(
    app: ASGIApp, drawn: Iterable[Draw], rate: float, rng: random.Random, tally: Tally
) -> None:
    """Send each when it is due, however many are in work."""
    begin = time.monotonic()
    async with asyncio.TaskGroup() as tasks:

        async def one(item: Draw, due: float, seed: int) -> None:
            tally.add(await send(app, item, due, random.Random(seed)))

        for place, item in enumerate(drawn):
            due = begin + place / rate
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            tasks.create_task(one(item, due, rng.getrandbits(32)))


def _numbers(path: Path) -> set[int]:
    """The numbers of the requests whose records are in a log."""
    log = open_log(path, read_only=True)
    try:
        found = (NUMBER.search(record.answer.question) for record in log.records())
        return {int(number[1]) for number in found if number}
    finally:
        log.close()


def table(report: Report) -> str:
    """The report as tables."""
    lines = [f"| fault | requests | gone | {' | '.join(OUTCOMES)} |", f"|---|{'--:|' * 7}"]
    for part, fault in (("none", "none"), *FAILING):
        name = fault if fault == "caller gone" else f"{part} {fault}"
        row = [report.mixed.outcomes[name, outcome] for outcome in (None, *OUTCOMES)]
        lines.append(f"| {name} | {sum(row)} | {' | '.join(map(str, row))} |")
    lines += [
        "",
        "| healthy requests | number | p50 ms | p99 ms | cores busy |",
        f"|---|{'--:|' * 4}",
    ]
    for name, tally in (("without faults", report.usual), ("with faults", report.mixed)):
        p50, p99 = statistics.median(tally.healthy_s) * 1e3, tally.p99_s() * 1e3
        lines.append(
            f"| {name} | {len(tally.healthy_s)} | {p50:.1f} | {p99:.1f} | {tally.busy:.2f} |"
        )
    lines += ["", "| after requests | threads | files | sockets | MiB | blocks of Python |"]
    lines.append(f"|--:|{'--:|' * 5}")
    for number, item in report.points:
        counts = f"{item.threads} | {item.files} | {item.sockets}"
        lines.append(f"| {number} | {counts} | {item.memory_mib:.1f} | {item.blocks} |")
    lines += ["", "| | |", "|---|--:|"]
    lines += [f"| {name} | {number:g} |" for name, number in report.totals().items()]
    lines += ["", f"{report.requests} requests, {report.records} records, {report.seconds:.0f} s"]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; the status is 0 where all numbers are that must be."""
    parser = argparse.ArgumentParser(description="A service for hours in miniature.")
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--share", type=float, default=0.01, help="of each fault")
    parser.add_argument("--rate", type=float, default=RATE, help="requests a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON object in place of tables")
    options = parser.parse_args(arguments)
    if not 0 <= options.share * len(FAILING) <= 1:
        parser.error(f"--share is in [0, {1 / len(FAILING):.3f}]: there are {len(FAILING)} faults")
    logging.disable(logging.CRITICAL)  # thousands of faults, each of them wanted
    report = asyncio.run(soak(options.requests, options.share, options.rate, options.seed))
    for line in [*report.usual.amiss, *report.mixed.amiss][:SHOWN]:
        print(line, file=sys.stderr)
    print(json.dumps(report.totals()) if options.json else table(report))
    return 1 if any(report.totals().values()) else 0


if __name__ == "__main__":
    sys.exit(main())
