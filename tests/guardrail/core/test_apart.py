"""Stretches that do not overlap."""

from hypothesis import given
from hypothesis import strategies as st

from guardrail.core.text.words import SpanSet

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 6)).map(lambda s: (s[0], sum(s))))


@given(SPANS)
def test_what_overlaps_none_is_free(spans) -> None:
    apart, taken = SpanSet(), []
    for start, end in spans:
        free = not any(start < other[1] and other[0] < end for other in taken)
        assert apart.free(start, end) is free
        if free:
            apart.take(start, end)
            taken.append((start, end))
    assert all(not SpanSet(taken).free(start, end) for start, end in taken)
