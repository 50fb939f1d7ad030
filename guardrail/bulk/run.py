"""A job from beginning to end: plan, skip what is finished, run, sum up."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Literal

from pydantic import ValidationError

from guardrail.bulk.engines import run_local, run_ray
from guardrail.bulk.inputs import file_system
from guardrail.bulk.scorer import BulkScorer
from guardrail.bulk.shards import UNFINISHED, Plan, Shard, plan_shards
from guardrail.bulk.summary import Counts, Finished, Summary, summarise
from guardrail.core.errors import GuardrailError, InputError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

__all__ = ["SHARD_ROWS", "run_bulk"]

SHARD_ROWS: Final = 256
"""Rows of a shard: what is lost of the work where a worker dies."""

_JOB: Final = "_job.json"


def run_bulk(
    scorer: BulkScorer,
    source: str,
    output: str,
    *,
    engine: Literal["local", "ray"] = "local",
    workers: int | None = 1,
    shard_rows: int = SHARD_ROWS,
    kind: Literal["jsonl", "parquet"] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Judge all rows of files and write one row for each.

    Shards that an earlier run of the same job finished are skipped. What is written does not
    depend on the engine or on the number of workers.

    Args:
        scorer: What is done with the rows.
        source: File, folder or address of JSON lines or Parquet.
        output: Folder or address where ``part-000000.jsonl`` and so on go.
        engine: Processes of this machine, or Ray.
        workers: Processes or actors; None for one a core, of this machine or of Ray's cluster.
        shard_rows: Rows of a shard.
        kind: Format of the output; None for that of the first input file.
        progress: Is told how many rows are done, of how many.

    Raises:
        InputError: Input or output cannot be used, or the output is another job's.
        GuardrailError: A worker died, or a file could not be read or written; run the job again
            to go on.
    """
    started = time.perf_counter()
    with _telling_how_to_go_on(output):
        shards = plan_shards(source, shard_rows)
        plan = Plan(
            scorer=scorer, output=output, kind=kind or (shards[0].kind if shards else "jsonl")
        )
        finished = _open_output(plan, shards)
        done = sum(item.rows for item in finished.values())
        total = sum(shard.rows for shard in shards)
        left = [shard for shard in shards if shard.number not in finished]
        fresh = 0
        if progress:
            progress(done, total)
        if left:
            run = run_ray if engine == "ray" else run_local
            for number, counts in run(plan, left, workers):
                finished[number] = counts
                fresh += counts.rows
                if progress:
                    progress(done + fresh, total)
    return summarise(
        (finished[shard.number] for shard in shards),
        skipped=len(shards) - len(left),
        seconds=time.perf_counter() - started,
        fresh=fresh,
    )


@contextmanager
def _telling_how_to_go_on(output: str) -> Iterator[None]:
    """Tell of a file that cannot be read or written, and that the job can go on."""
    try:
        yield
    except GuardrailError:
        raise  # of which one is a kind of OSError
    except OSError as error:
        raise GuardrailError(
            f"the job stopped: {error}; what is finished in {output} stays, and the same command "
            "goes on from there"
        ) from error


def _open_output(plan: Plan, shards: list[Shard]) -> dict[int, Counts]:
    """Make the output's folder, or read which shards of this job are finished in it."""
    files, folder = file_system(plan.output)
    mark = plan.fingerprint(shards)
    job = f"{folder.rstrip('/')}/{_JOB}"
    if not files.exists(job):
        if files.exists(folder) and not _fresh(files, folder):
            raise InputError(f"{plan.output} exists and is no output of bulk; name another folder")
        files.makedirs(f"{folder.rstrip('/')}/_finished", exist_ok=True)
        with files.open(job + UNFINISHED, "wb") as file:
            file.write(json.dumps({"job": mark, "shards": len(shards)}).encode())
        files.mv(job + UNFINISHED, job)
        return {}
    with files.open(job, "rb") as file:
        if _job_of(file.read()) != mark:
            raise InputError(
                f"{plan.output} holds the results of other rows or settings, or is damaged; "
                "name another folder"
            )
    for left in (folder, f"{folder.rstrip('/')}/_finished"):
        for name in files.glob(f"{left.rstrip('/')}/*{UNFINISHED}"):
            files.rm(name)
    finished: dict[int, Counts] = {}
    for shard in shards:
        _, note = file_system(plan.report(shard.number))
        _, part = file_system(plan.part(shard.number))
        if files.exists(note) and files.exists(part):
            with files.open(note, "rb") as file, suppress(ValidationError):  # cut short: run again
                known = Finished.model_validate_json(file.read())
                if known.size in (None, files.info(part)["size"]):
                    finished[shard.number] = known
    return finished


def _job_of(note: bytes) -> object:
    """Which job a note tells of; None where it is damaged."""
    try:
        return json.loads(note)["job"]
    except (ValueError, KeyError, TypeError):
        return None


def _fresh(files: AbstractFileSystem, folder: str) -> bool:
    """Whether a folder is empty, or holds no more than a job that was killed while it began."""
    begun = ("_finished", _JOB + UNFINISHED)
    return files.isdir(folder) and all(
        name.rstrip("/").endswith(begun) for name in files.ls(folder, detail=False)
    )
