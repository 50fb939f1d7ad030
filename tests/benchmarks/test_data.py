"""A data set that is missing is told by a sentence; sets of the project's own need none."""

import gzip
import random

import pytest

from benchmarks.data import errors_told, read_jsonl
from benchmarks.verdicts.sets import SETS, read_set
from guardrail import InputError


def test_rows_are_read(tmp_path):
    with gzip.open(tmp_path / "rows.jsonl.gz", "wt") as file:
        file.write('{"a": 1}\n{"a": 2}\n')
    assert [row["a"] for row in read_jsonl(tmp_path / "rows.jsonl.gz")] == [1, 2]


def test_a_missing_file_is_told_by_a_sentence(tmp_path):
    told = r"no file .*holds triples/dart_dev\.jsonl\.gz"
    with pytest.raises(SystemExit, match=told) as ended, errors_told():
        read_set("dart", tmp_path, 4)
    assert "\n" not in str(ended.value)


def test_two_sets_need_no_data(tmp_path):
    def needs_data(name):
        try:
            next(SETS[name](name, tmp_path, random.Random(1)))
        except InputError:
            return True
        return False

    assert {name for name in SETS if not needs_data(name)} == {"people", "relations"}
