from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.biokalma.incompetence import measure, people_texts, read_dart, table
from kg import open_graph


def test_biographies_state_what_the_graph_holds() -> None:
    texts = people_texts(open_graph(), 5, seed=1)
    assert texts == people_texts(open_graph(), 5, seed=1)
    for text in texts:
        assert len(text.triples) == 6
        assert set(text.triples) <= set(text.evidence)
        assert text.sentences[0].text in text.text


def test_dart_sentences_state_all_their_triples(tmp_path: Path) -> None:
    rows = [
        {"triples": [["Ann", "BORN_IN", "Rome"], ["Ann", "JOB", "painter"]],
         "texts": ["Ann sang.", "Ann, a painter, was born in Rome."]},
        {"triples": [["Ann", "BORN_IN", "Rome"], ["Ann", "JOB", "poet"]],
         "texts": ["Ann was born in Rome."]},
        {"triples": [["[TITLE]", "A", "b"], ["Ann", "B", "c"]], "texts": ["b c"]},
    ]  # fmt: skip
    folder = tmp_path / "triples"
    folder.mkdir()
    with gzip.open(folder / "dart_dev.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    (text,) = read_dart(tmp_path, 10)
    assert text.text == "Ann, a painter, was born in Rome."
    assert [triple.property for triple in text.triples] == ["born in", "job"]


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
