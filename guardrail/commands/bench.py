"""``guardrail bench``: build and run the papers' benchmarks."""

from __future__ import annotations

import typer

from guardrail.benchmarks.biokalma.cli import app as biokalma
from guardrail.benchmarks.caqa.cli import app as caqa

__all__ = ["app"]

app = typer.Typer(help="Build and run the papers' benchmarks.", no_args_is_help=True)
app.add_typer(biokalma, name="biokalma", help="KaLMA: citations, alignment, [NA].")
app.add_typer(caqa, name="caqa", help="CAQA: four categories, four complexities.")
