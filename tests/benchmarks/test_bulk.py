"""The comparison of engines judges all rows in each way, and sees where outputs differ."""

from __future__ import annotations

import json
from pathlib import Path

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
