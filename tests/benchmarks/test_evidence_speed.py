"""Timings of the judge that encodes evidence once, with a tiny network."""

from __future__ import annotations

from pathlib import Path

from benchmarks.evidence_speed import timed
from judges.base import GroundingItem
from judges.evidence_judge import EvidenceJudge
from tests.judges.tiny_windows import write_base, write_judge


def test_every_time_is_measured(tmp_path: Path) -> None:
    judge = EvidenceJudge(write_judge(tmp_path / "judge", write_base(tmp_path / "base")))
    items = [
        GroundingItem(("artemisia, occupation: painter.",), sentence, structured=True)
        for sentence in ("artemisia was a painter.", "artemisia was a sculptor.")
    ]
    (found,) = timed([judge], items, rounds=1)
    assert all(value > 0 for value in found)
    tokens, held = judge.cached
    assert tokens > 0
    assert held == tokens * 2 * 2 * 32  # keys and values of two layers of width 32
