"""Windows over texts that are longer than a model reads, so that nothing is cut off unseen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["PairWindow", "pair_windows", "spans"]

OVERLAP = 4
"""Neighbouring windows share one part in this many, so that a fact on a border stands whole
in one of them."""


class PairWindow(NamedTuple):
    """One premise window and one hypothesis window that fit a model together.

    Attributes:
        premise: Token ids.
        hypothesis: Token ids.
        part: Which window of the hypothesis this is, from 0.
    """

    premise: Sequence[int]
    hypothesis: Sequence[int]
    part: int


def spans(length: int, size: int) -> list[tuple[int, int]]:
    """Cover ``length`` tokens by overlapping spans of at most ``size`` tokens.

    Returns:
        (start, end) of each span in order; one span where all fits, also for length 0.
    """
    if size < 1:
        raise ValueError(f"a window holds at least one token, not {size}")
    if length <= size:
        return [(0, length)]
    step = max(1, size - size // OVERLAP)
    starts = range(0, length - size, step)
    return [(start, start + size) for start in starts] + [(length - size, length)]


def pair_windows(
    premise: Sequence[int], hypothesis: Sequence[int], capacity: int
) -> list[PairWindow]:
    """Cut a pair into windows of at most ``capacity`` tokens, special tokens not counted.

    The hypothesis stays whole while it takes at most half of the room. Every window of the
    hypothesis meets every window of the premise.
    """
    if len(premise) + len(hypothesis) <= capacity:
        return [PairWindow(premise, hypothesis, 0)]
    parts = spans(len(hypothesis), max(1, capacity // 2))
    windows = []
    for part, (start, end) in enumerate(parts):
        piece = hypothesis[start:end]
        for low, high in spans(len(premise), capacity - len(piece)):
            windows.append(PairWindow(premise[low:high], piece, part))
    return windows
