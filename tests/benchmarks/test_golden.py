"""A tenth of the golden record, on every run of the tests."""

from benchmarks.golden.record import differences, read_record, run
from benchmarks.golden.requests import all_requests


def test_a_sample_of_answers_is_what_was_recorded():
    sample = all_requests()[::10]
    known = read_record()
    found = run(sample)
    assert len(found) >= 60
    assert differences({name: known[name] for name in found}, found) == {}
