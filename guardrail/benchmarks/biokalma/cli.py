"""``guardrail bench biokalma``: build questions, run models, score answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from guardrail.benchmarks.biokalma.scoring import ScoreRow, report, score_rows
from guardrail.errors import InputError

__all__ = ["app"]

app = typer.Typer(
    help="BioKaLMA: build questions from any graph, run models on them, score their citations.",
    no_args_is_help=True,
    add_completion=False,
)

Input = Annotated[str, typer.Option("--input", "-i", metavar="FILE|-", help="JSON lines to read.")]


@app.command()
def score(
    input: Input = "-",
    judge: Annotated[
        bool, typer.Option("--judge/--no-judge", help="Also measure alignment by the NLI judge.")
    ] = False,
) -> None:
    """Score answers with KaLMA's citation metrics.

    Reads JSON lines {id, marked, graph: [[entity, property, value], …], minimum: [[…], …]}:
    the answer with its markers, the retrieved triples, and the triples a full answer needs.
    Prints one JSON object {answers, citations, micro: {correctness, precision, recall, f1},
    macro: {precision, recall, f1}, alignment_containment, alignment, reasons, errors}; all
    values are shares in [0, 1], null with a reason where there is nothing to average over.
    Lines that cannot be read are listed in errors and left out.
    """
    rows: list[ScoreRow] = []
    errors: list[str] = []
    for number, line in enumerate(_lines(input), start=1):
        if not line.strip():
            continue
        try:
            rows.append(ScoreRow.model_validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            errors.append(f"line {number}: {place + ': ' if place else ''}{first['msg']}")
    nli: Any = None
    if judge:
        from judges.registry import create_nli

        nli = create_nli("onnx")
    result: dict[str, Any] = {**report(score_rows(rows, nli)).model_dump(), "errors": errors}
    typer.echo(json.dumps(result, ensure_ascii=False, indent=2, allow_nan=False))


def _lines(source: str) -> list[str]:
    try:
        if source == "-":
            return sys.stdin.read().splitlines()
        return Path(source).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror}") from error
