"""Where shards are run: processes of this machine, or a Ray cluster."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from guardrail.bulk.shards import Plan, Shard, run_shard
from guardrail.bulk.summary import Counts
from guardrail.core.cpus import usable_cpus
from guardrail.core.errors import GuardrailError, MissingExtraError

__all__ = ["run_local", "run_ray"]

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "0"}


def run_local(
    plan: Plan, shards: Sequence[Shard], workers: int | None = None
) -> Iterator[tuple[int, Counts]]:
    """Run shards in processes of this machine, and yield each as it is finished.

    Args:
        plan: What is done with them.
        shards: The shards.
        workers: Processes, each with one thread of the judge; None for one a core. One alone is
            this process, whose judge uses all cores.

    Raises:
        GuardrailError: A worker died; what is finished stays.
    """
    workers = max(1, min(workers or usable_cpus(), len(shards)))
    if workers == 1:
        for shard in shards:
            yield shard.number, run_shard(plan, shard)
        return
    # A fork would copy the threads' locks of whatever is loaded here.
    context = multiprocessing.get_context("spawn")
    try:
        with (
            _environment(_ONE_THREAD),
            ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent) as pool,
        ):
            running = {pool.submit(run_shard, plan, shard): shard.number for shard in shards}
            try:
                for future in as_completed(running):
                    yield running[future], future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    except BrokenProcessPool as error:
        raise GuardrailError(
            "a worker died (out of memory, or killed); run the command again to go on where it was"
        ) from error


def run_ray(
    plan: Plan, shards: Sequence[Shard], workers: int | None = None
) -> Iterator[tuple[int, Counts]]:
    """Run shards on a Ray cluster: actors that hold the judge.

    Args:
        plan: What is done with them.
        shards: The shards.
        workers: Actors; None for one a core of the cluster. A judge that runs on GPUs has one
            each, and no more actors than there are.

    Raises:
        MissingExtraError: Ray is not installed.
    """
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise MissingExtraError("ray", "ray") from error
    if not ray.is_initialized():
        ray.init(ignore_reinit_error=True, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False  # the caller has one
    resources: Any = ray.cluster_resources  # Ray types it in part
    gpus = int(resources().get("GPU", 0)) if _on_gpu(plan) else 0
    workers = workers or gpus or int(resources().get("CPU", 1))
    workers = max(1, min(workers, gpus or workers, len(shards)))
    named = [{"shard": shard.model_dump_json()} for shard in shards]
    # A block a shard, made here: a task that cut them up would want a core beside the actors'.
    found = ray.data.from_items(named, override_num_blocks=len(shards)).map_batches(
        _Actor,
        fn_constructor_args=(plan.model_dump_json(),),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_cpus=1,
        num_gpus=1 if gpus else 0,
    )
    for row in found.iter_rows():
        yield int(row["number"]), Counts.model_validate_json(row["counts"])


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
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
    """End this worker when the process that started it is gone.

    It would go on with its shard beside the run that is started next, and then wait for ever.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="parent", daemon=True).start()


class _Actor:
    """A worker of Ray, which keeps its guardrail between shards."""

    def __init__(self, plan: str) -> None:
        self._plan = Plan.model_validate_json(plan)

    def __call__(self, batch: Mapping[str, Sequence[object]]) -> dict[str, list[object]]:
        shards = [Shard.model_validate_json(str(item)) for item in batch["shard"]]
        counts = [run_shard(self._plan, shard) for shard in shards]
        return {
            "number": [shard.number for shard in shards],
            "counts": [count.model_dump_json() for count in counts],
        }


def _on_gpu(plan: Plan) -> bool:
    return plan.scorer.config.judge.partition(":")[0] in ("transformers", "t5-true")
