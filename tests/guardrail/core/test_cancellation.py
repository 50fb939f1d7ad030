"""Work knows how long it may take, and whether anybody still waits for it."""

import contextvars

import pytest

from guardrail.core import workers
from guardrail.core.workers import GivenUpError, stop_if_given_up, time_left, watch, within
from tests.clock import HandClock


def test_the_time_left_is_that_of_the_nearest_bound(monkeypatch):
    clock = HandClock().runs(monkeypatch, workers)
    assert time_left() == float("inf")
    with within(10.0):
        clock.now += 4.0
        assert time_left() == 6.0
        with within(1.0):
            assert time_left() == 1.0
            clock.now += 2.0
            assert time_left() == 0.0  # and never less
        assert time_left() == 4.0
        for longer in (None, 60.0):
            with within(longer):
                assert time_left() == 4.0  # no block has longer than the one around it
    assert time_left() == float("inf")


def test_the_bound_ends_with_its_block_where_that_fails():
    with pytest.raises(ZeroDivisionError), within(1.0):
        raise ZeroDivisionError
    assert time_left() == float("inf")


def test_work_stops_where_its_own_context_was_given_up():
    given_up = False
    ours, others = contextvars.copy_context(), contextvars.copy_context()
    ours.run(watch, lambda: given_up)
    ours.run(stop_if_given_up)
    given_up = True
    with pytest.raises(GivenUpError, match="nobody waits"):
        ours.run(stop_if_given_up)
    others.run(stop_if_given_up)
