"""What the gateway adds to a call: the arithmetic, on steps that nobody timed."""

from typing import Any

from benchmarks.gateway import LoadReport, LoadStep, compared


def step(clients: int, **values: Any) -> LoadStep:
    given = {"requests": 100, "errors": 0, "per_second": 10.0, "memory_mib": None, "cpu_s": None}
    times = {"p50_ms": 50.0, "p95_ms": 60.0, "p99_ms": 70.0, "first_ms": 20.0}
    return LoadStep(clients=clients, **(given | times | values))


ALONE = [step(1), step(16, p50_ms=55.0), step(64, p50_ms=60.0, p99_ms=90.0)]
THROUGH = [
    step(1, p50_ms=80.0, p99_ms=95.0, first_ms=32.5, per_second=12.0, cpu_s=2.0),
    step(16, p50_ms=455.0, p99_ms=1069.0, first_ms=120.0, per_second=40.0, cpu_s=2.5),
    step(64, p50_ms=1260.0, p99_ms=1090.0, first_ms=900.0, per_second=44.0, cpu_s=2.0),
]


def test_the_upstreams_times_are_taken_off() -> None:
    added = compared(LoadReport(memory_mib=300.0, steps=tuple(THROUGH)), ALONE).added
    assert [item.clients for item in added] == [1, 16, 64]
    assert [item.first_ms for item in added] == [12.5, 100.0, 880.0]
    assert [item.p50_ms for item in added] == [30.0, 400.0, 1200.0]
    assert [item.p99_ms for item in added] == [25.0, 999.0, 1000.0]
