"""The ``guardrail`` program."""

from __future__ import annotations

import os
import sys
import traceback
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Annotated

import typer

from guardrail.commands.lazily import LazyCommand, LazyGroup
from guardrail.core.errors import GuardrailError
from guardrail.core.secrets import redact

__all__ = ["app", "main"]

COMMANDS = "guardrail.commands"


class _Commands(LazyGroup):
    lazy = {  # noqa: RUF012
        "demo": LazyCommand(
            f"{COMMANDS}.demo:demo", "See answers about an invented company judged."
        ),
        "check": LazyCommand(f"{COMMANDS}.answers:check", "Check answers written elsewhere."),
        "explain": LazyCommand(
            f"{COMMANDS}.answers:explain", "Explain the verdict on each sentence of an answer."
        ),
        "rank": LazyCommand(
            f"{COMMANDS}.answers:rank", "Rank several answers to one question, best first."
        ),
        "ask": LazyCommand(
            f"{COMMANDS}.answers:ask", "Answer questions with a model, grounded in the graph."
        ),
        "eval": LazyCommand(
            f"{COMMANDS}.evaluation:evaluate", "Judge a chatbot's answers, for CI."
        ),
        "serve": LazyCommand(
            f"{COMMANDS}.serving:serve", "Serve an OpenAI-compatible gateway that guards answers."
        ),
        "mcp": LazyCommand(
            f"{COMMANDS}.serving:mcp", "Serve the guardrail's tools to agents over MCP."
        ),
        "doctor": LazyCommand(
            f"{COMMANDS}.doctor:doctor", "Check this installation and say what to fix."
        ),
        "bulk": LazyCommand(
            f"{COMMANDS}.bulk:app", "Judge files and folders; judge a score log again."
        ),
        "link": LazyCommand(
            f"{COMMANDS}.answers:link", "Link the entities that questions name or ask for."
        ),
        "kg": LazyCommand(f"{COMMANDS}.graph:app", "Load, query and count knowledge graphs."),
        "log": LazyCommand(f"{COMMANDS}.log:app", "Search, export or back up a score log."),
        "report": LazyCommand(f"{COMMANDS}.log:report", "Make one HTML page of a score log."),
        "tune": LazyCommand(
            f"{COMMANDS}.tuning:tune", "Learn thresholds from labelled answers or feedback."
        ),
        "nli": LazyCommand(f"{COMMANDS}.judging:nli", "Judge whether premises entail hypotheses."),
        "attribute": LazyCommand(
            f"{COMMANDS}.judging:attribute", "Judge how evidence supports answers (CAQA)."
        ),
        "intent": LazyCommand(f"{COMMANDS}.judging:intent", "Classify what questions want."),
        "score": LazyCommand(f"{COMMANDS}.judging:score", "Score answers with SCK and CONNER."),
        "bench": LazyCommand(f"{COMMANDS}.bench:app", "Build and run the papers' benchmarks."),
    }


app = typer.Typer(
    cls=_Commands,
    name="guardrail",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"kg-guardrail {version('kg-guardrail')}")
        raise typer.Exit


@app.callback()
def _program(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Ground answers of language models in a knowledge graph: cite, mark [NA], score, rank."""


def main() -> None:
    """Run the program; errors that a user can fix are one line on stderr and exit status 1."""
    sys.excepthook = _print_traceback
    # Before numpy is imported: the parser is fastest with one thread (guardrail.core.text.tagging).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the parent process
            nothing = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, nothing)
    if isinstance(sys.stdout, TextIOWrapper):  # an argument may contain bytes that are not text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # report what cannot be written here, not at exit
    except GuardrailError as error:
        _print_error(error)
        sys.exit(1)
    except BrokenPipeError:
        # The reader is gone (``guardrail check | head``).
        _discard_stdout()
        sys.exit(141)
    except OSError as error:
        # A full disk or a name that is too long.
        _discard_stdout()
        _print_error(error)
        sys.exit(1)


def _print_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print the traceback of an internal error, without credentials."""
    sys.stderr.write(redact("".join(traceback.format_exception(kind, error, trace))))


def _print_error(error: Exception) -> None:
    """One line, even if a library's message has several."""
    typer.echo(f"guardrail: {redact(' '.join(str(error).split()))}", err=True)


def _discard_stdout() -> None:
    """Redirect stdout to nowhere, so that Python's flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
