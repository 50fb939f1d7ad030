"""SCK benchmark: perturbed texts, and resuming without measuring a row twice."""

from __future__ import annotations

from pathlib import Path

from benchmarks.sck.cost import cost, graph_answers
from benchmarks.sck.judged import JudgedScorer
from benchmarks.sck.rates import Pair, sensitivity
from judges.encoder import create_encoder
from judges.registry import create_nli

PAIRS = (
    Pair("Where was Ada Lovelace born?",
         "Ada Lovelace was born in London. She died in Marylebone."),
    Pair("How does Alan Turing's machine work?",
         "Alan Turing wrote of a tape. The machine of Alan Turing reads it in Manchester."),
    Pair("Who was Grace Hopper?", "Grace Hopper served at Arlington. Grace Hopper knew Cobol."),
)  # fmt: skip


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    keep = tmp_path / "rows.jsonl"
    scorer = JudgedScorer(create_encoder(), create_nli("onnx"))
    first = sensitivity(PAIRS, scorer, keep)
    assert first[0].total == len(PAIRS)
    assert first[0].lower == len(PAIRS)
    lines = keep.read_text("utf-8").splitlines()
    keep.write_text("\n".join(lines[:2]) + "\n", "utf-8")
    assert sensitivity(PAIRS, scorer, keep) == first
    assert sorted(keep.read_text("utf-8").splitlines()) == sorted(lines)


def test_the_cost_is_measured_alone_and_in_a_batch() -> None:
    found = cost(graph_answers(10), singly=2)
    assert found["answers in the batch"] == 3
    assert found["check alone, p50 ms"] > 0
    assert found["in the batch: check, ms an answer"] > 0
