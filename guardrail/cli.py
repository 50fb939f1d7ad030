"""The ``guardrail`` program."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from guardrail.commands import answers, bench, bulk, demo, graph, judging, log, scoring, serving
from guardrail.errors import GuardrailError

__all__ = ["app", "main"]

app = typer.Typer(
    name="guardrail",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(demo.demo)
app.command()(answers.ask)
app.command()(answers.check)
app.command()(answers.rank)
app.command()(answers.link)
app.command()(judging.nli)
app.command()(judging.attribute)
app.command()(judging.intent)
app.command()(scoring.score)
app.command()(serving.serve)
app.command()(log.log)
app.command()(log.report)
app.command()(log.tune)
app.add_typer(graph.app, name="kg")
app.add_typer(bulk.app, name="bulk")
app.add_typer(bench.app, name="bench")


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kg-guardrail {version('kg-guardrail')}")
        raise typer.Exit


@app.callback()
def _program(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_tell_version, is_eager=True, help="Tell the version and stop."
        ),
    ] = False,
) -> None:
    """Ground answers of language models in a knowledge graph: cite, mark [NA], score, rank."""


def main() -> None:
    """Run the program; errors a user can act on are one line on stderr and exit status 1."""
    # Before numpy is loaded: one thread serves the parser best (guardrail.text.tagging).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        app()
    except GuardrailError as error:
        # What a library below says may run over many lines.
        typer.echo(f"guardrail: {' '.join(str(error).split())}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        # The reader went away (``guardrail check | head``): nothing more to say, and nothing
        # to flush into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
