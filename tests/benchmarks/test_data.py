"""A missing data set ends the program with a one-line message; built-in sets need no data."""

import random

import pytest

from benchmarks.data import exit_on_error
from benchmarks.verdicts.sets import SETS, read_set
from guardrail import InputError


def test_a_missing_file_exits_with_a_one_line_message(tmp_path):
    message = r"no file .*holds triples/dart_dev\.jsonl\.gz"
    with pytest.raises(SystemExit, match=message) as ended, exit_on_error():
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
