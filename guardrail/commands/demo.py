"""``guardrail demo``: answers about an invented company judged, for a person to read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from guardrail.company import QUESTION, company_graph, handbook, recorded_answers

if TYPE_CHECKING:
    from rich.console import Console

    from guardrail.core.types import Evidence, GuardedAnswer
    from guardrail.guard import Guardrail

__all__ = ["demo"]

SAMPLES = 3


def demo(
    question: Annotated[
        str | None, typer.Argument(help="Another question on the company, with --live.")
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Sample the answers from the endpoint of OPENAI_BASE_URL and OPENAI_MODEL.",
        ),
    ] = False,
) -> None:
    """See three answers about an invented company judged, ranked, filtered and corrected.

    The evidence is a small graph and a handbook that come with the package. The answers are
    recorded texts, unless --live samples them from a model; the verdicts are made now.
    """
    from rich.console import Console

    from guardrail.guard import Guardrail

    if question is not None and not live:
        raise typer.BadParameter("the recorded answers are to one question; add --live")
    asked = question or QUESTION
    console = Console()
    with Guardrail(graph=company_graph()) as guard:
        evidence = (*guard.retrieve(asked).evidence, *handbook())
        _introduce(console, asked, evidence, live=live)
        answers = _sampled(guard, asked, evidence) if live else recorded_answers()
        _show(console, guard, asked, answers, evidence)


def _introduce(
    console: Console, question: str, evidence: Sequence[Evidence], *, live: bool
) -> None:
    from rich.markup import escape

    from guardrail.core.types import Triple

    facts = sum(isinstance(item, Triple) for item in evidence)
    source = "sampled from a model now" if live else "recorded (written down, not sampled)"
    console.rule("[bold]Halden Cycles, an invented maker of electric bicycles[/bold]")
    console.print(f"[bold]Question[/bold]  {escape(question)}")
    console.print(
        f"[bold]Evidence[/bold]  {facts} facts of the company's graph, "
        f"{len(evidence) - facts} sections of its handbook"
    )
    console.print(f"[bold]Answers[/bold]   {source}; every verdict below is made now\n")


def _show(
    console: Console,
    guard: Guardrail,
    question: str,
    answers: Sequence[str],
    evidence: Sequence[Evidence],
) -> None:
    from rich.panel import Panel
    from rich.text import Text

    from chains.rendering import MarkerStyle, render
    from guardrail.commands.render import show_answer, show_ranking
    from guardrail.requests import CheckRequest

    console.rule("1. Every answer beside its evidence, best first", align="left")
    show_ranking(console, guard.rank(question, answers, evidence=evidence, policy="annotate"))
    console.rule("2. What a user sees under the policy 'strict', with notes", align="left")
    requests = [
        CheckRequest(question=question, answer=answer, evidence=tuple(evidence))
        for answer in answers
    ]
    guarded = guard.check_batch(requests, policy="strict")
    for place, item in enumerate(guarded, start=1):
        seen = Text(render(item, MarkerStyle.FOOTNOTES).text)
        title = f"answer {place}: {item.action.value}"
        console.print(Panel(seen, title=title, title_align="left", border_style="dim"))
    console.rule("3. The first answer under 'strict-correct'", align="left")
    first = guard.check(question, answers[0], evidence=evidence, policy="strict-correct")
    show_answer(console, first)
    console.rule("4. One row of the score log", align="left")
    console.print_json(_log_row(guarded[0]))
    console.print(
        "\nNext: [bold]guardrail check QUESTION ANSWER --passage FILE[/bold] judges an answer by "
        "your own text; docs/quick-start.md goes on from here."
    )


def _log_row(answer: GuardedAnswer) -> str:
    """One answer as the score log keeps it, without the columns that are long."""
    import json
    import tempfile
    from pathlib import Path

    from guardrail.log.records import SQLiteLog

    with (
        tempfile.TemporaryDirectory() as folder,
        SQLiteLog(Path(folder) / "scores.sqlite") as log,
    ):
        log.write(answer)
        (record,) = log.latest(1)
    kept = record.answer
    scores = {"overall": kept.scorecard.overall, **kept.scorecard.scores}
    row = {
        "id": record.id,
        "created": record.created.isoformat(timespec="seconds"),
        "question": kept.question,
        "action": kept.action.value,
        "reasons": kept.reasons,
        "scores": {name: score.value for name, score in scores.items()},
        "versions": dict(kept.versions),
    }
    return json.dumps(row)


def _sampled(guard: Guardrail, question: str, evidence: Sequence[Evidence]) -> list[str]:
    """Answers of the configured endpoint.

    Raises:
        ConfigError: No endpoint is configured.
        ModelError: The model could not be reached or refused.
    """
    ranked = guard.ask_ranked(question, n=SAMPLES, evidence=evidence, policy="annotate")
    found = [
        (item.original or item.text).strip()
        for item in sorted(ranked, key=lambda entry: entry.index)
    ]
    if not any(found):
        from guardrail.core.errors import ModelError

        wrong = "; ".join(
            dict.fromkeys(error.message for answer in ranked for error in answer.errors)
        )
        where = os.environ.get("OPENAI_BASE_URL")
        wrong = wrong or f"no answer came from {where or 'the configured model'}"
        raise ModelError(wrong if where else f"{wrong}; or name an endpoint by OPENAI_BASE_URL")
    return [text for text in found if text]
