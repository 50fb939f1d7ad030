"""A group of commands whose modules are imported on use."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

__all__ = ["LazyCommand", "LazyGroup"]


class LazyCommand(NamedTuple):
    """A command and its line in the list of commands.

    Attributes:
        place: ``module:name`` of a function, or of a ``typer.Typer`` with its own commands.
        summary: One line.
    """

    place: str
    summary: str


class LazyGroup(TyperGroup):
    """Commands by name, in ``lazy`` of a subclass. Listing them imports no module."""

    lazy: Mapping[str, LazyCommand] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the table."""
        return list(self.lazy)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None if it does not exist."""
        found = self.lazy.get(cmd_name)
        if found is None:
            return None
        module, _, name = found.place.partition(":")
        target = getattr(import_module(module), name)
        if not isinstance(target, typer.Typer):
            app = typer.Typer()
            app.command(cmd_name)(target)
            target = app
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
            formatter.write_dl([(name, command.summary) for name, command in self.lazy.items()])
