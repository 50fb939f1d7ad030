"""Times judges on five sentences about the same evidence, cold and warm, and the machine's limit.

``python -m benchmarks.evidence_speed [--judge FOLDER] [--against FOLDER] [--cpu]`` takes five
sentences about a set of triples and about a passage by unseen authors. *Cold* is evidence that the
judge has not met, *warm* evidence that is in its cache; *second* is the second sentence alone. Two
judges take turns, so that both meet the same load. The limit is the time of one plain 8-bit matrix
product with the same multiply-adds on the same cores, in the same run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from judges.base import GroundingItem
from judges.evidence_judge import EvidenceJudge
from judges.onnx import SHIPPED, OnnxJudge, open_judge
from training.statements import Statement, statements_in

__all__ = ["Timed", "main", "timed"]

UNSEEN = Path(__file__).parent / "unseen"
SENTENCES = 5
PARAMETERS = 85_054_464
"""Multiply-adds of a token in the linear layers of 12 layers of width 768."""


class Timed(NamedTuple):
    """Milliseconds of a judge, median over the rounds.

    Attributes:
        cold: Five sentences, their evidence not met before.
        warm: Five sentences, their evidence in the cache.
        first: The first sentence alone, cold.
        second: The second sentence alone, after the first.
        limit: The limit of ``cold``; NaN for a judge of another size.
    """

    cold: float
    warm: float
    first: float
    second: float
    limit: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence_speed")
    parser.add_argument("--judge", type=Path, default=SHIPPED, help="folder of the judge")
    parser.add_argument("--against", type=Path, help="folder of a judge to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpu", action="store_true", help="processor time, for a busy machine")
    options = parser.parse_args(arguments)
    folders = [path for path in (options.judge, options.against) if path]
    judges = [open_judge(folder) for folder in folders]
    clock = time.process_time if options.cpu else time.perf_counter
    for kind, statements in evidence_sets().items():
        items = [_item(statement) for statement in statements]
        found = timed(judges, items, rounds=options.rounds, clock=clock)
        for judge, row in zip(judges, found, strict=True):
            cells = ", ".join(
                f"{name} {value:.0f} ms" for name, value in row._asdict().items() if value == value
            )
            print(f"{kind}, {judge.name}: {cells}")
            if isinstance(judge, EvidenceJudge):
                tokens, held = judge.cached
                print(
                    f"  {held / tokens / 1_000:.1f} MB per 1,000 tokens of evidence ({tokens} kept)"
                )


def evidence_sets() -> dict[str, list[Statement]]:
    """Five sentences about triples, and five about a passage."""
    found: dict[str, list[Statement]] = {}
    for kind, triples in (("triples", True), ("passages", False)):
        some = [one for one in statements_in(UNSEEN) if one.triples is triples]
        found[kind] = [one for one in some if one.group == some[0].group][:SENTENCES]
    return found


def timed(
    judges: Sequence[EvidenceJudge | OnnxJudge],
    items: Sequence[GroundingItem],
    *,
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Timed]:
    """Time judges in turns.

    Args:
        judges: The judges.
        items: The sentences, all about the same evidence.
        rounds: Times that everything is measured.
        clock: Gives seconds.
    """

    def ms(call: Callable[[], object]) -> float:
        began = clock()
        call()
        return (clock() - began) * 1_000

    def once(judge: EvidenceJudge | OnnxJudge) -> Timed:
        forget = judge.forget if isinstance(judge, EvidenceJudge) else lambda: None
        forget()
        cold, warm = (ms(lambda: judge.ground(items)) for _ in range(2))
        forget()
        first, second = (ms(lambda i=i: judge.ground(items[i : i + 1])) for i in range(2))  # type: ignore[misc]
        limit = float("nan")
        if isinstance(judge, EvidenceJudge):
            plans = [plan for plan, _ in judge.plan(items)]
            tokens = sum(map(len, plans[0].windows))
            tokens += sum(len(claim.ids) for plan in plans for claim in plan.claims)
            limit = ms(matrix_product(tokens))
        return Timed(cold, warm, first, second, limit)

    for judge in judges:
        judge.ground(items)
    rows: list[list[Timed]] = [[] for _ in judges]
    for _ in range(rounds):
        for judge, row in zip(judges, rows, strict=True):
            row.append(once(judge))
    return [Timed(*map(statistics.median, zip(*row, strict=True))) for row in rows]


def matrix_product(tokens: int) -> Callable[[], object]:
    """One 8-bit matrix product on all cores with the multiply-adds of some tokens."""
    from onnx import TensorProto, helper, numpy_helper
    from onnxruntime import InferenceSession, SessionOptions

    inner, outer = 768, 3_072
    rows = max(1, round(tokens * PARAMETERS / (inner * outer)))
    rng = np.random.default_rng(0)
    table = rng.integers(-63, 64, (inner, outer)).astype(np.int8)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        "limit",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [None, inner])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [None, outer])],
        [numpy_helper.from_array(table, "w")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    options = SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    data = made.SerializeToString()
    session = InferenceSession(data, options, providers=["CPUExecutionProvider"])
    values = rng.integers(0, 256, (rows, inner)).astype(np.uint8)
    session.run(None, {"x": values[:64]})
    return lambda: session.run(None, {"x": values})


def _item(statement: Statement) -> GroundingItem:
    return GroundingItem(
        statement.statements,
        statement.sentence,
        statement.before,
        structured=statement.triples,
        windows=statement.windows,
    )


if __name__ == "__main__":
    main()
