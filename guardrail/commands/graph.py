"""``guardrail kg``: load, query and count knowledge graphs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from guardrail.commands.options import AsJson, Graph, configured_graph
from guardrail.core.errors import InputError
from guardrail.lines.rows import json_line

if TYPE_CHECKING:
    from kg import KnowledgeGraph

__all__ = ["app"]

app = typer.Typer(help="Load, query and count knowledge graphs.", no_args_is_help=True)


@app.command()
def load(
    file: Annotated[
        Path,
        typer.Argument(
            help="N-Triples, Turtle or RDF/XML, plain or .gz/.bz2; a Wikidata truthy dump; a table "
            "(CSV, TSV, JSON lines) with --subject; or JSON lines of people."
        ),
    ],
    kg: Annotated[Path, typer.Option("--kg", metavar="PATH", help="Directory of the graph.")],
    profile: Annotated[
        str | None,
        typer.Option(help="Vocabulary profile: a name or a TOML file; kept with the graph."),
    ] = None,
    subject: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Of a table: the column of the ids.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Of a table: the column of the names.")
    ] = None,
    link: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN[=TABLE]",
            help="Of a table: a column of ids of entities, of another table where it is named.",
        ),
    ] = None,
    languages: Annotated[
        str | None, typer.Option(metavar="en,de", help="Of a Wikidata dump: languages to keep.")
    ] = None,
    properties: Annotated[
        str | None, typer.Option(metavar="P31,P19", help="Of a dump: properties to keep.")
    ] = None,
    classes: Annotated[
        str | None, typer.Option(metavar="Q5", help="Of a dump: classes of entities to keep.")
    ] = None,
    skip_invalid: Annotated[
        bool, typer.Option(help="Leave out invalid statements, and count them as skipped.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Import a file into an on-disk graph, streaming.

    A load that fails or is interrupted leaves the graph as it was.
    Prints {source, target, triples, added, skipped, unmatched, seconds, peak_mb, rate}: a table on
    a terminal, else JSON; rate is triples per second, unmatched an id of each ``--link`` column
    that is no row of the graph yet.
    """
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    from kg import Selection, TableColumns, load_graph
    from kg.reading import table_name

    if not file.is_file():
        raise InputError(f"cannot read {file}: there is no such file")
    if subject is None and (label is not None or link):
        raise InputError("--label and --link speak of a table; name the column of its ids too")
    table = None
    if subject is not None:
        own = table_name(file)
        pairs = (item.partition("=") for item in link or ())
        links = {column: other or own for column, _, other in pairs}
        table = TableColumns(subject=subject, label=label, name=own, links=links)
    with Progress(
        "loading", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), disable=not sys.stderr.isatty(),
    ) as progress:  # fmt: skip
        task = progress.add_task("load", total=None)
        report = load_graph(
            file,
            kg,
            profile=profile,
            progress=lambda done, total: progress.update(task, completed=done, total=total),
            table=table,
            selection=Selection(
                languages=_parts(languages),
                properties=_parts(properties),
                classes=_parts(classes),
            ),
            skip_invalid=skip_invalid,
        )
    if not report.triples:
        raise InputError(f"{file} holds no triples; nothing was loaded")
    for column, node in report.unmatched.items():
        typer.echo(
            f"guardrail: column {column!r} names {node}, which is no row of the graph yet; load "
            f"its table, or name the right one with --link {column}=TABLE",
            err=True,
        )
    _show(report, as_json=as_json or not sys.stdout.isatty())


def _parts(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


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
    graph = configured_graph(kg)
    if len(_graphs(graph)) > 1:
        raise InputError(f"{graph.name} is several graphs; name the one to query with --kg")
    result = _own(graph, "query")(_from_stdin() if sparql == "-" else sparql)
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
    """Count triples, entities and properties, of several graphs one after another."""
    for graph in _graphs(configured_graph(kg)):
        _show(_own(graph, "stats")(), as_json=as_json)


def _from_stdin() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise InputError("the query is not UTF-8 text") from error


def _graphs(graph: KnowledgeGraph) -> Sequence[KnowledgeGraph]:
    """The graphs that a location names."""
    from kg import FederatedGraph

    return graph.graphs if isinstance(graph, FederatedGraph) else (graph,)


def _own(graph: KnowledgeGraph, name: str) -> Callable[..., Any]:
    """What the embedded graph and endpoints can do, and a graph of another package perhaps."""
    method: Callable[..., Any] | None = getattr(graph, name, None)
    if method is None:
        raise InputError(f"the graph {graph.name} has no {name!r}: it is a back end of its own")
    return method


def _show(counts: BaseModel, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json_line(counts.model_dump(mode="json")))
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in counts.model_dump(exclude_none=True).items():
        if value != {}:
            table.add_row(name, _figure(value))
    Console().print(table)


def _figure(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
