"""``guardrail demo``: the main job on the embedded defaults, for a person to read."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from guardrail.commands.options import Graph

__all__ = ["demo"]

QUESTION = (
    "How did Mary Shelley's parents, William Godwin and Mary Wollstonecraft, shape her as a writer?"
)
CANDIDATES = 5


def demo(
    question: Annotated[str, typer.Argument(help="A question over the graph.")] = QUESTION,
    n: Annotated[int, typer.Option("-n", min=1, max=16, help="Answers to sample.")] = CANDIDATES,
    kg: Graph = None,
) -> None:
    """Show the main job: ask, ground, cite, mark [NA] and rank.

    With the shipped graph and judge, and a local model.

    With OPENAI_API_KEY or OPENAI_BASE_URL set, that endpoint answers instead of the local model
    (OPENAI_MODEL names the model).
    """
    from guardrail.commands.render import answer_panel, entity_table, ranking_table
    from guardrail.commands.setup import build_guard
    from guardrail.policy import BEST_OF_N

    console = Console()
    # One round shows the candidates as they were sampled; nothing is generated again.
    policy = BEST_OF_N.changed(attempts=1, deadline_s=None)
    with build_guard(None, kg, None, None) as guard:
        console.print(f"[bold]Question[/bold]  {escape(question)}")
        remote = os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")
        console.print(
            f"[dim]sampling {n} answers from "
            f"{'the configured endpoint' if remote else 'the local model'} …[/dim]"
        )
        with console.status("sampling and judging"):
            ranked = guard.ask_ranked(question=question, n=n, policy=policy)
    best = ranked[0]
    if best.entities:
        console.print(entity_table(best.entities))
    console.print()
    console.print("Candidates as sampled, best first")
    for place, answer in enumerate(ranked, start=1):
        console.print(f"[bold]{place}[/bold]  {escape((answer.original or answer.text).strip())}")
        console.print()
    console.print(ranking_table(ranked, policy.rank_by))
    console.print()
    console.print("[bold]Winner[/bold]")
    console.print(answer_panel(best))
