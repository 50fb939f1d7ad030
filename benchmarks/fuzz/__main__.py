"""The command; see the package."""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.database import DirectoryBasedExampleDatabase

from benchmarks.fuzz.exchanges import EXCHANGES
from benchmarks.fuzz.inputs import Target
from benchmarks.fuzz.prose import PROSE
from benchmarks.fuzz.texts import TEXTS

__all__ = ["TARGETS", "Found", "Timed", "fuzz", "main", "timed"]

TARGETS: dict[str, Target] = {**TEXTS, **PROSE, **EXCHANGES}
"""All targets by name."""
ROUND = 2_000
"""Inputs of one round; each draws anew."""
LONGEST_S = 2.0
"""Seconds that an input of a round may take: they are short."""
MEBIBYTE = 1 << 20
SIZES = (MEBIBYTE // 16, MEBIBYTE // 4, MEBIBYTE)
"""Characters of the inputs that are timed; each is four times the one before."""
MOST_TIMES = 8.0
"""Times as long that four times the input may take: 4 is linear, 16 quadratic."""
SOON_S = 0.25
"""Processor seconds below which a ratio is noise."""


class Found(NamedTuple):
    """What fuzzing a target came to.

    Attributes:
        inputs: How many it was given.
        seconds: How long.
        slowest_s: The longest that one took.
        fault: What the smallest input that fails came to; None where none does.
    """

    inputs: int
    seconds: float
    slowest_s: float
    fault: str | None


class Timed(NamedTuple):
    """How long hostile inputs of one kind take.

    Attributes:
        kind: What is in them.
        seconds: Processor time by size, as in ``SIZES``.
    """

    kind: str
    seconds: tuple[float, ...]

    @property
    def times(self) -> float:
        """Times as long for four times the input, where it is longest."""
        pairs = zip(self.seconds, self.seconds[1:], strict=False)
        return max((b / max(a, SOON_S / 4) for a, b in pairs if b > SOON_S), default=0.0)

    @property
    def linear(self) -> bool:
        """Whether time grows with the size and no faster."""
        return self.times <= MOST_TIMES


def fuzz(target: Target, seconds: float, kept: Path) -> Found:
    """Give a target what hypothesis draws until the time is over, or it fails.

    Args:
        target: What reads.
        seconds: How long.
        kept: Folder of the inputs that made it fail, which are tried first.
    """
    begin = time.monotonic()
    count, slowest = 0, 0.0

    @hypothesis.settings(
        max_examples=ROUND,
        deadline=None,
        database=DirectoryBasedExampleDatabase(kept),
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(target.given)
    def one(given: Any) -> None:
        nonlocal count, slowest
        if time.monotonic() - begin > seconds:
            return
        took = _processor_s(target.run, given)
        if took >= LONGEST_S:  # a machine that stood still meanwhile is no fault of the reader
            took = min(took, _processor_s(target.run, given))
        count, slowest = count + 1, max(slowest, took)
        assert took < LONGEST_S, f"a short input takes {took:.1f} s of the processor"

    fault = None
    while fault is None and time.monotonic() - begin < seconds:
        try:
            one()
        except Exception:  # whatever a target raises is what is looked for
            fault = traceback.format_exc()
    return Found(count, time.monotonic() - begin, slowest, fault)


def timed(target: Target) -> list[Timed]:
    """Time a target on each kind of hostile input."""
    return [
        Timed(kind, tuple(_processor_s(target.run, target.of_size(size)[kind]) for size in SIZES))
        for kind in target.of_size(SIZES[0])
    ]


def _processor_s(run: Callable[[Any], None], given: Any) -> float:
    begin = time.process_time()
    run(given)
    return time.process_time() - begin


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; the status is 0 where nothing was found."""
    parser = argparse.ArgumentParser(description="Hostile input for everything that reads.")
    parser.add_argument("--target", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--minutes", type=float, default=10.0, help="for each target")
    parser.add_argument("--kept", type=Path, default=Path(".hypothesis/fuzz"), help="a folder")
    parser.add_argument("--linear", action="store_true", help="time them instead")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # inputs of thousands, each of them wrong
    wrong = False
    if options.linear:
        print("| target | kinds | longest at 1 MiB, s | of | most times as long for 4 times |")
        print("|---|--:|--:|---|--:|")
        for name in options.target:
            found = timed(TARGETS[name])
            worst = max(found, key=lambda item: item.seconds[-1])
            times = max(item.times for item in found)
            last = f"{worst.seconds[-1]:.2f} | {worst.kind!r}"
            print(f"| {name} | {len(found)} | {last} | {times:.1f} |", flush=True)
            for item in found:
                if not item.linear:
                    print(f"{name}: {item}", file=sys.stderr, flush=True)
                    wrong = True
        return int(wrong)
    print("| target | inputs | minutes | slowest, s | faults |\n|---|--:|--:|--:|--:|", flush=True)
    for name in options.target:
        found_ = fuzz(TARGETS[name], options.minutes * 60, options.kept / name)
        numbers = f"{found_.inputs} | {found_.seconds / 60:.1f} | {found_.slowest_s:.2f}"
        print(f"| {name} | {numbers} | {int(found_.fault is not None)} |", flush=True)
        if found_.fault is not None:
            print(found_.fault, file=sys.stderr, flush=True)
            wrong = True
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
