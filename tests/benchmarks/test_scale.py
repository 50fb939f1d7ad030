"""The bench: what it measures, and the table that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.bench import Report, Row, _at, bench, page_with, table_of
from benchmarks.scale import measure

ROOT = Path(__file__).parents[2]


def test_a_small_graph(tmp_path: Path) -> None:
    assert measure("store", tmp_path, 3000).values[0] > 0
    loaded = measure("load", tmp_path, 3000)
    assert loaded.values[0] > 0
    assert loaded.disk_mb is not None
    assert 0 < loaded.disk_mb < 100
    look_ups = measure("look-up", tmp_path, 3000)
    assert len(look_ups.values) == 2000
    assert min(look_ups.values) > 0
    assert len(measure("hub", tmp_path, 3000).values) == 5
    assert len(measure("rdflib", tmp_path, 3000).values) == 200
    remote = measure("sparql", tmp_path, 3000)
    cached = measure("sparql-cached", tmp_path, 3000)
    assert len(remote.values) == len(cached.values) == 200
    assert sum(cached.values) < sum(remote.values)
    assert len(measure("pairs", tmp_path, 3000).values) == 60


def test_the_whole_bench_on_two_small_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.bench._ONE_ROUND", 1000)
    told: list[str] = []
    report = bench([600, 1200], 4, tmp_path, judge="none", rounds=1, tell=told.append)
    rows = {(row.what, row.size): row for row in report.rows}
    assert len(rows) == len(report.rows)
    assert [len(rows["load", size].values) for size in (600, 1200)] == [1, 1]
    assert [len(rows["load, the store alone", size].values) for size in (600, 1200)] == [1, 1]
    assert len(told) == len(rows)  # each part is told once a round
    assert rows["load", 1200].against == "load, the store alone"
    assert rows["look-up", 1200].against == "600"
    assert rows["look-up, rdflib", 600].against == "look-up"
    assert rows["check, one call a row", 4].against == "bulk, 1 process"
    assert all(row.median > 0 for row in report.rows)
    assert all(row.peak_mb is None or row.peak_mb > 10 for row in report.rows)
    lines = table_of(report).splitlines()
    assert sum(line.startswith("| ") and "600" in line for line in lines) >= 6
    assert Report.model_validate_json(report.model_dump_json()) == report


def report(scale: float = 1.0, machine: str = "a machine, 2 cores") -> Report:
    def row(what: str, size: int, unit: str, *values: float) -> Row:
        return Row(what=what, size=size, unit=unit, values=[value * scale for value in values])

    return Report(
        machine=machine,
        software="Python",
        command="make bench",
        when="2026-01-01",
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
    )


def test_the_table_and_its_slopes() -> None:
    table = table_of(report())
    assert "| load | 1,000,000 | 200,000 triples/s | 150,000 to 250,000 |" in table
    assert "| load | 10,000,000 | 250,000 triples/s | once |" in table
    assert "| load of a billion triples, at the rate of 10,000,000 | 1.11 h |" in table
    assert "| look-up at a billion triples | 1.73 ms |" in table  # 1.2 * 1.2 * 1.2
    assert "| checks under way at once for 10,000 a second, at a billion triples | 500 |" in table
    needed = "cores for 10,000 checks a second, at the rate of bulk, 2 processes"
    assert f"| {needed} | 500 |" in table  # 20 rows a second and core


def test_the_run_before_is_compared_on_the_same_machine_alone() -> None:
    table = table_of(report(2.0), last=report())
    assert "to 2026-01-01" in table
    assert table.count("| 2.00 |") == 9
    assert "to 2026-01-01" not in table_of(report(2.0), last=report(machine="another"))


def test_the_page_keeps_what_stands_round_the_table() -> None:
    page = page_with("# Page\n\nText.\n", "one")
    assert page_with(page, r"two \1") == page.replace("one", r"two \1")
    assert page.startswith("# Page\n\nText.\n")
    with_text_after = page + "\nAfter.\n"
    assert page_with(with_text_after, "three").endswith("\nAfter.\n")


@pytest.mark.parametrize("mark", ["<!-- bench -->", "<!-- end of bench -->"])
def test_the_shipped_page_has_a_place_for_it(mark: str) -> None:
    assert (ROOT / "benchmarks" / "RESULTS.md").read_text("utf-8").count(mark) == 1


def test_what_falls_between_two_sizes_is_not_carried_on() -> None:
    def row(size: int, value: float) -> Row:
        return Row(what="check", size=size, unit="ms", values=(value,))

    assert _at(row(10**6, 40.0), row(10**7, 30.0), 10**9) == 30.0
    assert _at(row(10**6, 10.0), row(10**7, 20.0), 10**8) == pytest.approx(40.0)
