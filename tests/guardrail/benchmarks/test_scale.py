"""The measurement of loading and look-ups."""

from __future__ import annotations

from pathlib import Path

from guardrail.benchmarks.scale import measure


def test_a_small_graph(tmp_path: Path) -> None:
    found = measure(3000, tmp_path, look_ups=20)
    assert found.triples > 3000
    assert found.load_rate > 0
    assert 0 < found.look_up <= found.look_up_p95
    assert found.hub > 0
