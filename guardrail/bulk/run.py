"""A bulk job: cut the input into shards, skip finished ones, judge the rest, sum up.

The results of a shard are one file, which appears whole or not at all. So a job that was stopped
continues with the shards that have no file yet.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Final, Literal
from uuid import uuid4

from guardrail.bulk.inputs import Format, Shard, file_state, file_system, plan_shards, read_shard
from guardrail.bulk.scorer import BulkScorer, as_table
from guardrail.core.errors import GuardrailError, InputError, MissingExtraError
from guardrail.core.types import Value
from guardrail.core.workers import usable_cpus
from guardrail.intervals import Rate, mean, share

SHARD_ROWS: Final = 256
"""Rows of a shard: the work that is lost if a worker dies."""

_UNFINISHED: Final = ".new"
"""Ending of files that are being written."""


Counts = dict[tuple[str, str], float]
"""Sums by kind and name: ``rows``, ``errors`` and ``unverified``, each ``outcome`` of a row, and
``number``, ``total`` and ``squares`` of each score."""


class Summary(Value):
    """The result of a job.

    Attributes:
        errors: Rows that could not be judged.
        unverified: Errors because graph, judge or model were unreachable; the next run of the job
            repeats their shards.
        skipped: Shards that an earlier run had finished.
        seconds: Wall time of this run.
        rates: Shares (Wilson's interval) and means (normal interval) by name.
    """

    rows: int
    errors: int
    unverified: int
    shards: int
    skipped: int
    seconds: float
    rows_per_second: float
    rates: Mapping[str, Rate]


class _Plan(Value):
    """What every worker of a job needs."""

    scorer: BulkScorer
    output: str
    kind: Format

    def part(self, shard: Shard) -> str:
        """Where the results of a shard go."""
        return f"{self.output.rstrip('/')}/part-{shard.number:06}.{self.kind}"


def run_bulk(
    scorer: BulkScorer,
    source: str,
    output: str,
    *,
    engine: Literal["local", "ray"] = "local",
    workers: int | None = 1,
    shard_rows: int = SHARD_ROWS,
    kind: Format | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Summary:
    """Judge all rows of files and write one row for each.

    Shards that an earlier run of the same job finished are skipped. The output does not depend on
    the engine or the number of workers.

    Args:
        scorer: Judges the rows.
        source: File, folder or address of JSON lines or Parquet.
        output: Folder or address for ``part-000000.jsonl`` and so on.
        engine: Processes of this machine, or Ray.
        workers: Processes or actors; None for one per core of the machine or of Ray's cluster. A
            single process is this one, whose judge uses all cores.
        shard_rows: Rows of a shard.
        kind: Format of the output; None for that of the first input file.
        progress: Called with the number of finished rows and of all rows.

    Raises:
        InputError: Input or output cannot be used, or the output belongs to another job.
        GuardrailError: A worker died, or a file could not be read or written; run the job again
            to continue.
    """
    started = time.perf_counter()
    try:
        shards = plan_shards(source, shard_rows)
        kind = kind or (shards[0].kind if shards else "jsonl")
        plan = _Plan(scorer=scorer, output=output, kind=kind)
        counts = {
            shard.number: found
            for shard in (shards if _opened(plan, shards) else ())
            if (found := _counted(plan, shard)) and not found["unverified", ""]
        }
        left = [shard for shard in shards if shard.number not in counts]
        done = sum(shard.rows for shard in shards if shard.number in counts)
        fresh, total = 0, sum(shard.rows for shard in shards)
        progress(done, total)
        if left:
            for number in (_run_ray if engine == "ray" else _run_local)(plan, left, workers):
                counts[number] = _counted(plan, shards[number]) or {}
                fresh += shards[number].rows
                progress(done + fresh, total)
    except GuardrailError:
        raise  # some are OSErrors as well
    except OSError as error:
        raise GuardrailError(
            f"the job stopped: {error}; finished shards in {output} are kept; run the same command "
            "again to continue"
        ) from error
    return _summary(
        [counts[shard.number] for shard in shards],  # in this order, so that sums are reproducible
        skipped=len(shards) - len(left),
        seconds=time.perf_counter() - started,
        fresh=fresh,
    )


def run_shard(plan: _Plan, shard: Shard) -> int:
    """Judge a shard, write its results and return its number."""
    rows = list(plan.scorer.results(read_shard(shard), shard.first + 1))
    places = range(shard.before, shard.before + shard.rows)
    files, part = file_system(plan.part(shard))
    new = f"{part}.{uuid4().hex}{_UNFINISHED}"  # a killed worker's file may still be there
    with files.open(new, "wb") as file:
        if plan.kind == "parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(as_table(rows).add_column(0, "row", pa.array(places, pa.int64())), file)
        else:
            for place, (id_, result, error) in zip(places, rows, strict=True):
                head = json.dumps({"row": place, "id": id_}, ensure_ascii=False)[:-1]
                tail = result or json.dumps({"error": error}, ensure_ascii=False)
                line = f"{head}{', ' if tail != '{}' else ''}{tail[1:]}\n"
                file.write(line.encode("utf-8", "backslashreplace"))
    files.mv(new, part)
    return shard.number


def _opened(plan: _Plan, shards: Sequence[Shard]) -> bool:
    """Open the output folder; True if an earlier run of this job has written to it."""
    files, folder = file_system(plan.output)
    folder = folder.rstrip("/")
    job = f"{folder}/_job.json"
    # Of rows and settings, and the state of input, graph and judge
    text = plan.scorer.state() + plan.kind
    text += "".join(shard.model_dump_json() for shard in shards)
    text += "".join(file_state(path) for path in sorted({shard.path for shard in shards}))
    digest = hashlib.sha256(text.encode()).hexdigest()
    fingerprint = json.dumps({"job": digest}).encode()
    if files.exists(job):
        with files.open(job, "rb") as file:
            if file.read() != fingerprint:
                raise InputError(
                    f"{plan.output} holds the results of other rows or settings, or is damaged; "
                    "name another folder"
                )
        for name in files.glob(f"{folder}/*{_UNFINISHED}"):
            files.rm(name)
        return True
    if files.exists(folder) and not (
        files.isdir(folder)
        and all(name.endswith(f"_job.json{_UNFINISHED}") for name in files.ls(folder, detail=False))
    ):
        raise InputError(f"{plan.output} exists and is no output of bulk; name another folder")
    files.makedirs(folder, exist_ok=True)
    with files.open(job + _UNFINISHED, "wb") as file:
        file.write(fingerprint)
    files.mv(job + _UNFINISHED, job)
    return False


def _counted(plan: _Plan, shard: Shard) -> Counts | None:
    """Counts of a finished shard; None if its file is missing or damaged."""
    files, part = file_system(plan.part(shard))
    if not files.exists(part):
        return None
    counts: Counts = defaultdict(float)
    try:
        with files.open(part, "rb") as file:
            for result in _results(plan.kind, file):
                _count(counts, plan.scorer.task, result)
    except (ValueError, KeyError):  # cut off
        return None
    return counts if counts["rows", ""] == shard.rows else None


def _results(kind: Format, file: Any) -> Iterator[Mapping[str, Any] | None]:
    """The results in a file; None for each error."""
    if kind == "parquet":
        import pyarrow.parquet as pq

        for result in pq.read_table(file, columns=["result"]).column("result").to_pylist():
            yield None if result is None else json.loads(result)
    else:
        for line in file:
            row = json.loads(line)
            yield None if "error" in row else row


def _count(counts: Counts, task: str, result: Mapping[str, Any] | None) -> None:
    """Count one row; its result is None for a row with an error."""
    parts = {error["part"] for error in (result or {}).get("errors", ())}
    # Parts, as named in an answer's errors, that may be reachable again in a later run
    unverified = bool(parts & {"kg", "judge", "model", "deadline", "overload"})
    counts["rows", ""] += 1
    counts["errors", ""] += result is None or unverified
    counts["unverified", ""] += unverified
    if result is None or unverified:
        return
    if task == "check":
        counts["outcome", f"action: {result['action']}"] += 1
        sentences = result["sentences"]
        for category in {sentence["category"] for sentence in sentences if sentence["category"]}:
            counts["outcome", f"answers with a sentence {category}"] += 1
        counts["outcome", "answers with [NA]"] += any(sentence["na"] for sentence in sentences)
        counts["outcome", "answers with problems"] += bool(result["errors"])
        scores = {"overall": result["scorecard"]["overall"], **result["scorecard"]["scores"]}
    elif task == "rank":
        best = result["ranking"][0]["score"] if result["ranking"] else None
        scores = {"best score": {"value": best}}
    else:
        conner = result["conner"].items()
        scores = {"sck": result["sck"]["score"]}
        rated = ((n, part) for n, part in conner if isinstance(part, dict) and "value" in part)
        scores |= {f"conner.{name}": part for name, part in rated}
    for name, score in scores.items():
        if (value := score["value"]) is not None:
            for kind, number in (("number", 1), ("total", value), ("squares", value * value)):
                counts[kind, name] += number


def _summary(parts: Sequence[Counts], *, skipped: int, seconds: float, fresh: int) -> Summary:
    whole: Counts = defaultdict(float)
    for part in parts:
        for key, value in part.items():
            whole[key] += value
    rows, errors, unverified = (int(whole[key, ""]) for key in ("rows", "errors", "unverified"))
    rates = {"errors": share(errors, rows)}
    outcomes = sorted(name for kind, name in whole if kind == "outcome")
    rates |= {name: share(int(whole["outcome", name]), rows - errors) for name in outcomes}
    for name in sorted(name for kind, name in whole if kind == "number"):
        sums = (whole[kind, name] for kind in ("total", "squares"))
        rates[name] = mean(int(whole["number", name]), *sums)
    return Summary(
        rows=rows,
        errors=errors,
        unverified=unverified,
        shards=len(parts),
        skipped=skipped,
        seconds=seconds,
        rows_per_second=fresh / seconds if seconds > 0 else 0.0,
        rates=rates,
    )


def _run_local(plan: _Plan, shards: Sequence[Shard], workers: int | None) -> Iterator[int]:
    """Run shards in processes of this machine, each with one judge thread; yield their numbers."""
    workers = min(workers or usable_cpus(), len(shards))
    if workers == 1:
        for shard in shards:
            yield run_shard(plan, shard)
        return
    # A fork would copy the locks of threads that run here.
    context = multiprocessing.get_context("spawn")
    try:
        with (
            _environment(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", TOKENIZERS_PARALLELISM="0"),
            ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent) as pool,
        ):
            running = [pool.submit(run_shard, plan, shard) for shard in shards]
            try:
                for future in as_completed(running):
                    yield future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    except BrokenProcessPool as error:
        raise GuardrailError(
            "a worker died (out of memory, or killed); run the command again to continue"
        ) from error


def _run_ray(plan: _Plan, shards: Sequence[Shard], workers: int | None) -> Iterator[int]:
    """Run shards in actors of a Ray cluster, one GPU each if the judge uses GPUs."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", "ray") from error
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False)
    typed: Any = ray  # Ray types itself in part
    on_gpu = plan.scorer.config.judge.partition(":")[0] in ("transformers", "t5-true")
    gpus = int(typed.cluster_resources().get("GPU", 0)) if on_gpu else 0
    workers = workers or gpus or int(typed.cluster_resources().get("CPU", 1))
    workers = min(workers, gpus or workers, len(shards))

    class Worker:
        """An actor, which keeps its guardrail between shards."""

        def run(self, shard: Shard) -> int:
            return run_shard(plan, shard)

    # An actor that dies is started anew, and its shard is repeated.
    options = {"num_cpus": 1, "num_gpus": 1 if gpus else 0, "max_restarts": -1}
    actor = typed.remote(**options, max_task_retries=-1)(Worker)
    pool = typed.util.ActorPool([actor.remote() for _ in range(workers)])
    yield from pool.map_unordered(lambda actor, shard: actor.run.remote(shard), shards)


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Set variables for the processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _end_with_parent() -> None:
    """End this worker when the process that started it is gone, rather than wait forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="parent", daemon=True).start()
