"""The bench: one table of speed and memory by size, on this machine, next to baselines.

    make bench [SIZES=100000,1000000,10000000] [ROWS=1000] [OUTPUT=benchmarks/RESULTS.md]

Every part runs in a process of its own (``benchmarks.scale``), one after the other, in
several rounds. The table is written into the page between two marks, and its numbers next to it as
JSON, with which the next run on the same machine compares.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from benchmarks.scale import Measured, Part
from guardrail.core.types import Value

__all__ = ["Report", "Row", "bench", "page_with", "table_of"]

_BEGIN, _END = "<!-- bench -->", "<!-- end of bench -->"
_SIZES: Final = (100_000, 1_000_000, 10_000_000)
_ROWS: Final = 1000
_ROUNDS: Final = 3
_ONE_ROUND: Final = 5_000_000
"""Graphs of so many triples are loaded once by the store alone."""
_BILLION: Final = 1_000_000_000
_REQUESTS: Final = 10_000
_BULK: Final = re.compile(r"bulk, (\d+) process")
_VERSIONS: Final = ("pyoxigraph", "onnxruntime", "spacy", "numpy")


class Row(Value):
    """A line of the table.

    Attributes:
        what: What was measured.
        size: Triples of the graph, or rows.
        unit: Of the values.
        values: One value a repetition.
        against: What it is compared with; empty for nothing.
        ratio: Median over that of the baseline.
        peak_mb: Most memory that one process held, in MiB.
        disk_mb: What a graph takes on disk, in MiB.
    """

    what: str
    size: int
    unit: str
    values: tuple[float, ...]
    against: str = ""
    ratio: float | None = None
    peak_mb: float | None = None
    disk_mb: float | None = None

    @property
    def median(self) -> float:
        """Of the values."""
        return statistics.median(self.values)

    @property
    def middle(self) -> tuple[float, float]:
        """Between what the middle half of the values lies."""
        if len(self.values) < 2:
            return self.values[0], self.values[0]
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return low, high


class Report(Value):
    """What a run of the bench found.

    Attributes:
        machine: Processor, cores, memory, system.
        software: Versions.
        command: What was run.
        when: Day.
        load: Load of the machine (tasks that want a core, over 15 minutes) before and after.
        rows: The table.
    """

    machine: str
    software: str
    command: str
    when: str
    load: tuple[float, float]
    rows: tuple[Row, ...]


def bench(
    sizes: Sequence[int],
    rows: int,
    folder: Path,
    *,
    judge: str | None = None,
    rounds: int = _ROUNDS,
    command: str = "make bench",
    tell: Callable[[str], None] = lambda _: None,
) -> Report:
    """Measure all parts.

    Args:
        sizes: Triples of the graphs, ascending.
        rows: Rows of bulk.
        folder: Where files and graphs go; the largest graph takes some 200 bytes a triple, twice.
        judge: Judge of check and bulk; None for the usual one.
        rounds: How often loading is measured.
        command: What was run, for the report.
        tell: Receives a description of each measurement.
    """
    before = _load()

    def part(name: Part, triples: int, **options: object) -> Measured:
        tell(f"{name}, {triples:,} triples" + "".join(f", {k} {v}" for k, v in options.items()))
        return _run(name, folder, triples, {"judge": judge, **options})

    table: list[Row] = []
    for size in sizes:
        stores, loads = [], []
        for turn in range(rounds):
            if turn == 0 or size < _ONE_ROUND:
                stores.append(part("store", size))
            loads.append(part("load", size))
        table += _compared(
            _row("load, the store alone", size, "triples/s", stores),
            [_row("load", size, "triples/s", loads)],
        )
    look_ups = [_row("look-up", size, "ms", [part("look-up", size)]) for size in sizes]
    hubs = [_row("look-up of a hub", size, "ms", [part("hub", size)]) for size in sizes]
    table += _compared(look_ups[0], look_ups[1:]) + _compared(hubs[0], hubs[1:])
    baselines: list[tuple[str, Part]] = [
        ("look-up, rdflib", "rdflib"),
        ("look-up, SPARQL without a cache", "sparql"),
        ("look-up, SPARQL, cached", "sparql-cached"),
    ]
    others = [_row(what, sizes[0], "ms", [part(name, sizes[0])]) for what, name in baselines]
    table += _compared(look_ups[0], others)[1:]
    checks = [_row("check, two sentences", size, "ms", [part("check", size)]) for size in sizes]
    table += _compared(checks[0], checks[1:])
    if judge != "none":
        pairs = _row("judged pair by pair", sizes[0], "ms", [part("pairs", sizes[0])])
        table += _compared(checks[0], [pairs])[1:]
    cores = os.cpu_count() or 1
    one = _row("bulk, 1 process", rows, "rows/s", [part("bulk", sizes[0], rows=rows, workers=1)])
    others = [_row("check, one call a row", rows, "rows/s", [part("calls", sizes[0], rows=rows)])]
    if cores > 1:
        many = part("bulk", sizes[0], rows=rows, workers=cores)
        others.append(_row(f"bulk, {cores} processes", rows, "rows/s", [many]))
    table += _compared(one, others)
    return Report(
        machine=_machine(),
        software=", ".join((f"Python {platform.python_version()}", *map(_versioned, _VERSIONS))),
        command=command,
        when=datetime.now(UTC).date().isoformat(),
        load=(before, _load()),
        rows=tuple(table),
    )


def table_of(report: Report, last: Report | None = None) -> str:
    """Write the table and what follows from it.

    Args:
        report: What was found.
        last: What the run before found; it is compared with where the machine is the same.
    """
    known = {} if last is None or last.machine != report.machine else _medians(last)
    head = ["", "size", "median", "middle half", "against", "ratio", "memory, MiB", "disk, MiB"]
    head += [f"to {last.when}"] if known and last else []
    before, after = report.load
    lines = [
        f"`{report.command}`, {report.when}: {report.machine}; {report.software}.",
        f"Load of the machine before and after: {before:.1f} and {after:.1f}. Wall time.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    for row in report.rows:
        low, high = row.middle
        cells = [
            row.what,
            f"{row.size:,}",
            f"{_figure(row.median)} {row.unit}",
            f"{_figure(low)} to {_figure(high)}" if len(row.values) > 1 else "once",
            row.against,
            "" if row.ratio is None else f"{row.ratio:.2f}",
            "" if row.peak_mb is None else f"{row.peak_mb:,.0f}",
            "" if row.disk_mb is None else f"{row.disk_mb:,.0f}",
        ]
        if known:
            was = known.get((row.what, row.size))
            cells.append("" if was is None else f"{row.median / was:.2f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *_slopes(report.rows)])


def page_with(page: str, table: str) -> str:
    """A page with the table between its marks; a page without marks gets it at its end."""
    block = f"{_BEGIN}\n{table}\n{_END}"
    if _BEGIN not in page:
        return f"{page.rstrip()}\n\n{block}\n".lstrip()
    pattern = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
    return pattern.sub(lambda _: block, page, count=1)


def _slopes(rows: Sequence[Row]) -> list[str]:
    """What the table says of a billion triples and ten thousand requests a second."""
    loads = [row for row in rows if row.what == "load"]
    look_ups = [row for row in rows if row.what == "look-up"]
    checks = [row for row in rows if row.what.startswith("check, two")]
    if len(loads) < 2 or loads[-1].size == loads[0].size:
        return []
    largest = loads[-1]
    hours = _BILLION / largest.median / 3600
    lines = [
        (
            "By these slopes (the last two sizes, on a line through their logarithms; falling ones "
            "count as flat):"
        ),
        "",
        "| | |",
        "|---|---|",
        f"| load of a billion triples, at the rate of {largest.size:,} | {_figure(hours)} h |",
    ]
    if largest.disk_mb is not None:
        disk = largest.disk_mb / largest.size * _BILLION / 1024
        lines.append(f"| disk for a billion triples | {_figure(disk)} GiB |")
    for name, measured in (("look-up", look_ups), ("check", checks)):
        there = _at(measured[-2], measured[-1], _BILLION)
        lines.append(f"| {name} at a billion triples | {_figure(there)} ms |")
    under_way = _at(checks[-2], checks[-1], _BILLION) / 1e3 * _REQUESTS
    lines.append(
        f"| checks under way at once for {_REQUESTS:,} a second, at a billion triples | "
        f"{_figure(under_way)} |"
    )
    bulk = [(int(found[1]), row) for row in rows if (found := _BULK.match(row.what))]
    if bulk:
        processes, row = max(bulk, key=lambda item: item[0])
        cores = _REQUESTS * processes / row.median
        lines.append(
            f"| cores for {_REQUESTS:,} checks a second, at the rate of {row.what} | "
            f"{_figure(cores)} |"
        )
    return lines


def _at(first: Row, second: Row, size: int) -> float:
    """The value at a size, on the power law through two rows; no less than the second's.

    What falls between two sizes falls by chance, or since a bound was passed: of a node at which
    more than 200 facts point fewer are read, and above 300,000 names their parts are not indexed.
    Neither goes on falling.
    """
    slope = math.log(second.median / first.median) / math.log(second.size / first.size)
    return float(second.median * (size / second.size) ** max(0.0, slope))


def _run(part: Part, folder: Path, triples: int, options: dict[str, object]) -> Measured:
    command = [sys.executable, "-m", "benchmarks.scale", part, str(folder)]
    for name, value in {"triples": triples, **options}.items():
        if value is not None:
            command += [f"--{name}", str(value)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Measured.model_validate_json(done.stdout.splitlines()[-1])


def _row(what: str, size: int, unit: str, parts: Sequence[Measured]) -> Row:
    peaks = [part.peak_mb for part in parts if part.peak_mb is not None]
    return Row(
        what=what,
        size=size,
        unit=unit,
        values=tuple(value for part in parts for value in part.values),
        peak_mb=max(peaks, default=None),
        disk_mb=parts[-1].disk_mb,
    )


def _compared(baseline: Row, rows: Sequence[Row]) -> list[Row]:
    """The baseline, and the rows with their ratio to it."""
    name = baseline.what if rows and rows[0].what != baseline.what else f"{baseline.size:,}"
    return [
        baseline,
        *(
            row.model_copy(update={"against": name, "ratio": row.median / baseline.median})
            for row in rows
        ),
    ]


def _medians(report: Report) -> dict[tuple[str, int], float]:
    return {(row.what, row.size): row.median for row in report.rows}


def _figure(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _load() -> float:
    try:
        return os.getloadavg()[2]
    except OSError:
        return 0.0


def _machine() -> str:
    name, memory = platform.processor() or platform.machine(), ""
    try:
        text = Path("/proc/cpuinfo").read_text()
        if found := re.search(r"^model name\s*: (.+)$", text, re.MULTILINE):
            name = found[1].strip()
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        memory = f", {pages / 2**30:.0f} GiB"
    except (OSError, ValueError):
        pass
    return f"{name}, {os.cpu_count()} cores{memory}, {platform.system()}"


def _versioned(name: str) -> str:
    return f"{name} {version(name)}"


def _last(path: Path) -> Report | None:
    try:
        return Report.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def main() -> None:
    """Run the bench and write its page."""
    parser = argparse.ArgumentParser(description="Measure speed and memory by size.")
    parser.add_argument("--sizes", default=",".join(map(str, _SIZES)), help="triples of the graphs")
    parser.add_argument("--rows", type=int, default=_ROWS, help="rows of bulk")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="how often loading is measured")
    parser.add_argument("--judge", help="judge of check and bulk; the usual one unless given")
    parser.add_argument("--folder", type=Path, help="where graphs are kept on the way")
    parser.add_argument(
        "--output", type=Path, default=Path("benchmarks/RESULTS.md"), help="the page"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        report = bench(
            sorted({int(size) for size in options.sizes.split(",")}),
            options.rows,
            Path(folder),
            judge=options.judge,
            rounds=options.rounds,
            command=" ".join(["python -m benchmarks.bench", *sys.argv[1:]]),
            tell=lambda what: print(what, file=sys.stderr, flush=True),
        )
    output: Path = options.output
    kept = output.with_suffix(".json")
    table = table_of(report, _last(kept))
    page = output.read_text("utf-8") if output.exists() else "# Results\n"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page_with(page, table), "utf-8")
    kept.write_text(report.model_dump_json(indent=1) + "\n", "utf-8")
    print(table)


if __name__ == "__main__":
    main()
