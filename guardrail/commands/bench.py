"""``guardrail bench``: the registry of the papers' benchmarks, which the repository holds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from guardrail.commands.lazily import LazyCommand, LazyGroup
from guardrail.core.errors import ConfigError

__all__ = ["app"]

_CHECKOUT = Path(__file__).parents[2]


class _Benchmarks(LazyGroup):
    lazy = {  # noqa: RUF012
        "biokalma": LazyCommand(
            "benchmarks.biokalma.cli:app", "KaLMA: citations, alignment, [NA]."
        ),
        "caqa": LazyCommand("benchmarks.caqa.cli:app", "CAQA: four categories, four complexities."),
        "sck": LazyCommand("benchmarks.sck.cli:app", "SCK: structure, content, knowledge."),
        "conner": LazyCommand("benchmarks.conner.cli:app", "CONNER: six perspectives."),
    }

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The benchmark's command, loaded now.

        Raises:
            ConfigError: The package is installed without its repository.
        """
        if not (_CHECKOUT / "benchmarks" / cmd_name).is_dir():
            raise ConfigError(
                "the benchmarks are in the repository, not in the wheel: get its source and run "
                f"pip install -e . there, then guardrail bench {cmd_name}"
            )
        if str(_CHECKOUT) not in sys.path:  # an editable install shows the packages alone
            sys.path.insert(0, str(_CHECKOUT))
        return super().get_command(ctx, cmd_name)


app = typer.Typer(cls=_Benchmarks, no_args_is_help=True)


@app.callback()
def _benchmarks() -> None:
    """Build and run the papers' benchmarks."""
