"""Shards: stretches of input files, each judged by one worker and written to one file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import uuid4

from guardrail.bulk.scorer import LINES, BulkScorer, arrow, as_table
from guardrail.bulk.summary import Counts, count_row
from guardrail.errors import InputError, MissingExtraError
from guardrail.types import Value

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Plan", "Shard", "plan_shards", "run_shard"]

Format = Literal["jsonl", "parquet"]
_ENDINGS: Final = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
UNFINISHED: Final = ".new"
"""Ending of files that are being written."""
_PACKED: Final = (".gz", ".bz2", ".xz")


class Shard(Value):
    """A stretch of one input file.

    Attributes:
        number: Its place among all shards, from 0.
        path: The file, a path or an address that fsspec reads.
        kind: Its format.
        first: Number of its first row among the rows of the file, from 0.
        rows: How many rows it has.
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


class Plan(Value):
    """What every worker of a job knows.

    Attributes:
        scorer: What is done with the rows.
        output: Folder, or its address, where the shards' results go.
        kind: Format of the results.
    """

    scorer: BulkScorer
    output: str
    kind: Format

    def part(self, shard: int) -> str:
        """Where the results of a shard go."""
        return f"{self.output.rstrip('/')}/part-{shard:06}.{self.kind}"

    def report(self, shard: int) -> str:
        """Where a shard is noted as finished."""
        return f"{self.output.rstrip('/')}/_finished/{shard:06}.json"

    def fingerprint(self, shards: Sequence[Shard]) -> str:
        """What makes a job the same job: rows, settings, state of input, graph and judge."""
        text = self.scorer.state() + self.kind
        text += "".join(shard.model_dump_json() for shard in shards)
        text += "".join(_state(path) for path in sorted({shard.path for shard in shards}))
        return hashlib.sha256(text.encode()).hexdigest()


def _state(path: str) -> str:
    """Size and time of an input file, or what its store tells in their place."""
    files, name = file_system(path)
    found = files.info(name)
    marks = ("size", "mtime", "LastModified", "updated", "ETag", "etag")
    return json.dumps([name, *(str(found.get(mark)) for mark in marks)])


def file_system(path: str) -> tuple[Any, str]:
    """The file system of a path or address, and the path within it.

    Raises:
        MissingExtraError: A package that reads such addresses is not installed.
    """
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtraError("fsspec", "parquet") from error
    try:
        return fsspec.core.url_to_fs(path)  # type: ignore[no-any-return]
    except (ImportError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from error


def plan_shards(source: str, rows: int) -> list[Shard]:
    """Cut files into shards.

    Args:
        source: A file, a folder of files, or an address that fsspec reads (``s3://…``).
        rows: Most rows of a shard.

    Raises:
        InputError: There is no such file, or it is of another format.
    """
    shards: list[Shard] = []
    before = 0
    for path, kind in _files(source):
        for first, offset, count in _stretches(path, kind, rows):
            shards.append(
                Shard(
                    number=len(shards),
                    path=path,
                    kind=kind,
                    first=first,
                    rows=count,
                    before=before,
                    offset=offset,
                )
            )
            before += count
    return shards


def run_shard(plan: Plan, shard: Shard) -> Counts:
    """Judge a shard and write its results, then note that it is finished."""
    rows = list(plan.scorer.results(_read(shard), shard.first + 1))
    counts = Counts()
    lines = []
    for place, (id_, result, error) in enumerate(rows, start=shard.before):
        counts = count_row(counts, plan.scorer.task, None if result is None else json.loads(result))
        head = json.dumps({"row": place, "id": id_}, ensure_ascii=False)[:-1]
        tail = result or json.dumps({"error": error}, ensure_ascii=False)
        lines.append(f"{head}{', ' if tail != '{}' else ''}{tail[1:]}\n")
    files, part = file_system(plan.part(shard.number))
    # Named apart: what was cut off half way may lie there still.
    new = f".{uuid4().hex}{UNFINISHED}"
    with files.open(part + new, "wb") as file:
        if plan.kind == "parquet":
            import pyarrow.parquet as pq

            pa = arrow()
            places = pa.array(range(shard.before, shard.before + shard.rows), pa.int64())
            pq.write_table(as_table(rows).add_column(0, "row", places), file)
        else:
            file.write("".join(lines).encode("utf-8", "backslashreplace"))
    files.mv(part + new, part)
    files, note = file_system(plan.report(shard.number))
    with files.open(note + new, "wb") as file:
        file.write(counts.model_dump_json().encode())
    files.mv(note + new, note)
    return counts


def _files(source: str) -> list[tuple[str, Format]]:
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


def _kind(name: str) -> Format | None:
    for packing in _PACKED:
        name = name.removesuffix(packing)
    for ending, kind in _ENDINGS.items():
        if name.endswith(ending):
            return "parquet" if kind == "parquet" else "jsonl"
    return None


def _stretches(path: str, kind: Format, rows: int) -> Iterator[tuple[int, int, int]]:
    """First row, offset and number of rows of each stretch of a file."""
    if kind == "parquet":
        total = _parquet(path).metadata.num_rows
        for first in range(0, total, rows):
            yield first, 0, min(rows, total - first)
        return
    with _open(path) as file:
        first = offset = count = 0
        start = 0
        for line in file:
            if line.strip():
                if count == 0:
                    start = offset
                count += 1
                if count == rows:
                    yield first, start, count
                    first, count = first + count, 0
            offset += len(line)
        if count:
            yield first, start, count


def _read(shard: Shard) -> pa.Table:
    pa = arrow()
    if shard.kind == "jsonl":
        with _open(shard.path) as file:
            file.seek(shard.offset)
            filled = (line for line in file if line.strip())
            lines = [line.decode("utf-8", "replace") for line in islice(filled, shard.rows)]
        return pa.table({LINES: pa.array(lines, pa.string())})
    parquet = _parquet(shard.path)
    # Whole groups are read, no more of them than the shard touches.
    first, past, groups, start = 0, 0, [], None
    for number in range(parquet.num_row_groups):
        first, past = past, past + parquet.metadata.row_group(number).num_rows
        if past > shard.first and first < shard.first + shard.rows:
            groups.append(number)
            start = first if start is None else start
    table = parquet.read_row_groups(groups)
    return table.slice(shard.first - (start or 0), shard.rows)


def _parquet(path: str) -> Any:
    arrow()
    import pyarrow.parquet as pq

    files, name = file_system(path)
    return pq.ParquetFile(files.open(name, "rb"))


def _open(path: str) -> Any:
    import fsspec

    return fsspec.open(path, "rb", compression="infer").open()
