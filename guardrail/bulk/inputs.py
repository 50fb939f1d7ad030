"""Input of bulk: which files, which stretches of them, and how their rows are read.

A worker gets stretches of a file in their order. What it has open stays open between them, so that
a packed file is unpacked once, and a group of Parquet's rows decoded once, by each worker.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, Final, Literal, Protocol

from guardrail.bulk.arrow import LINES, arrow
from guardrail.core.errors import InputError, MissingExtraError
from guardrail.core.unpacking import bounded_lines, unpacked

if TYPE_CHECKING:
    import pyarrow as pa
    from fsspec import AbstractFileSystem

__all__ = ["Format", "file_state", "file_system", "input_files", "read_rows", "stretches"]

Format = Literal["jsonl", "parquet"]
_ENDINGS: Final = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
_PACKED: Final = (".gz", ".bz2", ".xz")
_BATCH: Final = 1024
"""Rows of Parquet decoded at once."""
_STRETCH_BYTES: Final = 256 << 20
"""Bytes of JSON lines at which a stretch ends, however few rows it has."""


class _Reader(Protocol):
    """An open file, from which stretches are read."""

    def take(self, first: int, offset: int, rows: int) -> pa.Table: ...

    def close(self) -> None: ...


def file_system(path: str) -> tuple[AbstractFileSystem, str]:
    """The file system of a path or address, and the path within it.

    Raises:
        MissingExtraError: A package that reads such addresses is not installed.
        InputError: There is no such kind of address.
    """
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtraError("fsspec", "parquet") from error
    try:
        return fsspec.core.url_to_fs(path)  # type: ignore[no-any-return]
    except (ImportError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from error


def file_state(path: str) -> str:
    """Size and time of a file, or what its store tells in their place."""
    files, name = file_system(path)
    found = files.info(name)
    marks = ("size", "mtime", "LastModified", "updated", "ETag", "etag")
    return json.dumps([name, *(str(found.get(mark)) for mark in marks)])


def input_files(source: str) -> list[tuple[str, Format]]:
    """The files of a path, folder or address, each with its format.

    Raises:
        InputError: There is no such file, or it is of another format.
    """
    files, path = file_system(source)
    if files.isdir(path):
        found = [name for name in sorted(files.find(path)) if _kind(name)]
    else:
        found = [path] if files.exists(path) else []
    if not files.exists(path):
        raise InputError(f"cannot read {source}: there is no such file or folder")
    if not found:
        raise InputError(f"{source} holds no JSON lines (.jsonl) and no Parquet (.parquet)")
    named: list[tuple[str, Format]] = []
    for name in found:
        kind = _kind(name)
        if kind is None:
            raise InputError(f"cannot tell the format of {name}: .jsonl or .parquet?")
        named.append((files.unstrip_protocol(name), kind))
    return named


def stretches(path: str, kind: Format, rows: int) -> Iterator[tuple[int, int, int]]:
    """Cut a file into stretches.

    Args:
        path: The file.
        kind: Its format.
        rows: Most rows of a stretch.

    Yields:
        Number of the first row in the file, offset of its line in bytes of the unpacked text (0
        for Parquet), and number of rows.
    """
    if kind == "parquet":
        reader = _ParquetRows(path)
        total = reader.rows
        reader.close()
        for first in range(0, total, rows):
            yield first, 0, min(rows, total - first)
        return
    with _open(path) as file:
        first = offset = start = count = 0
        for line in bounded_lines(file):
            end = file.tell()
            if _filled(line):
                if count == 0:
                    start = offset
                count += 1
                if count == rows or end - start >= _STRETCH_BYTES:
                    yield first, start, count
                    first, count = first + count, 0
            offset = end
        if count:
            yield first, start, count


def read_rows(path: str, kind: Format, first: int, offset: int, rows: int) -> pa.Table:
    """Read a stretch of a file.

    Args:
        path: The file.
        kind: Its format.
        first: Number of its first row.
        offset: Where its first line begins, in bytes of the unpacked text.
        rows: How many rows it has.

    Returns:
        The columns of Parquet; of JSON lines one column ``json`` with each line's bytes.
    """
    key = file_state(path)
    if key not in _OPEN:
        for reader in _OPEN.values():
            reader.close()
        _OPEN.clear()
        _OPEN[key] = _ParquetRows(path) if kind == "parquet" else _JSONLines(path)
    return _OPEN[key].take(first, offset, rows)


_OPEN: dict[str, _Reader] = {}
"""The file that this process read last."""


class _JSONLines:
    """Lines of a file, packed or not."""

    def __init__(self, path: str) -> None:
        self._file = _open(path)

    def take(self, first: int, offset: int, rows: int) -> pa.Table:
        pa = arrow()
        # A packed file is read on from where it is; only what lies before is unpacked anew.
        self._file.seek(offset)
        lines = list(islice(filter(_filled, bounded_lines(self._file)), rows))
        return pa.table({LINES: pa.array(lines, pa.binary())})

    def close(self) -> None:
        self._file.close()


class _ParquetRows:
    """Rows of a Parquet file, decoded from the first group on that is asked for."""

    def __init__(self, path: str) -> None:
        arrow()
        import pyarrow.parquet as pq

        files, name = file_system(path)
        self._file = files.open(name, "rb")
        self._parquet = pq.ParquetFile(self._file)
        self._starts = [0]
        for number in range(self._parquet.num_row_groups):
            size = self._parquet.metadata.row_group(number).num_rows
            self._starts.append(self._starts[-1] + size)
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._at = -1
        self._left: pa.RecordBatch | None = None

    @property
    def rows(self) -> int:
        return self._starts[-1]

    def take(self, first: int, offset: int, rows: int) -> pa.Table:
        pa = arrow()
        group = max(n for n, start in enumerate(self._starts[:-1]) if start <= first)
        if first < self._at or self._starts[group] > self._at:
            groups = range(group, self._parquet.num_row_groups)
            self._batches = self._parquet.iter_batches(_BATCH, row_groups=groups)
            self._at, self._left = self._starts[group], None
        taken = []
        wanted = first + rows
        while self._at < wanted:
            batch = next(self._batches) if self._left is None else self._left
            skipped = max(0, first - self._at)
            part = batch.slice(skipped, max(0, wanted - self._at - skipped))
            used = min(batch.num_rows, skipped + part.num_rows)
            self._left = batch.slice(used) if used < batch.num_rows else None
            self._at += used
            if part.num_rows:
                taken.append(part)
        return pa.Table.from_batches(taken)

    def close(self) -> None:
        self._parquet.close()
        self._file.close()


def _kind(name: str) -> Format | None:
    for packing in _PACKED:
        name = name.removesuffix(packing)
    for ending, kind in _ENDINGS.items():
        if name.endswith(ending):
            return "parquet" if kind == "parquet" else "jsonl"
    return None


def _filled(line: bytes) -> bool:
    """Whether a line holds more than white space, of any script, and marks of byte order."""
    bare = line.strip()
    if not bare or bare[0] < 0x80:
        return bool(bare)
    return bool(bare.decode("utf-8", "surrogateescape").strip("\ufeff").strip())


def _open(path: str) -> BinaryIO:
    import fsspec

    file: BinaryIO = fsspec.open(path, "rb", compression="infer").open()
    files, name = file_system(path)
    packed = files.info(name).get("size")
    if not name.endswith(_PACKED) or packed is None:  # some servers do not tell it
        return file
    return unpacked(file, path, packed, InputError)
