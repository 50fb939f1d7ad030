"""Turns rows into tensors: word pieces, and batches of similar length."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer
from torch import Tensor

from judges.heads import HEADS, STATEMENT_MARK
from training.rows import NO_LABEL, Row, nli_targets

__all__ = ["LONGEST", "Batch", "EncodedRow", "batches", "encode_rows", "load_tokenizer"]

LONGEST = 384
"""Most word pieces of a sequence, in training and at run time."""

CONTEXT_SHARE = 4
"""The context takes at most one token in this many of the longest sequence; its end is kept."""


class EncodedRow(NamedTuple):
    """Word pieces of a row and what is right of it.

    Attributes:
        ids: Word-piece ids, special ones included, [l].
        types: Segment of each: 0 evidence, 1 hypothesis, 2 context, [l].
        words: Index into ``TOKEN_HEADS["words"]`` of the hypothesis' tokens, else ``NO_LABEL``.
        statements: Index into ``TOKEN_HEADS["statements"]`` of the marks, else ``NO_LABEL``.
        row: The row.
    """

    ids: NDArray[np.uint16]
    types: NDArray[np.uint8]
    words: NDArray[np.int8]
    statements: NDArray[np.int8]
    row: Row


class Batch(NamedTuple):
    """Tensors of n rows padded to length l; ``NO_LABEL`` where a row does not teach a head.

    Attributes:
        input_ids: int64 [n, l].
        attention_mask: int64 [n, l].
        token_type_ids: int64 [n, l].
        nli: bool [n, 3], the labels that count as right; no True for no target.
        attribution: bool [n, 4], likewise.
        complexity: int64 [n].
        claim: int64 [n].
        words: int64 [n, l].
        statements: int64 [n, l].
    """

    input_ids: Tensor
    attention_mask: Tensor
    token_type_ids: Tensor
    nli: Tensor
    attribution: Tensor
    complexity: Tensor
    claim: Tensor
    words: Tensor
    statements: Tensor

    def to(self, device: str) -> Batch:
        """The batch on a device."""
        return Batch(*(tensor.to(device, non_blocking=True) for tensor in self))


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a word-piece tokenizer that neither cuts nor pads.

    Args:
        path: A ``tokenizer.json``.
    """
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def encode_rows(tokenizer: Tokenizer, rows: Sequence[Row], longest: int) -> list[EncodedRow]:
    """Split rows into word pieces.

    Args:
        tokenizer: As ``load_tokenizer`` gives it.
        rows: The rows.
        longest: Most word pieces of a sequence; the evidence is cut at its end, after the context
            at its beginning. Statements that nothing cites go before those that something does.

    Raises:
        ValueError: The tokenizer lacks a special token that the rows need.
    """
    start, end = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    mark = tokenizer.token_to_id(STATEMENT_MARK)
    if start is None or end is None:
        raise ValueError("the tokenizer has no [CLS] and [SEP] tokens")
    if mark is None and any(row.statements for row in rows):
        raise ValueError(f"the tokenizer has no {STATEMENT_MARK} token to number statements with")
    encoder = _Encoder(start, end, -1 if mark is None else mark, longest)
    texts = [
        text
        for row in rows
        for text in (row.hypothesis, row.context, *(row.statements or (row.premise,)))
    ]
    pieces = iter(tokenizer.encode_batch(texts, add_special_tokens=False))
    encoded = []
    for row in rows:
        hypothesis, context = next(pieces), next(pieces)
        evidence = [next(pieces) for _ in (row.statements or (row.premise,))]
        encoded.append(encoder.row(row, hypothesis, context, evidence))
    return encoded


class _Encoder(NamedTuple):
    """Ids of the special tokens, and the longest sequence."""

    start: int
    end: int
    mark: int
    longest: int

    def row(
        self, row: Row, hypothesis: Encoding, context: Encoding, evidence: Sequence[Encoding]
    ) -> EncodedRow:
        said = hypothesis.ids[: self.longest // 2]
        before = context.ids[-(self.longest // CONTEXT_SHARE) :]
        room = self.longest - 3 - len(said) - (len(before) + 1 if before else 0)
        ids, marks = self._evidence(row, evidence, room)
        first = [self.start, *ids, self.end]
        second = [*said, self.end]
        third = [*before, self.end] if before else []
        length = len(first) + len(second) + len(third)
        words = np.full(length, NO_LABEL, np.int8)
        words[len(first) : len(first) + len(said)] = _word_targets(row, hypothesis, len(said))
        statements = np.full(length, NO_LABEL, np.int8)
        for place, target in marks.items():
            statements[1 + place] = target
        return EncodedRow(
            np.array([*first, *second, *third], np.uint16),
            np.repeat(np.arange(3, dtype=np.uint8), [len(first), len(second), len(third)]),
            words,
            statements,
            row,
        )

    def _evidence(
        self, row: Row, evidence: Sequence[Encoding], room: int
    ) -> tuple[list[int], dict[int, int]]:
        """Ids of the evidence, and by place of each mark the target of its statement."""
        if not row.statements:
            return evidence[0].ids[:room], {}
        kept = set(range(len(evidence)))
        cited = row.cited or frozenset()
        over = sum(len(item.ids) + 1 for item in evidence) - room
        for place in sorted(kept, key=lambda place: (place in cited, -place)):
            if over <= 0 or len(kept) == 1:
                break
            kept.discard(place)
            over -= len(evidence[place].ids) + 1
        ids: list[int] = []
        marks: dict[int, int] = {}
        for place in sorted(kept):
            if row.cited is not None:
                marks[len(ids)] = _problem(row) if place in cited else 0
            ids += [self.mark, *evidence[place].ids]
        return ids[:room], {place: target for place, target in marks.items() if place < room}


def _problem(row: Row) -> int:
    """Index of what is told of the words or the statements that a row is about."""
    return 2 if row.nli == HEADS["nli"].index("contradiction") else 1


def _word_targets(row: Row, hypothesis: Encoding, count: int) -> NDArray[np.int8]:
    """Per token of the hypothesis: 0 carried, 1 missing, 2 contradicted, or ``NO_LABEL``."""
    if row.span is None:
        return np.full(count, NO_LABEL, np.int8)
    problems = np.zeros(count, np.int8)
    first, last = row.span or (0, 0)
    for place, (start, end) in enumerate(hypothesis.offsets[:count]):
        if first < end and start < last:
            problems[place] = _problem(row)
    return problems


def batches(rows: Sequence[EncodedRow], *, tokens: int, seed: int | None = None) -> list[Batch]:
    """Group rows of similar length into batches of at most ``tokens`` padded word pieces.

    Args:
        rows: The rows.
        tokens: Padded word pieces of a batch.
        seed: Shuffles the batches; None leaves the longest rows first.
    """
    groups: list[list[EncodedRow]] = []
    for row in sorted(rows, key=lambda row: -len(row.ids)):
        if not groups or (len(groups[-1]) + 1) * len(groups[-1][0].ids) > tokens:
            groups.append([])
        groups[-1].append(row)
    if seed is not None:
        random.Random(seed).shuffle(groups)
    return [_batch(group) for group in groups]


def _batch(group: Sequence[EncodedRow]) -> Batch:
    shape = (len(group), max(len(item.ids) for item in group))
    ids, mask, types = (np.zeros(shape, np.int64) for _ in range(3))
    words, statements = (np.full(shape, NO_LABEL, np.int64) for _ in range(2))
    labels = np.zeros((len(group), len(HEADS["nli"])), bool)
    categories = np.zeros((len(group), len(HEADS["attribution"])), bool)
    for k, item in enumerate(group):
        n = len(item.ids)
        ids[k, :n], types[k, :n], mask[k, :n] = item.ids, item.types, 1
        words[k, :n], statements[k, :n] = item.words, item.statements
        labels[k, list(nli_targets(item.row))] = True
        categories[k, list(item.row.attribution)] = True
    return Batch(
        torch.from_numpy(ids),
        torch.from_numpy(mask),
        torch.from_numpy(types),
        torch.from_numpy(labels),
        torch.from_numpy(categories),
        torch.tensor([item.row.complexity for item in group]),
        torch.tensor([item.row.claim for item in group]),
        torch.from_numpy(words),
        torch.from_numpy(statements),
    )
