from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from judges.batching import distinct, pair_windows, spans, token_batches

lengths = st.lists(st.integers(1, 300), max_size=60)


@settings(deadline=None)
@given(lengths, st.integers(1, 1000), st.integers(1, 16))
def test_batches_hold_every_item_once_within_the_budget(
    lengths: list[int], budget: int, rows: int
) -> None:
    batches = list(token_batches(lengths, budget=budget, rows=rows))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) <= rows
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= budget


@given(st.lists(st.text(max_size=2)))
def test_distinct_can_be_undone(items: list[str]) -> None:
    kept, inverse = distinct(items)
    assert len(set(kept)) == len(kept)
    assert [kept[i] for i in inverse] == items


@settings(deadline=None)
@given(st.integers(0, 500), st.integers(1, 80))
def test_spans_cover_a_text_without_gaps(length: int, size: int) -> None:
    found = spans(length, size)
    assert found[0][0] == 0
    assert found[-1][1] == length
    for (_, end), (start, _) in pairwise(found):
        assert start <= end
    assert all(end - start <= size for start, end in found)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 120), st.integers(0, 60), st.integers(8, 64))
def test_windows_of_a_pair_fit_the_model_and_lose_no_token(
    premise: int, hypothesis: int, capacity: int
) -> None:
    windows = pair_windows(range(premise), range(hypothesis), capacity)
    assert all(len(w.premise) + len(w.hypothesis) <= capacity for w in windows)
    for part in {window.part for window in windows}:
        seen = {token for w in windows if w.part == part for token in w.premise}
        assert seen == set(range(premise))
    assert {token for w in windows for token in w.hypothesis} == set(range(hypothesis))
