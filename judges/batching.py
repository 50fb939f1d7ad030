"""Batches of similar length under a token budget; duplicates are scored once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TypeVar

__all__ = ["distinct", "token_batches"]

Item = TypeVar("Item", bound=Hashable)


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
