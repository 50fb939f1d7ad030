from __future__ import annotations

import pytest

from benchmarks.biokalma.incompetence import measure, people_texts, table
from kg import open_graph


def test_a_removed_triple_is_missed() -> None:
    texts = people_texts(open_graph(), 6, seed=2)
    intact, one, *_ = results = measure("people", texts, judge="none", seed=0)
    assert [row.removed for row in results] == [0, 1, 2, 3]
    assert intact.precision is None
    assert intact.recall is None
    assert one.recall is not None
    assert one.recall >= 0.6
    assert one.recall * 6 == pytest.approx(round(one.recall * 6))
    assert "| people (6) | 1 |" in table(results)
