"""The bench: what it measures, and the table that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.bench import Report, Row, bench, table_of


def test_the_whole_bench_on_two_small_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.bench._ONE_ROUND", 1000)
    progress: list[str] = []
    report = bench([600, 1200], 4, tmp_path, judge="none", rounds=1, tell=progress.append)
    rows = {(row.what, row.size): row for row in report.rows}
    assert len(rows) == len(report.rows)
    assert [len(rows["load", size].values) for size in (600, 1200)] == [1, 1]
    assert [len(rows["load, the store alone", size].values) for size in (600, 1200)] == [1, 1]
    assert len(progress) == len(rows)  # each part is reported once per round
    assert rows["load", 1200].against == "load, the store alone"
    assert rows["look-up", 1200].against == "600"
    assert rows["look-up, rdflib", 600].against == "look-up"
    assert rows["check, one call a row", 4].against == "bulk, 1 process"
    assert all(row.median > 0 for row in report.rows)
    assert all(row.peak_mb is None or row.peak_mb > 10 for row in report.rows)
    lines = table_of(report).splitlines()
    assert sum(line.startswith("| ") and "600" in line for line in lines) >= 6
    assert Report.model_validate_json(report.model_dump_json()) == report


def report() -> Report:
    def row(what: str, size: int, unit: str, *values: float) -> Row:
        return Row(what=what, size=size, unit=unit, values=list(values))

    return Report(
        machine="a machine, 2 cores", software="Python", command="make bench", when="2026-01-01",
        load=(0.0, 0.5),
        rows=(
            row("load", 1_000_000, "triples/s", 100_000, 300_000, 200_000),
            row("load", 10_000_000, "triples/s", 250_000),
            row("look-up", 1_000_000, "ms", 1.0),
            row("look-up", 10_000_000, "ms", 1.2),
            row("check, two sentences", 1_000_000, "ms", 50.0),
            row("check, two sentences", 10_000_000, "ms", 50.0),
            row("bulk, 1 process", 1000, "rows/s", 30.0),
            row("check, one call a row", 1000, "rows/s", 10.0),
            row("bulk, 2 processes", 1000, "rows/s", 40.0),
        ),
    )  # fmt: skip


def test_the_table_and_its_slopes() -> None:
    table = table_of(report())
    assert "| load | 1,000,000 | 200,000 triples/s | 150,000 to 250,000 |" in table
    assert "| load | 10,000,000 | 250,000 triples/s | once |" in table
    assert "| load of a billion triples, at the rate of 10,000,000 | 1.11 h |" in table
    assert "| look-up at a billion triples | 1.73 ms |" in table  # 1.2 * 1.2 * 1.2
    assert "| checks under way at once for 10,000 a second, at a billion triples | 500 |" in table
    needed = "cores for 10,000 checks a second, at the rate of bulk, 2 processes"
    assert f"| {needed} | 500 |" in table  # 20 rows a second and core
