"""Wall time of one check of a five-sentence answer on the people graph.

    python -m benchmarks.latency [--rows 100] [--judge onnx] [--seed 1]

Answers are written by the verbaliser from the facts of persons of the shipped graph, four
sentences with five facts and one sentence that no graph holds; each person is asked about once,
so nothing is served from a cache of answers. Next to the wall time it prints the processor time
of the process: on a busy machine the wall time tells of the other work, not of the guardrail.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import sys
import time
from collections.abc import Sequence
from statistics import quantiles

from benchmarks.verdicts.people import biographies
from guardrail import Guardrail, GuardrailConfig
from guardrail.core.types import Value

__all__ = ["LatencyReport", "measure_latency"]

UNKNOWN = " A letter of 1901 to the mayor of Springfield mentions a stay in Montevideo."
"""The fifth sentence: a claim that the graph does not cover."""

WARM_UP = 5


class LatencyReport(Value):
    """Percentiles in milliseconds.

    Attributes:
        rows: Answers checked, after warm-up.
        wall_p50: Half of the checks took at most this.
        wall_p95: 95 % of the checks took at most this.
        cpu_p50: The same for processor time, all threads together.
        cpu_p95: Likewise.
        stages: Median wall time of each stage.
    """

    rows: int
    wall_p50: float
    wall_p95: float
    cpu_p50: float
    cpu_p95: float
    stages: dict[str, float]


def measure_latency(guard: Guardrail, *, rows: int, seed: int = 1) -> LatencyReport:
    """Check ``rows`` answers one after the other.

    Args:
        guard: The guardrail, warmed up here.
        rows: Answers to time.
        seed: Chooses persons, facts and phrasings.
    """
    rng = random.Random(seed)
    texts = biographies(rng)
    rng.shuffle(texts)
    guard.warm_up()
    wall, cpu = [], []
    stages: dict[str, list[float]] = {}
    for number, (text, facts) in enumerate(texts[: rows + WARM_UP]):
        begin, used = time.perf_counter(), time.process_time()
        question = f"Who was {facts[0].subject}?"
        answer = guard.check(question=question, answer=text + UNKNOWN)
        if number < WARM_UP:
            continue
        wall.append((time.perf_counter() - begin) * 1000.0)
        cpu.append((time.process_time() - used) * 1000.0)
        for stage, spent in answer.timings_ms.items():
            stages.setdefault(stage, []).append(spent)
    return LatencyReport(
        rows=len(wall),
        wall_p50=_percentile(wall, 50),
        wall_p95=_percentile(wall, 95),
        cpu_p50=_percentile(cpu, 50),
        cpu_p95=_percentile(cpu, 95),
        stages={stage: _percentile(spent, 50) for stage, spent in stages.items()},
    )


def _percentile(values: Sequence[float], percent: int) -> float:
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--judge", default="onnx")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the program does
    with Guardrail(GuardrailConfig(judge=options.judge)) as guard:
        report = measure_latency(guard, rows=options.rows, seed=options.seed)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(
        f"{report.rows} checks, {os.cpu_count()} cores ({platform.machine()}), load {load:.1f}\n"
        f"wall ms: p50 {report.wall_p50:.1f}  p95 {report.wall_p95:.1f}\n"
        f"cpu ms:  p50 {report.cpu_p50:.1f}  p95 {report.cpu_p95:.1f}\n"
        "median wall ms by stage: "
        + ", ".join(f"{stage} {spent:.1f}" for stage, spent in report.stages.items())
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
