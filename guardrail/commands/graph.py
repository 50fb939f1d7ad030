"""``guardrail kg``: load, query and count knowledge graphs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from guardrail.commands.options import AsJson, Graph

__all__ = ["app"]

app = typer.Typer(help="Load, query and count knowledge graphs.", no_args_is_help=True)


@app.command()
def load(
    file: Annotated[
        Path,
        typer.Argument(
            help="N-Triples, Turtle or RDF/XML, plain or .gz/.bz2; a Wikidata truthy dump; "
            "or JSON lines of people."
        ),
    ],
    kg: Annotated[Path, typer.Option("--kg", metavar="PATH", help="Directory of the graph.")],
    profile: Annotated[
        str | None, typer.Option(help="Vocabulary profile: a name or a TOML file.")
    ] = None,
) -> None:
    """Import a file into an on-disk graph, streaming."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    from kg import load_graph

    with Progress(
        "loading", BarColumn(), DownloadColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), disable=not sys.stderr.isatty(),
    ) as progress:  # fmt: skip
        task = progress.add_task("load", total=None)
        report = load_graph(
            file,
            kg,
            profile=profile,
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    typer.echo(report.model_dump_json())


@app.command()
def query(
    sparql: Annotated[str, typer.Argument(help="SPARQL, or - to read it from stdin.")],
    kg: Graph = None,
    as_json: AsJson = False,
) -> None:
    """Run a SELECT, ASK or CONSTRUCT query."""
    from kg import open_graph

    graph = open_graph(kg)
    result = graph.query(sys.stdin.read() if sparql == "-" else sparql)
    if as_json:
        for row in result.rows:
            record = {
                name: None if term is None else term.value
                for name, term in zip(result.variables, row, strict=True)
            }
            typer.echo(json.dumps(record, ensure_ascii=False))
        if result.boolean is not None:
            typer.echo(json.dumps(result.boolean))
        return
    if result.boolean is not None:
        typer.echo("yes" if result.boolean else "no")
        return
    table = Table(*result.variables, box=None, pad_edge=False)
    for row in result.rows:
        table.add_row(*("" if term is None else term.value for term in row))
    Console().print(table)


@app.command()
def stats(kg: Graph = None, as_json: AsJson = False) -> None:
    """Count triples, entities and properties."""
    from kg import open_graph

    counts = open_graph(kg).stats()
    if as_json:
        typer.echo(counts.model_dump_json())
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in counts.model_dump().items():
        table.add_row(name, f"{value:,}" if isinstance(value, int) else str(value))
    Console().print(table)
