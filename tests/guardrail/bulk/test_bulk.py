"""Bulk: one row out for each row in, the same whatever runs it."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from guardrail import GuardrailConfig
from guardrail.bulk import inputs
from guardrail.bulk.inputs import plan_shards, read_shard
from guardrail.bulk.run import run_bulk
from guardrail.bulk.scorer import BulkScorer
from guardrail.config import GraphConfig
from guardrail.core import rows as reading
from guardrail.core.errors import GuardrailError, InputError, JudgeError
from guardrail.intervals import share
from guardrail.lines import json_line
from judges.base import NLIScores, Pair
from tests.clock import until
from tests.guardrail.scripted import Ready

pa = pytest.importorskip("pyarrow")
SCORER = BulkScorer(task="check", config=GuardrailConfig(judge="none"))
JUDGED = BulkScorer(task="check", config=GuardrailConfig())
PLACES = ("Rome", "London", "Paris")


def rows(count: int) -> list[dict[str, object]]:
    return [
        {
            "id": f"r{n}",
            "question": "Where was Ada Lovelace born?",
            "answer": f"Ada Lovelace was born in {PLACES[n % 3]}.",
            "triples": [["Ada Lovelace", "place of birth", "London"]],
        }
        for n in range(count)
    ]


def write(path: Path, count: int) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(count)))
    return path


def output(folder: Path) -> list[str]:
    parts = sorted(folder.glob("part-*.jsonl"))
    return [line for part in parts for line in part.read_text().splitlines()]


def children(pid: int) -> list[int]:
    """The workers of a process."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    found = {int(child) for file in files for child in file.read_text().split()}
    return [pid for pid in found if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def run(source: Path, target: Path, **options: Any) -> Any:
    return run_bulk(SCORER, str(source), str(target), **{"shard_rows": 4, **options})


def test_a_row_for_each_row_with_errors_in_place(tmp_path):
    source = write(tmp_path / "a.jsonl", 9)
    lines = source.read_text().splitlines()
    lines[5:5] = ["{oops", "", '{"id": 7, "question": "no answer"}']
    source.write_text("\n".join(lines))
    summary = run(source, tmp_path / "out")
    found = [json.loads(line) for line in output(tmp_path / "out")]
    assert [row["row"] for row in found] == list(range(11))
    assert [row["id"] for row in found] == [*(f"r{n}" for n in range(5)), None, 7,
                                            *(f"r{n}" for n in range(5, 9))]  # fmt: skip
    assert [row["row"] for row in found if "error" in row] == [5, 6]
    assert "line 6: not JSON" in found[5]["error"]
    assert (summary.rows, summary.errors, summary.shards, summary.skipped) == (11, 2, 3, 0)
    assert summary.rates["errors"].value == pytest.approx(2 / 11)
    assert found[1]["sentences"][0]["category"] == "supportive"
    assert found[0]["sentences"][0]["category"] == "irrelevant"
    assert "timings_ms" not in found[0]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize("id_", ['"\\ud800"', "Infinity", "[" * 600 + "]" * 600])
def test_whatever_the_id_of_a_row_the_others_have_their_results(tmp_path, kind, id_):
    lines = [json.dumps(row) for row in rows(3)]
    lines[1] = f'{{"id": {id_}, "answer": []}}'
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    summary = run(tmp_path / "a.jsonl", tmp_path / "out", kind=kind)
    assert (summary.rows, summary.errors) == (3, 1)
    for line in output(tmp_path / "out"):
        json_line(json.loads(line))


def test_lines_are_read_as_check_reads_them(tmp_path):
    [first, second] = write(tmp_path / "a.jsonl", 2).read_bytes().splitlines(keepends=True)
    odd = [b"\xef\xbb\xbf", first, "\u3000\u00a0\n".encode(), b'{"answer": "\xff"}\n', second]
    (tmp_path / "a.jsonl").write_bytes(b"".join(odd))
    for kind in ("jsonl", "parquet"):
        summary = run(tmp_path / "a.jsonl", tmp_path / kind, kind=kind, shard_rows=2)
        assert (summary.rows, summary.errors) == (3, 1)
    found = [json.loads(line) for line in output(tmp_path / "jsonl")]
    assert [row["id"] for row in found] == ["r0", None, "r1"]
    assert "not UTF-8: the byte 0xFF" in found[1]["error"]
    lone = SCORER(pa.table({"json": [first.decode(), None, " "]})).to_pylist()
    assert [row["error"] is None for row in lone] == [True, False, False]


@pytest.mark.parametrize("packing", [None, "gz", "bz2", "xz"])
def test_a_line_without_end_is_a_row_that_failed(packing, tmp_path, monkeypatch):
    import bz2
    import gzip
    import lzma

    monkeypatch.setattr(reading, "LONGEST_LINE", 500)
    monkeypatch.setattr(inputs, "_SHARD_BYTES", 2_000)
    first, *others = (json.dumps(row) for row in rows(8))
    data = "\n".join([first, "é" * 100_000, *others]).encode()
    packings = {"gz": gzip, "bz2": bz2, "xz": lzma}
    name = tmp_path / ("a.jsonl" + (f".{packing}" if packing else ""))
    name.write_bytes(packings[packing].compress(data) if packing else data)
    shards = plan_shards(str(name), 5)
    assert [shard.rows for shard in shards] == [2, 5, 2]  # the long line fills a shard
    held = [len(row["json"]) for shard in shards for row in read_shard(shard).to_pylist()]
    assert max(held) == 501
    summary = run(name, tmp_path / "out", shard_rows=5)
    assert (summary.rows, summary.errors) == (9, 1)
    found = [json.loads(line) for line in output(tmp_path / "out")]
    [error] = [row["error"] for row in found if "error" in row]
    assert "line 2: longer than 500" in error


class Away(Ready):
    """A judge that is out of reach when it is asked of Paris."""

    name = "away"

    def __init__(self, model: str | None = None) -> None: ...

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        if any("Paris" in pair.hypothesis for pair in pairs):
            raise JudgeError("the judge is out of reach")
        return [NLIScores(entailment=0.9, contradiction=0.05, neutral=0.05) for _ in pairs]


def test_rows_out_of_reach_of_the_judge_are_judged_again(tmp_path):
    source = write(tmp_path / "a.jsonl", 8)
    config = GuardrailConfig(judge="tests.guardrail.bulk.test_bulk:Away")
    scorer = BulkScorer(task="check", config=config)
    for skipped in (0, 2):
        done = run_bulk(scorer, str(source), str(tmp_path / "out"), shard_rows=2)
        assert (done.rows, done.errors, done.unverified, done.skipped) == (8, 2, 2, skipped)
    found = [json.loads(line) for line in output(tmp_path / "out")]
    assert [row["row"] for row in found if row["action"] == "unverified"] == [2, 5]
    assert "out of reach" in found[2]["errors"][0]["message"]


def test_a_full_disk_stops_a_job_that_then_goes_on(tmp_path):
    source, target = write(tmp_path / "a.jsonl", 8), tmp_path / "out"
    run(source, tmp_path / "first")  # loads the guardrail, which may write an index
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))  # less than a shard's results
    try:
        with pytest.raises(GuardrailError, match="the same command again"):
            run(source, target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert run(source, target).errors == 0
    assert [json.loads(line)["row"] for line in output(target)] == list(range(8))


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize("left", [None, 0, -9])
def test_what_was_cut_short_or_lost_is_judged_again(tmp_path, kind, left):
    source, target = write(tmp_path / "a.jsonl", 8), tmp_path / "out"
    whole = run(source, target, kind=kind)
    spoilt = target / f"part-000001.{kind}"
    if left is None:
        spoilt.unlink()
    else:
        spoilt.write_bytes(spoilt.read_bytes()[:left])
    again = run(source, target, kind=kind)
    assert (whole.skipped, again.skipped) == (0, 1)
    assert again.rates == whole.rates


@pytest.mark.parametrize("changed", ["a.ttl", "b.ttl", "own.toml"])
def test_a_job_knows_each_graph_and_the_profile(tmp_path, monkeypatch, changed):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("a.ttl", "b.ttl", "own.toml"):
        (tmp_path / name).write_text("")
    profile = str(tmp_path / "own.toml")
    graph = GraphConfig(location=f"~/a.ttl + {tmp_path / 'b.ttl'}", profile=profile)
    scorer = BulkScorer(task="check", config=GuardrailConfig(judge="none", graph=graph))
    before = scorer.state()
    assert scorer.state() == before
    (tmp_path / changed).write_text("# another")
    assert scorer.state() != before


def test_parquet_and_json_lines_give_the_same(tmp_path):
    import pyarrow.parquet as pq

    write(tmp_path / "a.jsonl", 10)
    table = pa.Table.from_pylist(rows(10))
    (tmp_path / "in").mkdir()
    pq.write_table(table.slice(0, 7), tmp_path / "in" / "a.parquet", row_group_size=3)
    pq.write_table(table.slice(7), tmp_path / "in" / "b.parquet")
    run(tmp_path / "a.jsonl", tmp_path / "lines")
    run(tmp_path / "in", tmp_path / "same", kind="jsonl")
    assert output(tmp_path / "same") == output(tmp_path / "lines")
    run(tmp_path / "in", tmp_path / "parquet")
    parts = sorted((tmp_path / "parquet").glob("*.parquet"))
    results = pa.concat_tables(pq.read_table(part) for part in parts).to_pylist()
    assert [row["row"] for row in results] == list(range(10))
    lines = [json.loads(line) for line in output(tmp_path / "lines")]
    assert [json.loads(row["result"])["marked"] for row in results] == [r["marked"] for r in lines]


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_engines_and_workers_do_not_show(tmp_path, engine):
    source = write(tmp_path / "a.jsonl", 24)
    alone = run_bulk(JUDGED, str(source), str(tmp_path / "one"), shard_rows=4)
    many = run_bulk(
        JUDGED, str(source), str(tmp_path / "two"), shard_rows=4, engine=engine, workers=2
    )
    assert output(tmp_path / "two") == output(tmp_path / "one")
    assert many.rates == alone.rates


def test_a_worker_that_is_killed_loses_nothing(tmp_path):
    source, target = write(tmp_path / "a.jsonl", 400), tmp_path / "out"

    def kill() -> None:
        while len(list(target.glob("part-*.jsonl"))) < 3:
            time.sleep(0.01)
        os.kill(max(children(os.getpid())), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(GuardrailError, match="worker died"):
        run(source, target, workers=2)
    killer.join()
    before = {path.name: path.stat().st_mtime_ns for path in target.glob("part-*.jsonl")}
    assert 3 <= len(before) < 100
    summary = run(source, target, workers=2)
    assert summary.skipped == len(before)
    assert [json.loads(line)["id"] for line in output(target)] == [f"r{n}" for n in range(400)]
    for name, written in before.items():
        assert (target / name).stat().st_mtime_ns == written
    assert run(source, target).skipped == summary.shards


def test_a_command_that_is_killed_leaves_no_worker_and_nothing_half(tmp_path):
    source, target = write(tmp_path / "a.jsonl", 120), tmp_path / "out"
    command = [sys.executable, "-m", "guardrail", "bulk", "check", str(source), "-o", str(target)]
    command += ["--workers", "2", "--shard-rows", "4", "--judge", "none", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(list(target.glob("part-*.jsonl"))) < 3:
        assert process.poll() is None, "it ended before it was killed"
        time.sleep(0.01)
    workers = children(process.pid)
    process.kill()
    process.wait()
    finished = len(list(target.glob("part-*.jsonl")))
    (target / "part-000029.jsonl.0.new").write_text("half a li")
    until(lambda: not [pid for pid in workers if Path(f"/proc/{pid}/exe").exists()])
    again = subprocess.run(command, capture_output=True, text=True)
    summary = json.loads(again.stdout)
    assert finished <= summary["skipped"] < 30
    run(source, tmp_path / "undisturbed")
    assert output(target) == output(tmp_path / "undisturbed")
    assert not list(target.rglob("*.new"))


def test_an_output_of_another_job_is_left_alone(tmp_path):
    run(write(tmp_path / "a.jsonl", 5), tmp_path / "out")
    with pytest.raises(InputError, match="other rows or settings"):
        run(write(tmp_path / "b.jsonl", 5), tmp_path / "out")
    with pytest.raises(InputError, match="no output of bulk"):
        run(tmp_path / "a.jsonl", tmp_path)
    with pytest.raises(InputError, match="there is no such file"):
        run(tmp_path / "nothing.jsonl", tmp_path / "new")


def test_packed_files_and_other_file_systems(tmp_path):
    import fsspec

    plain = write(tmp_path / "a.jsonl", 9)
    with fsspec.open("memory://rows/a.jsonl.gz", "wb", compression="gzip") as file:
        file.write(plain.read_bytes())
    run_bulk(SCORER, "memory://rows", "memory://out", shard_rows=4)
    run(plain, tmp_path / "out")
    memory = fsspec.filesystem("memory")
    parts = [memory.cat(f"/out/part-{n:06}.jsonl").decode() for n in range(3)]
    assert "".join(parts).splitlines() == output(tmp_path / "out")


def test_wilsons_interval():
    """Newcombe (1998), table I: 81 of 263 and 0 of 20."""
    rate = share(81, 263)
    assert (round(rate.low, 4), round(rate.high, 4)) == (0.2553, 0.3662)
    assert (share(0, 20).low, round(share(0, 20).high, 4)) == (0.0, 0.1611)
