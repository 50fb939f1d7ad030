"""Batches of similar length under a token budget; duplicates are scored once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeVar

__all__ = ["distinct", "run_halving", "token_batches"]

Item = TypeVar("Item", bound=Hashable)
Input = TypeVar("Input")
Output = TypeVar("Output")


def distinct(items: Sequence[Item]) -> tuple[list[Item], list[int]]:
    """The distinct items in order of first appearance, and the place of each input among them."""
    places: dict[Item, int] = {}
    inverse = [places.setdefault(item, len(places)) for item in items]
    return list(places), inverse


def token_batches(
    lengths: Sequence[int], *, budget: int, rows: int, buckets: Sequence[int] = ()
) -> Iterator[list[int]]:
    """Group items so that a batch, padded to its longest item, stays within a token budget.

    Longest items come first: memory is at its highest in the first batch, and what remains
    when several workers finish is short.

    Args:
        lengths: Tokens of each item.
        budget: Most tokens of a batch, padding included; one longer item is a batch of its own.
        rows: Most items of a batch.
        buckets: Lengths, ascending, that batches are padded up to where shapes must be few;
            items of one batch then share a bucket.

    Yields:
        Indices into ``lengths``.
    """
    padded = [next((b for b in buckets if b >= length), length) for length in lengths]
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        full = batch and (len(batch) >= rows or (len(batch) + 1) * padded[batch[0]] > budget)
        other = batch and buckets and padded[index] != padded[batch[0]]
        if full or other:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def run_halving(
    run: Callable[[Sequence[Input]], Sequence[Output]],
    items: Sequence[Input],
    *,
    out_of_memory: Callable[[BaseException], bool],
) -> list[Output]:
    """Run a batch, in halves where it does not fit into memory.

    Raises:
        BaseException: What ``run`` raised, where it is no lack of memory or a single item
            does not fit.
    """
    try:
        return list(run(items))
    except Exception as error:
        if len(items) < 2 or not out_of_memory(error):
            raise
    middle = len(items) // 2
    first = run_halving(run, items[:middle], out_of_memory=out_of_memory)
    return first + run_halving(run, items[middle:], out_of_memory=out_of_memory)
