"""Input files of bulk, cut into shards of rows.

A worker gets shards in their order. It keeps its last file open, so that a compressed file is
unpacked once, and a row group of Parquet decoded once, per worker.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, Final, Literal

from guardrail.core.errors import InputError, MissingExtraError
from guardrail.core.rows import bounded_lines, unpacked
from guardrail.core.types import Value

if TYPE_CHECKING:
    import pyarrow as pa
    from fsspec import AbstractFileSystem
    from pyarrow.parquet import ParquetFile

Format = Literal["jsonl", "parquet"]

LINES: Final = "json"
"""Name of the only column of a table that holds JSON lines."""
_COMPRESSED: Final = (".gz", ".bz2", ".xz")
_SHARD_BYTES: Final = 256 << 20
"""Bytes of JSON lines that end a shard, however few rows it has."""


class Shard(Value):
    """Consecutive rows of one input file, judged by one worker and written to one file.

    Attributes:
        path: The file, a path or an address that fsspec reads.
        first: Number of its first row among the rows of the file, from 0.
        before: Rows of all shards before it.
        offset: Where its first line begins, in bytes of the unpacked text; 0 for Parquet.
    """

    number: int
    path: str
    kind: Format
    first: int
    rows: int
    before: int
    offset: int = 0


def plan_shards(source: str, rows: int) -> list[Shard]:
    """Cut a file, a folder of files, or an address that fsspec reads into shards of ``rows``.

    Raises:
        InputError: There is no such file, or it has another format.
        MissingExtraError: A package that reads such files is not installed.
    """
    shards: list[Shard] = []
    before = 0
    for path, kind in _input_files(source):
        for first, offset, count in (_cut_parquet if kind == "parquet" else _cut_lines)(path, rows):
            place = {"first": first, "offset": offset, "rows": count, "before": before}
            shards.append(Shard(number=len(shards), path=path, kind=kind, **place))
            before += count
    return shards


def read_shard(shard: Shard) -> pa.Table:
    """The columns of Parquet; for JSON lines one column ``json`` with the bytes of each line."""
    import pyarrow as pa

    state = file_state(shard.path)
    if shard.kind == "jsonl":
        file = _open_lines(shard.path, state)
        file.seek(shard.offset)  # reads a compressed file on from where it is, if that is before
        lines = list(islice(filter(_filled, bounded_lines(file)), shard.rows))
        return pa.table({LINES: pa.array(lines, pa.binary())})
    file, start, parts = _open_parquet(shard.path, state), 0, []
    for number in range(file.num_row_groups):
        rows = file.metadata.row_group(number).num_rows
        begin, end = max(start, shard.first), min(start + rows, shard.first + shard.rows)
        if begin < end:
            group = _row_group(shard.path, state, number)
            parts.append(group.slice(begin - start, end - begin))
        start += rows
    return pa.concat_tables(parts)


def file_system(path: str) -> tuple[AbstractFileSystem, str]:
    """The file system of a path or address, and the path within it.

    Raises:
        MissingExtraError: A package that reads such addresses is not installed.
        InputError: There is no such kind of address.
    """
    try:
        import fsspec
        import pyarrow  # noqa: F401  # the same extra, needed by all that follows
    except ImportError as error:
        raise MissingExtraError(error.name or "pyarrow", "parquet") from error
    try:
        return fsspec.core.url_to_fs(path)  # type: ignore[no-any-return]
    except (ImportError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from error


def file_state(path: str) -> str:
    """Size and time of a file, or what its store reports instead."""
    files, name = file_system(path)
    found = files.info(name)
    marks = ("size", "mtime", "LastModified", "updated", "ETag", "etag")
    return json.dumps([name, *(str(found.get(mark)) for mark in marks)])


def _input_files(source: str) -> list[tuple[str, Format]]:
    files, path = file_system(source)
    if not files.exists(path):
        raise InputError(f"cannot read {source}: there is no such file or folder")
    names = sorted(files.find(path)) if files.isdir(path) else [path]
    found = [(files.unstrip_protocol(name), kind) for name in names if (kind := _kind(name))]
    if not found:
        raise InputError(f"{source} holds no JSON lines (.jsonl) and no Parquet (.parquet)")
    return found


def _kind(name: str) -> Format | None:
    for compression in _COMPRESSED:
        name = name.removesuffix(compression)
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return "jsonl"
    return "parquet" if name.endswith(".parquet") else None


def _cut_parquet(path: str, rows: int) -> Iterator[tuple[int, int, int]]:
    total = _open_parquet(path, file_state(path)).metadata.num_rows
    for first in range(0, total, rows):
        yield first, 0, min(rows, total - first)


def _cut_lines(path: str, rows: int) -> Iterator[tuple[int, int, int]]:
    """First row, offset and number of rows of each shard."""
    with _opened(path) as file:
        first = offset = start = count = 0
        for line in bounded_lines(file):
            end = file.tell()
            if _filled(line):
                if count == 0:
                    start = offset
                count += 1
                if count == rows or end - start >= _SHARD_BYTES:
                    yield first, start, count
                    first, count = first + count, 0
            offset = end
        if count:
            yield first, start, count


def _filled(line: bytes) -> bool:
    """True unless a line is blank, in any script, or holds only byte order marks."""
    bare = line.strip()
    if not bare or bare[0] < 0x80:
        return bool(bare)
    return bool(bare.decode("utf-8", "surrogateescape").strip("\ufeff").strip())


def _opened(path: str) -> BinaryIO:
    import fsspec

    file: BinaryIO = fsspec.open(path, "rb", compression="infer").open()
    files, name = file_system(path)
    size = files.info(name).get("size")
    if not name.endswith(_COMPRESSED) or size is None:  # some servers do not report it
        return file
    return unpacked(file, path, size, InputError)


@lru_cache(maxsize=1)
def _open_lines(path: str, state: str) -> BinaryIO:
    """A file that stays open until another one is read, or its state changes."""
    return _opened(path)


@lru_cache(maxsize=1)
def _open_parquet(path: str, state: str) -> ParquetFile:
    import pyarrow.parquet as pq

    files, name = file_system(path)
    return pq.ParquetFile(files.open(name, "rb"))


@lru_cache(maxsize=1)
def _row_group(path: str, state: str, number: int) -> pa.Table:
    return _open_parquet(path, state).read_row_group(number)
