"""SCK's sensitivity and cost: does the score fall when an answer is spoilt in one known way?

``python -m benchmarks.sck --data DIR [--rows N] [--what rates]`` reads
``intent/nfcats_valid`` and ``conner/*`` under DIR; the cost is told on the shipped graph too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.data import errors_told, read_jsonl
from benchmarks.sck_cost import cost, graph_answers, passage_answers
from benchmarks.sck_rates import Pair, sensitivity
from judges.encoder import create_encoder
from judges.registry import create_nli
from judges.sck import Intent, SCKScorer

__all__ = ["app", "main"]

ANSWERS = 1105
"""Answers whose cost is measured: 5 to warm up, 100 one by one, 1,000 in a batch."""

app = typer.Typer(add_completion=False)


class Part(StrEnum):
    """What to measure."""

    INTENT = "intent"
    RATES = "rates"
    COST = "cost"


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="Folder that holds intent/ and conner/.")],
    rows: Annotated[int | None, typer.Option(min=2, help="At most so many rows.")] = None,
    what: Annotated[list[Part] | None, typer.Option(help="Only this; may be repeated.")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Rows of the rates are kept here, to go on after a stop.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print intent quality, the three rates, and the cost."""
    encoder = create_encoder()
    scorer = SCKScorer(encoder, create_nli("onnx"))
    asked = set(what or Part)
    result: dict[str, Any] = {}
    if Part.INTENT in asked:
        result |= intent_quality(data, encoder.intents, rows)
    pairs = _pairs(data, "nq")[:rows]
    if Part.RATES in asked:
        result["rates"] = [
            rate._asdict() | {"share": rate.lower / max(1, rate.total)}
            for rate in sensitivity(pairs, scorer, keep)
        ]
    if Part.COST in asked:
        passages = [*_pairs(data, "nq"), *_pairs(data, "wow_seen"), *_pairs(data, "wow_unseen")]
        result["cost"] = {
            f"{name}: {what}": value
            for name, requests in (
                ("graph", graph_answers(rows or ANSWERS)),
                ("passage", passage_answers(passages, rows or ANSWERS)),
            )
            for what, value in cost(requests).items()
        }
    if as_json:
        typer.echo(json.dumps(result))
        return
    for name, value in result.get("intent", {}).items():
        typer.echo(f"{name:28} {value:.4f}")
    for line in result.get("rates", ()):
        typer.echo(
            f"{line['name']:44} {line['lower']:4d} of {line['total']:4d}  {line['share']:.3f}  "
            f"(target {line['target']})"
        )
    for name, value in result.get("cost", {}).items():
        typer.echo(f"{name:56} {value:.2f}")


def intent_quality(
    data: Path, classify: Callable[[Sequence[str]], list[dict[str, float]]], rows: int | None
) -> dict[str, dict[str, float]]:
    """Accuracy and macro-F1 over all eight classes on the validation questions."""
    found = list(read_jsonl(data / "intent" / "nfcats_valid.jsonl.gz"))[:rows]
    truth = [row["category"].lower() for row in found]
    started = time.perf_counter()
    told = [
        max(item, key=item.__getitem__) for item in classify([row["question"] for row in found])
    ]
    seconds = time.perf_counter() - started
    scores = {}
    for intent in Intent:
        hits = sum(a == b == intent for a, b in zip(truth, told, strict=True))
        named = truth.count(intent) + told.count(intent)
        scores[f"f1 {intent}"] = 2 * hits / named if named else 0.0
    accuracy = sum(a == b for a, b in zip(truth, told, strict=True)) / len(truth)
    macro = sum(scores.values()) / len(scores)
    return {
        "intent": {
            "macro-F1": macro,
            "accuracy": accuracy,
            **scores,
            "questions a second": len(found) / seconds,
        }
    }


def _pairs(data: Path, name: str) -> list[Pair]:
    rows = read_jsonl(data / "conner" / f"{name}.jsonl.gz")
    return [Pair(row["query"], row["knowledge"]) for row in rows]


if __name__ == "__main__":
    with errors_told():
        app()
