"""Options that several commands share, spelled and explained once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AsJson",
    "Config",
    "Graph",
    "Input",
    "JudgeName",
    "ModelJudgeName",
    "Output",
    "Passages",
    "PolicyName",
    "StrictnessName",
]

Input = Annotated[str, typer.Option("--input", "-i", metavar="FILE|-", help="JSON lines to read.")]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE|-", help="Where the JSON lines go.")
]
Graph = Annotated[
    str | None,
    typer.Option(
        "--kg",
        metavar="PATH|URL",
        help="On-disk graph, RDF file or SPARQL endpoint; that of the settings unless given, else "
        "the shipped people graph.",
    ),
]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings in TOML.", dir_okay=False)
]
JUDGES = "onnx (shipped, default), hf:MODEL, transformers:MODEL, t5-true:MODEL or chat:MODEL"
JudgeName = Annotated[
    str | None,
    typer.Option("--judge", metavar="NAME", help=f"{JUDGES}; none for exact evidence alone."),
]
ModelJudgeName = Annotated[str | None, typer.Option("--judge", metavar="NAME", help=f"{JUDGES}.")]
PolicyName = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="annotate, strict, strict-correct or best-of-n; that of the settings unless given, "
        "else annotate (serve: strict).",
    ),
]
StrictnessName = Annotated[
    str | None,
    typer.Option(
        "--strictness",
        metavar="NAME",
        help="How sure the judge must be: lenient, balanced or strict; that of the settings unless "
        "given, else balanced.",
    ),
]
Passages = Annotated[
    list[Path] | None,
    typer.Option(
        "--passage",
        metavar="FILE",
        help="A file that the answers are judged by in place of the graph: text, Markdown, PDF, "
        "HTML or DOCX, a passage for each paragraph; CSV, TSV or JSON lines, a fact for each cell. "
        "May be given several times.",
        dir_okay=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON also on a terminal.")]
