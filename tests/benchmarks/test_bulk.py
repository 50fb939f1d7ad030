"""The comparison of engines judges all rows in each way, and sees where outputs differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import bulk


def test_each_way_gives_the_same_rows(tmp_path: Path) -> None:
    done = bulk.compare(tmp_path, 80, 2, engines=("local",), judge="none", shard_rows=2)
    assert [run.way for run in done] == ["local 1", "local 2", "local 2, killed half way"]
    assert {run.rows for run in done} == {80}
    assert len({run.digest for run in done}) == 1
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    output = sorted((tmp_path / "local-2").glob("part-*"))
    texts = {}
    for part in output:
        for line in part.read_text().splitlines():
            result = json.loads(line)
            texts[result["id"]] = result["original"] or result["text"]
    assert [texts[row["id"]] for row in rows] == [row["answer"] for row in rows]


def test_a_row_that_differs_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [bulk.Run(way=way, rows=2, seconds=1.0, digest=way) for way in ("a", "b")]
    monkeypatch.setattr(bulk, "compare", lambda *_, **__: runs)
    monkeypatch.setattr("sys.argv", ["bulk", "--folder", str(tmp_path)])
    with pytest.raises(SystemExit, match="the outputs differ"):
        bulk.main()
    assert "| a | 2 | 1 | 2.0 | 1.00 | a… |" in capsys.readouterr().out
