"""What is closed at the end of a ``with`` block."""

import pytest

from guardrail.core.workers import Closing


class Held(Closing):
    closed = 0

    def close(self):
        self.closed += 1


def test_it_is_closed_at_the_end_of_the_block():
    with Held() as held:
        assert held.closed == 0
    assert held.closed == 1


def test_it_is_closed_after_a_fault_which_is_passed_on():
    held = Held()
    with pytest.raises(ValueError, match="inside"), held:
        raise ValueError("inside")
    assert held.closed == 1
