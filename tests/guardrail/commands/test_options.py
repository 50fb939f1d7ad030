"""Options in groups: help lists them one by one, and the command gets them as one object."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from guardrail.commands.options import grouped


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where it is."""

    room: Annotated[str, typer.Option("--room", help="Its name.")] = "hall"
    floor: Annotated[int, typer.Option("--floor", "-f", min=0)] = 1


def app() -> typer.Typer:
    made = typer.Typer()

    @made.command()
    @grouped
    def show(name: str, *, place: Place, loud: bool = False) -> None:
        """Tell where somebody is."""
        typer.echo(f"{name} {place.room} {place.floor} {loud}")

    return made


def test_a_group_stands_for_its_options() -> None:
    told = CliRunner().invoke(app(), ["Ada", "--room", "attic", "-f", "3", "--loud"])
    assert told.output == "Ada attic 3 True\n"
    assert CliRunner().invoke(app(), ["Ada"]).output == "Ada hall 1 False\n"


def test_help_lists_the_options_of_a_group_in_their_place() -> None:
    told = CliRunner().invoke(app(), ["--help"]).output
    assert told.index("--room") < told.index("--floor") < told.index("--loud")
    assert "--place" not in told


def test_an_option_of_a_group_is_checked() -> None:
    assert CliRunner().invoke(app(), ["Ada", "--floor", "-1"]).exit_code == 2
