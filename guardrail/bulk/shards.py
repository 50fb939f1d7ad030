"""Shards: stretches of input files, each judged by one worker and written to one file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Final
from uuid import uuid4

from guardrail.bulk.arrow import arrow
from guardrail.bulk.inputs import (
    Format,
    file_state,
    file_system,
    input_files,
    read_rows,
    stretches,
)
from guardrail.bulk.scorer import BulkScorer, as_table
from guardrail.bulk.summary import Counts, Finished, count_row
from guardrail.core.types import Value

__all__ = ["UNFINISHED", "Plan", "Shard", "plan_shards", "run_shard"]

UNFINISHED: Final = ".new"
"""Ending of files that are being written."""


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
        text += "".join(file_state(path) for path in sorted({shard.path for shard in shards}))
        return hashlib.sha256(text.encode()).hexdigest()


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
    for path, kind in input_files(source):
        for first, offset, count in stretches(path, kind, rows):
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
    """Judge a shard and write its results, then note that it is finished.

    A shard with a row that could not be judged for now (graph or judge out of reach) is not noted,
    so that the next run of the job judges it again.
    """
    table = read_rows(shard.path, shard.kind, shard.first, shard.offset, shard.rows)
    rows = list(plan.scorer.results(table, shard.first + 1))
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
    if counts.unverified:
        return counts
    files, note = file_system(plan.report(shard.number))
    with files.open(note + new, "wb") as file:
        file.write(
            Finished(**dict(counts), size=files.info(part)["size"]).model_dump_json().encode()
        )
    files.mv(note + new, note)
    return counts
