"""``guardrail kg``: load, query and count knowledge graphs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import BaseModel

from guardrail.commands.lines import telling
from guardrail.commands.options import AsJson, Graph, arg, build_config, opt
from guardrail.commands.render import print_table
from guardrail.core.errors import ConfigError, InputError
from guardrail.lines import json_line

if TYPE_CHECKING:
    from kg import KnowledgeGraph

app = typer.Typer(help="Load, query and count knowledge graphs.", no_args_is_help=True)


@app.command()
def load(
    file: Annotated[
        Path,
        arg(
            "N-Triples, Turtle or RDF/XML, plain or .gz/.bz2; a Wikidata truthy dump; or a "
            "table (CSV, TSV, JSON lines) with --subject."
        ),
    ],
    kg: Annotated[Path, opt("--kg", "Directory of the graph.", "PATH")],
    profile: Annotated[
        str | None, opt("", "Vocabulary profile, a name or a TOML file; stored with the graph.")
    ] = None,
    subject: Annotated[str | None, opt("", "Of a table: the column of the ids.", "COLUMN")] = None,
    label: Annotated[str | None, opt("", "Of a table: the column of the names.", "COLUMN")] = None,
    link: Annotated[
        list[str] | None,
        opt(
            "",
            "Of a table: a column of entity ids, of another table if that is named.",
            "COLUMN[=TABLE]",
        ),
    ] = None,
    languages: Annotated[
        str | None, opt("", "Of a Wikidata dump: languages to keep.", "en,de")
    ] = None,
    properties: Annotated[str | None, opt("", "Of a dump: properties to keep.", "P31,P19")] = None,
    classes: Annotated[str | None, opt("", "Of a dump: classes of entities to keep.", "Q5")] = None,
    skip_invalid: Annotated[bool, opt("", "Skip and count invalid statements.")] = False,
    as_json: AsJson = False,
) -> None:
    """Import a file into an on-disk graph, streaming.

    A load that fails or is interrupted leaves the graph as it was.
    Prints {source, target, triples, added, skipped, unmatched, seconds, peak_mb, rate}: a table on
    a terminal, else JSON; rate is triples per second, unmatched an id of each --link column without
    a row in the graph yet.
    """
    from kg import Selection, TableColumns, load_graph
    from kg.tables import table_name

    if not file.is_file():
        raise InputError(f"cannot read {file}: there is no such file")
    if subject is None and (label is not None or link):
        raise InputError("--label and --link are for tables; name the column of the ids too")
    table = None
    if subject is not None:
        own = table_name(file)
        pairs = (item.partition("=") for item in link or ())
        links = {column: other or own for column, _, other in pairs}
        table = TableColumns(subject=subject, label=label, name=own, links=links)

    def parts(text: str | None) -> tuple[str, ...]:
        return tuple(part.strip() for part in (text or "").split(",") if part.strip())

    with telling() as tell:
        report = load_graph(
            file,
            kg,
            profile=profile,
            progress=lambda done, total: tell("loading", done, total),
            table=table,
            selection=Selection(
                languages=parts(languages), properties=parts(properties), classes=parts(classes)
            ),
            skip_invalid=skip_invalid,
        )
    if not report.triples:
        raise InputError(f"{file} holds no triples; nothing was loaded")
    for column, node in report.unmatched.items():
        typer.echo(
            f"guardrail: column {column!r} names {node}, which is not in the graph yet; load its "
            f"table, or name the right one with --link {column}=TABLE",
            err=True,
        )
    _show(report, as_json=as_json or not sys.stdout.isatty())


@app.command()
def query(
    sparql: Annotated[str, arg("SPARQL, or - to read it from stdin.")],
    kg: Graph = None,
    as_json: AsJson = False,
) -> None:
    """Run a SELECT, ASK or CONSTRUCT query.

    Prefixes of an embedded graph's profile (wd, wdt, rdfs, …) need not be declared. Prints a
    table on a terminal, tab-separated lines into a pipe or file, and with --json an object per row.
    """
    graph, *others = _graphs(kg)
    if others:
        raise InputError("the location is several graphs; name the one to query with --kg")
    if sparql == "-":
        try:
            sparql = sys.stdin.read()
        except UnicodeDecodeError as error:
            raise InputError("the query is not UTF-8 text") from error
    result = _own(graph, "query")(sparql)
    if result.boolean is not None:
        typer.echo(json.dumps(result.boolean) if as_json else "yes" if result.boolean else "no")
        return
    if as_json:
        for row in result.rows:
            cells = zip(result.variables, row, strict=True)
            typer.echo(json_line({name: term and term.value for name, term in cells}))
        return
    rows = [["" if term is None else term.value for term in row] for row in result.rows]
    if sys.stdout.isatty():
        print_table(result.variables, rows)
    else:
        for line in (result.variables, *rows):
            typer.echo("\t".join(" ".join(cell.split()) for cell in line))


@app.command()
def stats(kg: Graph = None, as_json: AsJson = False) -> None:
    """Count triples, entities and properties, of several graphs one after another."""
    for graph in _graphs(kg):
        _show(_own(graph, "stats")(), as_json=as_json)


def _graphs(location: str | None) -> Sequence[KnowledgeGraph]:
    """The graphs of ``--kg``, else of the environment, else the shipped one."""
    from kg import FederatedGraph, open_graphs

    settings = build_config(kg=location).graph
    if settings.location == "none":
        raise ConfigError("the settings name no graph (none); give one with --kg")
    found = open_graphs(settings.location, profile=settings.profile, settings=settings.endpoint)
    return found.graphs if isinstance(found, FederatedGraph) else (found,)


def _own(graph: KnowledgeGraph, name: str) -> Callable[..., Any]:
    """A method of the embedded graph and of endpoints, which other back ends may lack."""
    method: Callable[..., Any] | None = getattr(graph, name, None)
    if method is None:
        raise InputError(f"the back end of the graph {graph.name} has no {name!r}")
    return method


def _show(counts: BaseModel, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json_line(counts.model_dump(mode="json")))
        return
    found = counts.model_dump(exclude_none=True).items()
    print_table(("", ""), [(name, _figure(value)) for name, value in found if value != {}])


def _figure(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
