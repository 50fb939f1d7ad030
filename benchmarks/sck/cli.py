"""``guardrail bench sck``: SCK's tables, intents, sensitivity and cost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.data import read_jsonl
from benchmarks.provenance import markdown, provenance
from benchmarks.sck.cost import cost, graph_answers, passage_answers
from benchmarks.sck.judged import JudgedScorer
from benchmarks.sck.rates import Pair, sensitivity
from benchmarks.sck.tables import labelled_answers, table_2, table_3, table_5
from judges.encoder import create_encoder
from judges.registry import create_nli
from judges.sck import Intent, SCKSettings
from judges.sck.report import load_weights

__all__ = ["app"]

ANSWERS = 1105
"""Answers whose cost is measured: 5 to warm up, 100 one by one, 1,000 in a batch."""
REQUESTS = Path(__file__).parents[1] / "requests.jsonl"
"""Requests such as "Compare …" and "Tell me about …", written by a person with their intents."""

Data = Annotated[Path, typer.Option(help="Folder that holds intent/, conner/ and statements/.")]
Rows = Annotated[int | None, typer.Option(min=2, help="At most so many rows.")]
Judge = Annotated[str, typer.Option(help="NLI judge of KG-AttrScore.")]

app = typer.Typer(add_completion=False, no_args_is_help=True, help="SCK: answer scoring.")


@app.command()
def tables(
    data: Data,
    rows: Rows = None,
    judge: Judge = "onnx",
    weights: Annotated[
        Path | None, typer.Option(help="Weights that training.sck_weights wrote.")
    ] = None,
) -> None:
    """Print Tables 2, 3 and 5 (average SCK by intent, on labelled answers)."""
    settings = SCKSettings() if weights is None else SCKSettings(load_weights(weights))
    answers = labelled_answers(data, rows)
    scorer = JudgedScorer(create_encoder(), create_nli(judge), settings)
    reports = scorer.score([answer.row for answer in answers])
    fixed, judged = provenance(), provenance(judge=judge)
    found = [table_2(fixed), table_3(fixed), table_5(answers, reports, judged)]
    typer.echo("\n\n".join(found))


@app.command()
def intents(data: Data, rows: Rows = None) -> None:
    """Print accuracy and F1 of the intent head, on questions and on requests."""
    questions = list(read_jsonl(data / "intent" / "nfcats_valid.jsonl.gz"))[:rows]
    requests = [json.loads(line) for line in REQUESTS.read_text("utf-8").splitlines()]
    encoder = create_encoder()
    found = {
        "NF-CATS questions": intent_quality(questions, encoder.intents),
        "requests": intent_quality(requests, encoder.intents),
    }
    lines: list[list[object]] = [
        [name, *(scores[name] for scores in found.values())] for name in next(iter(found.values()))
    ]
    typer.echo(markdown(provenance(), "SCK intents", ["measure", *found], lines))


@app.command()
def rates(
    data: Data,
    rows: Rows = None,
    judge: Judge = "onnx",
    keep: Annotated[Path | None, typer.Option(help="Measured rows; a stopped run goes on.")] = None,
) -> None:
    """Print how often a score falls when an answer is spoilt in one respect."""
    scorer = JudgedScorer(create_encoder(), create_nli(judge))
    found = sensitivity(_pairs(data, "nq")[:rows], scorer, keep)
    lines: list[list[object]] = [
        [rate.name.strip(), rate.lower, rate.total, rate.lower / max(1, rate.total), rate.target]
        for rate in found
    ]
    head = ["spoilt: score that must fall", "falls", "pairs", "share", "target"]
    typer.echo(markdown(provenance(judge=judge), "SCK sensitivity", head, lines))


@app.command(name="cost")
def costs(data: Data, rows: Rows = None) -> None:
    """Print what SCK adds to the time of a check, on the graph and with passages."""
    files = ("nq", "wow_seen", "wow_unseen")
    passages = [pair for name in files for pair in _pairs(data, name)]
    lines: list[list[object]] = [
        [name, what, value]
        for name, requests in (
            ("graph", graph_answers(rows or ANSWERS)),
            ("passage", passage_answers(passages, rows or ANSWERS)),
        )
        for what, value in cost(requests).items()
    ]
    head = ["evidence", "measure", "value"]
    typer.echo(markdown(provenance(judge="onnx"), "Cost of SCK", head, lines))


def intent_quality(
    rows: Sequence[Mapping[str, str]],
    classify: Callable[[Sequence[str]], list[dict[str, float]]],
) -> dict[str, float]:
    """Macro-F1 and accuracy over the intents, F1 of each intent, and questions a second.

    Args:
        rows: ``question`` and ``category`` of each row.
        classify: Probability of each intent for n questions.
    """
    truth = [row["category"].lower() for row in rows]
    started = time.perf_counter()
    found = [
        max(item, key=item.__getitem__) for item in classify([row["question"] for row in rows])
    ]
    seconds = time.perf_counter() - started
    scores = {}
    for intent in Intent:
        hits = sum(a == b == intent for a, b in zip(truth, found, strict=True))
        named = truth.count(intent) + found.count(intent)
        scores[f"F1 {intent}"] = 2 * hits / named if named else 0.0
    accuracy = sum(a == b for a, b in zip(truth, found, strict=True)) / len(truth)
    macro = sum(scores.values()) / len(scores)
    speed = len(rows) / seconds
    return {"macro-F1": macro, "accuracy": accuracy, **scores, "questions a second": speed}


def _pairs(data: Path, name: str) -> list[Pair]:
    rows = read_jsonl(data / "conner" / f"{name}.jsonl.gz")
    return [Pair(row["query"], row["knowledge"]) for row in rows]
