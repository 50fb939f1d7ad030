"""``guardrail kg``: load, query and count knowledge graphs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from guardrail.commands.figures import json_line
from guardrail.commands.options import AsJson, Graph
from guardrail.commands.setup import configured_graph

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
    as_json: AsJson = False,
) -> None:
    """Import a file into an on-disk graph, streaming.

    Prints {source, target, triples, added, skipped, seconds}: a table on a terminal, else JSON.
    """
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
    _show(report, as_json=as_json or not sys.stdout.isatty())


@app.command()
def query(
    sparql: Annotated[str, typer.Argument(help="SPARQL, or - to read it from stdin.")],
    kg: Graph = None,
    as_json: AsJson = False,
) -> None:
    """Run a SELECT, ASK or CONSTRUCT query.

    The prefixes of an embedded graph's profile (wd, wdt, rdfs, …) need not be declared. Prints a
    table on a terminal, tab-separated lines into a pipe or file, and with --json an object per row.
    """
    result = configured_graph(kg).query(sys.stdin.read() if sparql == "-" else sparql)
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
    cells = [["" if term is None else term.value for term in row] for row in result.rows]
    if not sys.stdout.isatty():
        for line in (result.variables, *cells):
            typer.echo("\t".join(" ".join(cell.split()) for cell in line))
        return
    table = Table(box=None, pad_edge=False)
    for name in result.variables:
        table.add_column(name, overflow="fold")
    for line in cells:
        table.add_row(*map(escape, line))
    Console().print(table)


@app.command()
def stats(kg: Graph = None, as_json: AsJson = False) -> None:
    """Count triples, entities and properties."""
    _show(configured_graph(kg).stats(), as_json=as_json)


def _show(counts: BaseModel, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json_line(counts.model_dump(mode="json")))
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in counts.model_dump().items():
        table.add_row(name, f"{value:,}" if isinstance(value, int) else str(value))
    Console().print(table)
