"""Speed of the judges: ``python -m benchmarks.judges cpu | concurrency | gpu``.

Prints what was measured on this machine in this run, and nothing else. Models that are only
compared for speed have the real shapes and random weights: speed does not depend on the values.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from guardrail.core.errors import InputError
from guardrail.core.types import Value
from judges.base import Pair
from judges.onnx import SHIPPED, OnnxJudge
from judges.service import JudgeService

__all__ = ["Concurrency", "Speed", "load_pairs", "measure_concurrency", "measure_cpu"]

CALLERS, PAIRS_PER_CALLER = 64, 8
PIPELINE_BATCH = 32
COMMAND_ROWS = 512
"""Rows that ``guardrail nli`` hands to the judge at a time."""
SHARED_BY = 4
"""Callers that ask for the same pair in the workload of candidate answers to one question."""


class Speed(Value):
    """One way of judging the same pairs.

    Attributes:
        name: The way.
        pairs: Pairs judged per round.
        mean_tokens: Mean tokens of a pair, special ones included.
        pairs_per_s: Best of all rounds, wall time.
        pairs_per_cpu_s: The same per second of processor time, which other load on the machine
            does not change.
    """

    name: str
    pairs: int
    mean_tokens: float
    pairs_per_s: float
    pairs_per_cpu_s: float


class Concurrency(Value):
    """Many callers at once against the same calls one after another.

    Attributes:
        workload: What the callers ask for.
        distinct_share: Distinct pairs among all pairs asked for.
        sequential_pairs_per_s: Calls of the bare judge, one after another.
        sequential_busy_cores: Processor seconds a second in those calls. Where it is near the
            number of cores, merging only helps if callers ask for the same verdict twice.
        merged_pairs_per_s: The calls through the micro-batcher, all at once, best round.
        gain: The second over the first.
        p50_ms: Median latency of a call in that round, milliseconds.
        p95_ms: Its 95th percentile.
        largest_difference: Between the results of both ways, over all probabilities.
    """

    workload: str
    distinct_share: float
    sequential_pairs_per_s: float
    sequential_busy_cores: float
    merged_pairs_per_s: float
    gain: float
    p50_ms: float
    p95_ms: float
    largest_difference: float


def load_pairs(data: Path, count: int) -> list[Pair]:
    """Read distinct pairs from the NLI files of a folder, evenly over the files.

    Args:
        data: Holds ``*.jsonl.gz`` with the fields ``premise`` and ``hypothesis``; files
            without them are passed over.
        count: Most pairs to read.

    Raises:
        InputError: There are no such files.
    """
    files = []
    for path in sorted(data.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            if {"premise", "hypothesis"} <= set(json.loads(next(lines, "{}"))):
                files.append(path)
    if not files:
        raise InputError(f"{data} holds no NLI files (*.jsonl.gz with premise and hypothesis)")
    pairs: dict[Pair, None] = {}
    for number, path in enumerate(files, start=1):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                if len(pairs) >= count * number // len(files):
                    break
                row = json.loads(line)
                pairs[Pair(row["premise"], row["hypothesis"])] = None
    return list(pairs)


def measure_cpu(pairs: Sequence[Pair], *, folder: Path, rounds: int) -> list[Speed]:
    """Time the shipped judge, the same fp32 PyTorch model pair by pair, and a pipeline.

    The ways take turns, so that other load on the machine meets all of them.

    Args:
        pairs: What is judged; pairs longer than the model reads are left out, as the judge
            reads them whole and the other ways cut them off.
        folder: Of the ONNX judge.
        rounds: How often; the best round counts.
    """
    judge = OnnxJudge(folder)
    lengths = judge.lengths(pairs)
    pairs = [
        pair for pair, length in zip(pairs, lengths, strict=True) if length <= judge.card.max_length
    ]
    mean = statistics.fmean(length for length in lengths if length <= judge.card.max_length)
    single, pipeline = _pytorch_ways(folder, judge.card.max_length)
    ways: dict[str, Callable[[Sequence[Pair]], object]] = {
        "shipped judge, int8 ONNX": lambda part: [
            judge.judge(part[i : i + COMMAND_ROWS]) for i in range(0, len(part), COMMAND_ROWS)
        ],
        "PyTorch fp32, pair by pair": single,
        f"transformers pipeline, batch {PIPELINE_BATCH}": pipeline,
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for way in ways.values():
        way(pairs[:PIPELINE_BATCH])
    for _ in range(rounds):
        for name, way in ways.items():
            wall, busy = time.perf_counter(), time.process_time()
            way(pairs)
            times[name].append((time.perf_counter() - wall, time.process_time() - busy))
    return [
        Speed(
            name=name,
            pairs=len(pairs),
            mean_tokens=mean,
            pairs_per_s=len(pairs) / min(wall for wall, _ in found),
            pairs_per_cpu_s=len(pairs) / min(busy for _, busy in found),
        )
        for name, found in times.items()
    ]


def _pytorch_ways(
    folder: Path, max_length: int
) -> tuple[Callable[[Sequence[Pair]], object], Callable[[Sequence[Pair]], object]]:
    """The judge's shape as a Hugging Face classifier, by itself and in a pipeline."""
    import torch

    transformers: Any = import_module("transformers")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"),
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=max_length,
    )
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
        num_labels=3,
    )
    model = transformers.BertForSequenceClassification(config).eval()
    pipeline = transformers.pipeline(
        "text-classification", model=model, tokenizer=tokenizer, device="cpu"
    )

    def single(pairs: Sequence[Pair]) -> None:
        with torch.inference_mode():
            for premise, hypothesis in pairs:
                inputs = tokenizer(premise, hypothesis, truncation=True, return_tensors="pt")
                model(**inputs).logits.softmax(-1).tolist()

    def batched(pairs: Sequence[Pair]) -> None:
        texts = [{"text": premise, "text_pair": hypothesis} for premise, hypothesis in pairs]
        pipeline(texts, batch_size=PIPELINE_BATCH, truncation=True, top_k=None)

    return single, batched


def measure_concurrency(pairs: Sequence[Pair], *, folder: Path, rounds: int) -> list[Concurrency]:
    """Time 64 concurrent callers of 8 pairs each against the same calls one after another.

    One workload has no pair twice. The other is that of ranking candidate answers, where each
    pair is asked for by four callers.

    Args:
        pairs: At least 512 distinct pairs.
        folder: Of the ONNX judge.
        rounds: How often; the best round counts.
    """
    judge = OnnxJudge(folder)
    judge.warm_up()
    judge.judge(pairs[:PAIRS_PER_CALLER])
    step = PAIRS_PER_CALLER // SHARED_BY
    distinct = [
        list(pairs[n * PAIRS_PER_CALLER : (n + 1) * PAIRS_PER_CALLER]) for n in range(CALLERS)
    ]
    ring = list(pairs[: CALLERS * step])
    shared = [
        [ring[(n * step + k) % len(ring)] for k in range(PAIRS_PER_CALLER)] for n in range(CALLERS)
    ]
    return [
        _concurrency(judge, name, calls, rounds)
        for name, calls in (("no pair twice", distinct), ("candidate answers", shared))
    ]


Calls = Sequence[Sequence[Pair]]
Answers = list[tuple[list[Any], float]]


def _concurrency(
    judge: OnnxJudge,
    workload: str,
    calls: Calls,
    rounds: int,
) -> Concurrency:
    total = sum(len(call) for call in calls)
    alone, merged = [], []
    for _ in range(rounds):
        start, busy = time.perf_counter(), time.process_time()
        expected = [judge.judge(call) for call in calls]
        alone.append((time.perf_counter() - start, time.process_time() - busy))
        with JudgeService(judge) as service:
            start = time.perf_counter()
            answers = _by_threads(service, calls)
            merged.append((time.perf_counter() - start, answers))
    seconds, answers = min(merged, key=lambda found: found[0])
    before, busy = min(alone)
    latencies = sorted(1000 * latency for _, latency in answers)
    difference = max(
        abs(getattr(a, label) - getattr(b, label))
        for (results, _), wanted in zip(answers, expected, strict=True)
        for a, b in zip(results, wanted, strict=True)
        for label in ("entailment", "neutral", "contradiction")
    )
    return Concurrency(
        workload=workload,
        distinct_share=len({pair for call in calls for pair in call}) / total,
        sequential_pairs_per_s=total / before,
        sequential_busy_cores=busy / before,
        merged_pairs_per_s=total / seconds,
        gain=before / seconds,
        p50_ms=statistics.median(latencies),
        p95_ms=statistics.quantiles(latencies, n=20)[-1],
        largest_difference=difference,
    )


def _by_threads(service: JudgeService, calls: Calls) -> Answers:
    def one(call: Sequence[Pair]) -> tuple[list[Any], float]:
        start = time.perf_counter()
        return service.judge(call), time.perf_counter() - start

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(one, calls))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one part and print its table, or JSON lines with ``--json``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judges")
    parser.add_argument("part", choices=("cpu", "concurrency", "gpu"))
    parser.add_argument("--data", type=Path, help="folder with NLI files; needed but for gpu")
    parser.add_argument("--judge", type=Path, default=SHIPPED, help="folder of an ONNX judge")
    parser.add_argument("--pairs", type=int, help="pairs per round; 1000, gpu: 20000")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; the best one counts")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of a table")
    given = parser.parse_args(arguments)
    if given.part == "gpu":
        from benchmarks.judges_gpu import measure_gpu

        results: Sequence[Value] = measure_gpu(pairs=given.pairs or 20_000)
        if not results:
            print("no GPU here: nothing was measured", file=sys.stderr)
            return 1
    else:
        if given.data is None:
            parser.error("--data is needed: a folder with NLI files")
        if given.part == "cpu":
            pairs = load_pairs(given.data, given.pairs or 1000)
            results = measure_cpu(pairs, folder=given.judge, rounds=given.rounds)
        else:
            pairs = load_pairs(given.data, CALLERS * PAIRS_PER_CALLER)
            results = measure_concurrency(pairs, folder=given.judge, rounds=given.rounds)
    for line in _lines(results, as_json=given.json):
        print(line)
    return 0


def _lines(results: Sequence[Value], *, as_json: bool) -> list[str]:
    if as_json:
        return [result.model_dump_json() for result in results]
    lines = []
    for result in results:
        fields = list(result.model_dump().items())
        lines.append(str(fields[0][1]))
        lines += [f"  {name:24} {_plain(value)}" for name, value in fields[1:]]
    speeds = [result for result in results if isinstance(result, Speed)]
    for other in speeds[1:]:
        wall = speeds[0].pairs_per_s / other.pairs_per_s
        busy = speeds[0].pairs_per_cpu_s / other.pairs_per_cpu_s
        lines.append(
            f"{speeds[0].name} against {other.name}: {wall:.2f} times by the clock, "
            f"{busy:.2f} times by processor time"
        )
    return lines


def _plain(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
