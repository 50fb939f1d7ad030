"""The ``guardrail`` program."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from guardrail.core.errors import ConfigError, GuardrailError
from guardrail.core.secrets import redact

__all__ = ["app", "main"]

COMMANDS = {
    "demo": ("demo:demo", "See answers about an invented company judged."),
    "check": ("answers:check", "Check answers written elsewhere."),
    "explain": ("answers:explain", "Explain the verdict on each sentence of an answer."),
    "rank": ("answers:rank", "Rank several answers to one question, best first."),
    "ask": ("answers:ask", "Answer questions with a model, grounded in the graph."),
    "eval": ("evaluation:evaluate", "Judge a chatbot's answers, for CI."),
    "serve": ("serving:serve", "Serve an OpenAI-compatible gateway that guards answers."),
    "mcp": ("serving:mcp", "Serve the guardrail's tools to agents over MCP."),
    "doctor": ("doctor:doctor", "Check this installation and say what to fix."),
    "bulk": ("bulk:app", "Judge files and folders; judge a score log again."),
    "link": ("answers:link", "Link the entities that questions name or ask for."),
    "kg": ("graph:app", "Load, query and count knowledge graphs."),
    "log": ("log:app", "Search, export or back up a score log."),
    "report": ("log:report", "Make one HTML page of a score log."),
    "tune": ("tuning:tune", "Learn thresholds from labelled answers or feedback."),
    "nli": ("judging:nli", "Judge whether premises entail hypotheses."),
    "attribute": ("judging:attribute", "Judge how evidence supports answers (CAQA)."),
    "intent": ("judging:intent", "Classify what questions want."),
    "score": ("judging:score", "Score answers with SCK and CONNER."),
    "bench": ("guardrail.cli:bench", "Build and run the papers' benchmarks."),
}
"""Where each command is in ``guardrail.commands``, and its line in the list of commands."""


class _Command(TyperCommand):
    """A command that says how to give an option several values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments; in ``--evidence A B`` B would be something else, such as a question."""
        several = {name for param in self.params if param.multiple for name in param.opts}
        pairs = [(name, args[n + 2]) for n, name in enumerate(args[:-2]) if name in several]
        ctx.allow_extra_args |= bool(pairs)
        rest = super().parse_args(ctx, args)
        for name, value in pairs:
            if value in rest or (Path(value).is_file() and value in self._texts(ctx)):
                ctx.fail(f"{name} takes one value; repeat it: {name} A {name} B")
        if pairs and rest:
            ctx.fail(f"there are {len(rest)} arguments too many")
        return rest

    def _texts(self, ctx: Any) -> list[str]:
        """The given texts, such as a question; arguments for files have a metavar."""
        found: list[str] = []
        for param in self.params:
            value = ctx.params.get(param.name)
            if param.param_type_name == "argument" and param.metavar is None and value:
                found += [value] if isinstance(value, str) else value
        return found


class _LazyGroup(TyperGroup):
    """Commands whose modules are imported on use. Listing them imports no module."""

    lazy: Mapping[str, tuple[str, str]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the table."""
        return list(self.lazy)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None if it does not exist."""
        if cmd_name not in self.lazy:
            return None
        module, _, name = self.lazy[cmd_name][0].partition(":")
        home = module if "." in module else f"guardrail.commands.{module}"
        target = getattr(import_module(home), name)
        if not isinstance(target, typer.Typer):
            app = typer.Typer()
            app.command(cmd_name)(target)
            target = app
        for info in target.registered_commands:
            info.cls = _Command
        target._add_completion = False  # only the program itself has completion
        target.rich_markup_mode = None
        command = typer.main.get_command(target)
        command.name = cmd_name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the called command; for a wrong name, suggest the nearest."""
        if args and args[0] not in self.lazy:
            near = get_close_matches(args[0], self.lazy, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "guardrail --help lists all"
            ctx.fail(f"there is no command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands with their summaries."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self.lazy.items()])


class _Commands(_LazyGroup):
    lazy = COMMANDS


class _Benchmarks(_LazyGroup):
    lazy: Mapping[str, tuple[str, str]] = {
        "biokalma": ("benchmarks.biokalma.cli:app", "KaLMA: citations, alignment, [NA]."),
        "caqa": ("benchmarks.caqa.cli:app", "CAQA: four categories, four complexities."),
        "sck": ("benchmarks.sck.cli:app", "SCK: structure, content, knowledge."),
        "conner": ("benchmarks.conner.cli:app", "CONNER: six perspectives."),
    }

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The benchmark's command, loaded now.

        Raises:
            ConfigError: The package is installed without its repository.
        """
        checkout = Path(__file__).parents[1]
        if not (checkout / "benchmarks" / cmd_name).is_dir():
            raise ConfigError(
                "the benchmarks are in the repository, not in the wheel: get its source and run "
                f"pip install -e . there, then guardrail bench {cmd_name}"
            )
        if str(checkout) not in sys.path:  # an editable install shows the packages alone
            sys.path.insert(0, str(checkout))
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    cls=_Commands,
    name="guardrail",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
bench = typer.Typer(cls=_Benchmarks, no_args_is_help=True)


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


@bench.callback()
def _benchmarks() -> None:
    """Build and run the papers' benchmarks."""


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
        _exit(error)
    except OSError as error:  # a reader that is gone (check | head), a full disk, too long a name
        # Python's flush at exit would fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            sys.exit(141)
        _exit(error)


def _exit(error: Exception) -> None:
    """Exit with one line, even if a library's message has several."""
    typer.echo(f"guardrail: {redact(' '.join(str(error).split()))}", err=True)
    sys.exit(1)


def _print_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print the traceback of an internal error, without credentials."""
    sys.stderr.write(redact("".join(traceback.format_exception(kind, error, trace))))
