"""``guardrail demo``: answers about an invented company, judged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from guardrail.company import QUESTION, company_graph, handbook, recorded_answers
from guardrail.core.errors import ModelError

if TYPE_CHECKING:
    from guardrail.core.types import Evidence, GuardedAnswer
    from guardrail.guard import Guardrail

__all__ = ["demo"]

SAMPLES = 3


def demo(
    question: Annotated[
        str | None, typer.Argument(help="Another question about the company, with --live.")
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Sample answers from the endpoint of OPENAI_BASE_URL and OPENAI_MODEL."
        ),
    ] = False,
) -> None:
    """See three answers about an invented company judged, ranked, filtered and corrected.

    The evidence is a small graph and a handbook that come with the package. The answers are
    recorded texts, unless --live samples them from a model; the verdicts are made now.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.panel import Panel
    from rich.text import Text

    from chains.rendering import MarkerStyle, render
    from guardrail.commands.render import show_answer, show_ranking
    from guardrail.core.types import Triple
    from guardrail.core.types.answers import CheckRequest
    from guardrail.guard import Guardrail

    if question is not None and not live:
        raise typer.BadParameter("the recorded answers are to one question; add --live")
    question = question or QUESTION
    console = Console()
    with Guardrail(graph=company_graph()) as guard:
        evidence = (*guard.retrieve(question).evidence, *handbook())
        facts = sum(isinstance(item, Triple) for item in evidence)
        source = "sampled from a model now" if live else "recorded (written down, not sampled)"
        console.rule("[bold]Halden Cycles, an invented maker of electric bicycles[/bold]")
        console.print(f"[bold]Question[/bold]  {escape(question)}")
        console.print(
            f"[bold]Evidence[/bold]  {facts} facts of the company's graph, "
            f"{len(evidence) - facts} sections of its handbook"
        )
        console.print(f"[bold]Answers[/bold]   {source}; every verdict below is made now\n")
        answers = _sampled(guard, question, evidence) if live else recorded_answers()

        console.rule("1. Every answer next to its evidence, best first", align="left")
        show_ranking(console, guard.rank(question, answers, evidence=evidence, policy="annotate"))
        console.rule("2. What a user sees under the policy 'strict', with notes", align="left")
        requests = [
            CheckRequest(question=question, answer=answer, evidence=evidence) for answer in answers
        ]
        guarded = guard.check_batch(requests, policy="strict")
        for place, item in enumerate(guarded, start=1):
            title = f"answer {place}: {item.action.value}"
            text = Text(render(item, MarkerStyle.FOOTNOTES).text)
            console.print(Panel(text, title=title, title_align="left", border_style="dim"))
        console.rule("3. The first answer under 'strict-correct'", align="left")
        show_answer(
            console,
            guard.check(question, answers[0], evidence=evidence, policy="strict-correct"),
        )
        console.rule("4. One row of the score log", align="left")
        console.print_json(data=_log_row(guarded[0]))
    console.print(
        "\nNext: [bold]guardrail check QUESTION ANSWER --passage FILE[/bold] judges an answer by "
        "your own text; continue with docs/quick-start.md."
    )


def _log_row(answer: GuardedAnswer) -> dict[str, object]:
    """An answer in the score log, without the long columns."""
    from guardrail.log.entries import record_of

    record = record_of(answer)
    scores = {"overall": answer.scorecard.overall, **answer.scorecard.scores}
    return {
        "id": record.id,
        "created": record.created.isoformat(timespec="seconds"),
        "question": answer.question,
        "action": answer.action.value,
        "reasons": answer.reasons,
        "scores": {name: score.value for name, score in scores.items()},
        "versions": dict(answer.versions),
    }


def _sampled(guard: Guardrail, question: str, evidence: Sequence[Evidence]) -> list[str]:
    """Answers of the configured endpoint.

    Raises:
        ConfigError: No endpoint is configured.
        ModelError: The model cannot be reached or refuses.
    """
    ranked = guard.ask_ranked(question, n=SAMPLES, evidence=evidence, policy="annotate")
    ranked.sort(key=lambda item: item.index)
    if found := [text for item in ranked if (text := (item.original or item.text).strip())]:
        return found
    problems = dict.fromkeys(error.message for answer in ranked for error in answer.errors)
    url = os.environ.get("OPENAI_BASE_URL")
    problem = "; ".join(problems) or f"{url or 'the configured model'} gave no answer"
    raise ModelError(problem if url else f"{problem}; or set OPENAI_BASE_URL")
