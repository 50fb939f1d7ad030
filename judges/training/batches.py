"""Turns rows into tensors: word pieces, length buckets, batches of a fixed number of tokens."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer
from torch import Tensor

from judges.heads import HEADS, STATEMENT_MARK
from judges.training.encoded import EncodedRow, EncodedRows, SoftLabels, targets
from judges.training.rows import NO_LABEL, Row

__all__ = [
    "HYPOTHESIS",
    "Batch",
    "batches_by_length",
    "encode_rows",
    "load_tokenizer",
]

Floats = NDArray[np.float32]

CHUNK_TOKENS = 200_000
"""Rows are sorted by length within chunks of about this many tokens, so batches stay random."""

ENCODED_AT_ONCE = 4096

HYPOTHESIS = 1
"""Segment of the hypothesis."""

CONTEXT_SHARE = 4
"""The context takes at most one token in this many of the longest sequence; its end is kept."""


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
        soft_rows: float32 [n, labels of all ``HEADS``], a teacher's probabilities; [n, 0] without
            a teacher.
        soft_tokens: float32 [n, l, labels of all ``TOKEN_HEADS``], likewise.
        weight: float32 [n], weight of the row in the loss.
        places: int64 [n], where the rows stand among all.
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
    soft_rows: Tensor
    soft_tokens: Tensor
    weight: Tensor
    places: Tensor

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
    encoded: list[EncodedRow] = []
    for first in range(0, len(rows), ENCODED_AT_ONCE):
        some = rows[first : first + ENCODED_AT_ONCE]
        texts = [
            text
            for row in some
            for text in (row.hypothesis, row.context, *(row.statements or (row.premise,)))
        ]
        pieces = iter(tokenizer.encode_batch(texts, add_special_tokens=False))
        for row in some:
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
        before = context.ids[-self.longest // CONTEXT_SHARE :] if context.ids else []
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
            row.source,
            np.array([*first, *second, *third], np.uint16),
            np.repeat(np.arange(3, dtype=np.uint8), [len(first), len(second), len(third)]),
            words,
            statements,
            targets(row),
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
                conflicts = row.nli == HEADS["nli"].index("contradiction")
                marks[len(ids)] = (2 if conflicts else 1) if place in cited else 0
            ids += [self.mark, *evidence[place].ids]
        return ids[:room], {place: target for place, target in marks.items() if place < room}


def _word_targets(row: Row, hypothesis: Encoding, count: int) -> NDArray[np.int8]:
    """Per token of the hypothesis: 0 carried, 1 missing, 2 contradicted, or ``NO_LABEL``."""
    if row.span is None:
        return np.full(count, NO_LABEL, np.int8)
    problems = np.zeros(count, np.int8)
    if row.span:
        first, last = row.span
        wrong = 2 if row.nli == HEADS["nli"].index("contradiction") else 1
        for place, (start, end) in enumerate(hypothesis.offsets[:count]):
            if first < end and start < last:
                problems[place] = wrong
    return problems


def batches_by_length(
    rows: EncodedRows,
    order: Sequence[int],
    *,
    tokens: int,
    seed: int | None = None,
    weights: Sequence[float] | None = None,
) -> Iterator[Batch]:
    """Group rows of similar length into batches of at most ``tokens`` padded word pieces.

    Args:
        rows: The rows.
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
        size += len(rows.rows[index].ids)
        last = position == len(order) - 1
        if last or (seed is not None and size >= CHUNK_TOKENS):
            groups = list(_groups(rows, chunk, tokens))
            if seed is not None:
                shuffler.shuffle(groups)
            for group in groups:
                yield _batch(rows, group, weights)
            chunk, size = [], 0


def _groups(rows: EncodedRows, chunk: list[int], tokens: int) -> Iterator[list[int]]:
    group: list[int] = []
    for index in sorted(chunk, key=lambda i: len(rows.rows[i].ids), reverse=True):
        longest = len(rows.rows[group[0]].ids) if group else len(rows.rows[index].ids)
        if group and (len(group) + 1) * longest > tokens:
            yield group
            group = []
        group.append(index)
    if group:
        yield group


def _batch(rows: EncodedRows, group: list[int], weights: Sequence[float] | None) -> Batch:
    length = max(len(rows.rows[i].ids) for i in group)
    ids = np.zeros((len(group), length), np.int64)
    mask = np.zeros_like(ids)
    types = np.zeros_like(ids)
    words = np.full_like(ids, NO_LABEL)
    statements = np.full_like(ids, NO_LABEL)
    labels = np.zeros((len(group), len(HEADS["nli"])), bool)
    categories = np.zeros((len(group), len(HEADS["attribution"])), bool)
    for k, i in enumerate(group):
        encoded = rows.rows[i]
        n = len(encoded.ids)
        ids[k, :n], types[k, :n], mask[k, :n] = encoded.ids, encoded.types, 1
        words[k, :n], statements[k, :n] = encoded.words, encoded.statements
        labels[k, list(encoded.targets.nli)] = True
        categories[k, list(encoded.targets.attribution)] = True
    soft_rows, soft_tokens = _soft(rows.soft, group, length)
    return Batch(
        torch.from_numpy(ids),
        torch.from_numpy(mask),
        torch.from_numpy(types),
        torch.from_numpy(labels),
        torch.from_numpy(categories),
        torch.tensor([rows.rows[i].targets.complexity for i in group]),
        torch.tensor([rows.rows[i].targets.claim for i in group]),
        torch.from_numpy(words),
        torch.from_numpy(statements),
        torch.from_numpy(soft_rows),
        torch.from_numpy(soft_tokens),
        torch.tensor([1.0 if weights is None else weights[i] for i in group]),
        torch.tensor(group),
    )


def _soft(soft: SoftLabels | None, group: list[int], length: int) -> tuple[Floats, Floats]:
    """A teacher's probabilities of some rows, padded with 0."""
    if soft is None:
        return np.zeros((len(group), 0), np.float32), np.zeros((len(group), length, 0), np.float32)
    tokens = np.zeros((len(group), length, soft.tokens[0].shape[1]), np.float32)
    for k, i in enumerate(group):
        tokens[k, : len(soft.tokens[i])] = soft.tokens[i]
    return soft.rows[group].astype(np.float32), tokens
