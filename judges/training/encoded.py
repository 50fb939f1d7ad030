"""Rows in word pieces, as a training machine reads them: without data, tokenizer or texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judges.heads import HEADS
from judges.training.rows import Row, nli_targets

__all__ = ["EncodedRow", "EncodedRows", "SoftLabels", "read_encoded", "targets", "write_encoded"]


class Targets(NamedTuple):
    """What is right of a row as a whole.

    Attributes:
        nli: Indices into ``HEADS["nli"]`` that count as right; empty for none.
        attribution: Indices into ``HEADS["attribution"]``, likewise.
        complexity: Index into ``HEADS["complexity"]``, or ``NO_LABEL``.
        claim: Index into ``HEADS["claim"]``, or ``NO_LABEL``.
    """

    nli: tuple[int, ...]
    attribution: tuple[int, ...]
    complexity: int
    claim: int


class EncodedRow(NamedTuple):
    """Word pieces of a row and what is right of it.

    Attributes:
        source: Name of the file or construction the row comes from.
        ids: Word-piece ids, special ones included, [l].
        types: Segment of each: 0 evidence, 1 hypothesis, 2 context, [l].
        words: Index into ``TOKEN_HEADS["words"]`` of the hypothesis' tokens, else ``NO_LABEL``.
        statements: Index into ``TOKEN_HEADS["statements"]`` of the marks, else ``NO_LABEL``.
        targets: What is right of the row as a whole.
    """

    source: str
    ids: NDArray[np.uint16]
    types: NDArray[np.uint8]
    words: NDArray[np.int8]
    statements: NDArray[np.int8]
    targets: Targets


class SoftLabels(NamedTuple):
    """A teacher's probabilities of n rows, as float16.

    Attributes:
        rows: [n, labels of all ``HEADS``], head after head.
        tokens: Of each row [l, labels of all ``TOKEN_HEADS``]; all 0 where a head asks nothing of
            a word piece.
    """

    rows: NDArray[np.float16]
    tokens: Sequence[NDArray[np.float16]]


class EncodedRows(NamedTuple):
    """Rows ready to be batched, and what a teacher says of them where there is one."""

    rows: Sequence[EncodedRow]
    soft: SoftLabels | None = None


def targets(row: Row) -> Targets:
    """What is right of a row as a whole."""
    return Targets(nli_targets(row), row.attribution, row.complexity, row.claim)


def write_encoded(rows: Sequence[EncodedRow], path: Path) -> None:
    """Write rows to one ``.npz`` file; rows of a source keep their order."""
    sources = sorted({row.source for row in rows})
    np.savez(
        path,
        ids=np.concatenate([row.ids for row in rows]),
        types=np.concatenate([row.types for row in rows]),
        words=np.concatenate([row.words for row in rows]),
        statements=np.concatenate([row.statements for row in rows]),
        sources=np.array(sources),
        source=np.array([sources.index(row.source) for row in rows], np.uint16),
        lengths=np.array([len(row.ids) for row in rows], np.uint16),
        nli=_flags([row.targets.nli for row in rows], len(HEADS["nli"])),
        attribution=_flags([row.targets.attribution for row in rows], len(HEADS["attribution"])),
        complexity=np.array([row.targets.complexity for row in rows], np.int8),
        claim=np.array([row.targets.claim for row in rows], np.int8),
    )


def read_encoded(path: Path) -> list[EncodedRow]:
    """Read the rows of a file that ``write_encoded`` wrote."""
    with np.load(path, allow_pickle=False) as stored:
        held = dict(stored)
    ends = np.cumsum(held["lengths"], dtype=np.int64)[:-1]
    names = [str(name) for name in held["sources"]]
    wholes = map(
        Targets,
        map(_places, held["nli"]),
        map(_places, held["attribution"]),
        held["complexity"].tolist(),
        held["claim"].tolist(),
    )
    return [
        EncodedRow(names[source], ids, types, words, statements, whole)
        for source, ids, types, words, statements, whole in zip(
            held["source"].tolist(),
            np.split(held["ids"], ends),
            np.split(held["types"], ends),
            np.split(held["words"], ends),
            np.split(held["statements"], ends),
            wholes,
            strict=True,
        )
    ]


def _flags(places: Sequence[tuple[int, ...]], width: int) -> NDArray[np.bool_]:
    flags = np.zeros((len(places), width), bool)
    for row, some in zip(flags, places, strict=True):
        row[list(some)] = True
    return flags


def _places(flags: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(np.flatnonzero(flags).tolist())
