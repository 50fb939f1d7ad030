"""Pairs that differ in the relation alone."""

import gzip
import json

import numpy as np
import pytest

from training.relation_pairs import relation_rows
from training.relation_templates import KINDS
from training.rows import Row

ENTAILMENT, NEUTRAL = 0, 1


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder = tmp_path_factory.mktemp("data")
    (folder / "triples").mkdir()
    pairs = [
        {"pid": pid, "sub_label": f"Subject {n} {pid}", "obj_label": f"Object {n} {pid}"}
        for pid, _ in KINDS
        for n in range(12)
    ]
    kinds = [pair | {"rel_label": pair["pid"]} for pair in pairs]
    for name, lines in (("pararel", pairs), ("tekgen_train", kinds)):
        with gzip.open(folder / "triples" / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    return relation_rows(folder, rows=800, seed=3)


def test_half_of_the_sentences_state_the_triple(rows: list[Row]) -> None:
    assert len(rows) == 800
    assert {row.nli for row in rows} == {ENTAILMENT, NEUTRAL}
    assert 0.35 < np.mean([row.nli == ENTAILMENT for row in rows]) < 0.55


def test_subject_and_value_stand_in_both_texts(rows: list[Row]) -> None:
    direct = [row for row in rows if row.hypothesis.startswith("Subject")]
    direct = [row for row in direct if row.hypothesis.count(", ") == 1 and ": " in row.hypothesis]
    assert len(direct) > 100
    for row in direct:
        subject, _, rest = row.hypothesis.rstrip(".").partition(", ")
        assert subject in row.premise
        assert rest.partition(": ")[2] in row.premise
