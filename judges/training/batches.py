"""Turns rows into tensors: word pieces, length buckets, batches of a fixed number of tokens."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from judges.onnx import HEADS
from judges.training.rows import Row

__all__ = ["Batch", "EncodedRows", "batches_by_length", "encode_rows", "load_tokenizer"]

CHUNK_TOKENS = 200_000
"""Rows are sorted by length within chunks of about this many tokens, so batches stay random."""


class EncodedRows(NamedTuple):
    """Word pieces of rows, ready to be batched.

    Attributes:
        ids: Per row its word-piece ids.
        first: Per row the length of the first segment, special tokens counted.
        rows: The rows.
    """

    ids: list[NDArray[np.uint16]]
    first: list[int]
    rows: list[Row]


class Batch(NamedTuple):
    """Tensors of n rows padded to length l.

    Attributes:
        input_ids: int64 [n, l].
        attention_mask: int64 [n, l].
        token_type_ids: int64 [n, l].
        nli: int64 [n], ``NO_LABEL`` where the row does not teach the head.
        attribution: bool [n, 4], the categories that count as right; no True for no target.
        complexity: int64 [n], as ``nli``.
        weight: float32 [n], weight of the row in the loss.
    """

    input_ids: Tensor
    attention_mask: Tensor
    token_type_ids: Tensor
    nli: Tensor
    attribution: Tensor
    complexity: Tensor
    weight: Tensor


def load_tokenizer(path: Path, max_length: int) -> Tokenizer:
    """Load a word-piece tokenizer that cuts the first text, never the second, to a length.

    Args:
        path: A ``tokenizer.json``.
        max_length: Most word pieces of a pair, special tokens counted.
    """
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.enable_truncation(max_length, strategy="longest_first")
    tokenizer.no_padding()
    return tokenizer


def encode_rows(tokenizer: Tokenizer, rows: Sequence[Row]) -> EncodedRows:
    """Split rows into word pieces."""
    ids: list[NDArray[np.uint16]] = []
    first: list[int] = []
    for start in range(0, len(rows), 4096):
        pairs = [(row.premise, row.hypothesis) for row in rows[start : start + 4096]]
        for encoding in tokenizer.encode_batch(pairs):
            ids.append(np.asarray(encoding.ids, dtype=np.uint16))
            first.append(len(encoding.ids) - sum(encoding.type_ids))
    return EncodedRows(ids, first, list(rows))


def batches_by_length(
    encoded: EncodedRows,
    order: Sequence[int],
    *,
    tokens: int,
    seed: int | None = None,
    weights: Sequence[float] | None = None,
) -> Iterator[Batch]:
    """Group rows of similar length into batches of at most ``tokens`` padded word pieces.

    Args:
        encoded: The rows.
        order: Indices of the rows to use, in the order in which they should be met.
        tokens: Padded word pieces of a batch.
        seed: Shuffles batches within a chunk; None sorts everything by length once.
        weights: Loss weight of each encoded row; 1 for all when None.
    """
    shuffler = random.Random(seed)
    chunk: list[int] = []
    size = 0
    for position, index in enumerate(order):
        chunk.append(index)
        size += len(encoded.ids[index])
        last = position == len(order) - 1
        if last or (seed is not None and size >= CHUNK_TOKENS):
            groups = list(_groups(encoded, chunk, tokens))
            if seed is not None:
                shuffler.shuffle(groups)
            for group in groups:
                yield _batch(encoded, group, weights)
            chunk, size = [], 0


def _groups(encoded: EncodedRows, chunk: list[int], tokens: int) -> Iterator[list[int]]:
    group: list[int] = []
    for index in sorted(chunk, key=lambda i: len(encoded.ids[i]), reverse=True):
        longest = len(encoded.ids[group[0]]) if group else len(encoded.ids[index])
        if group and (len(group) + 1) * longest > tokens:
            yield group
            group = []
        group.append(index)
    if group:
        yield group


def _batch(encoded: EncodedRows, group: list[int], weights: Sequence[float] | None) -> Batch:
    length = max(len(encoded.ids[i]) for i in group)
    ids = np.zeros((len(group), length), np.int64)
    mask = np.zeros_like(ids)
    types = np.zeros_like(ids)
    allowed = np.zeros((len(group), len(HEADS["attribution"])), bool)
    for k, i in enumerate(group):
        n = len(encoded.ids[i])
        ids[k, :n] = encoded.ids[i]
        mask[k, :n] = 1
        types[k, encoded.first[i] : n] = 1
        allowed[k, list(encoded.rows[i].attribution)] = True
    weight = [1.0 if weights is None else weights[i] for i in group]
    return Batch(
        torch.from_numpy(ids),
        torch.from_numpy(mask),
        torch.from_numpy(types),
        torch.tensor([encoded.rows[i].nli for i in group]),
        torch.from_numpy(allowed),
        torch.tensor([encoded.rows[i].complexity for i in group]),
        torch.tensor(weight, dtype=torch.float32),
    )
