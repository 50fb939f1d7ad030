"""``guardrail demo``: answers about an invented company, judged."""

from __future__ import annotations


def demo() -> None:
    """See three answers about an invented company judged, ranked, filtered and corrected.

    The evidence is a small graph and a handbook that come with the package. The answers are
    recorded texts; the verdicts are made now.
    """
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    from chains.options import MarkerStyle
    from chains.rendering import render
    from guardrail.commands.render import show_answer, show_ranking
    from guardrail.company import QUESTION, company_graph, handbook, recorded_answers
    from guardrail.core.types import Triple
    from guardrail.core.types.answers import CheckRequest
    from guardrail.guard import Guardrail
    from guardrail.log.entries import record_of

    console = Console()
    with Guardrail(graph=company_graph()) as guard:
        evidence = (*guard.retrieve(QUESTION).evidence, *handbook())
        facts = sum(isinstance(item, Triple) for item in evidence)
        answers = recorded_answers()
        console.rule("[bold]Halden Cycles, an invented maker of electric bicycles[/bold]")
        console.print(
            f"[bold]Question[/bold]  {QUESTION}\n"
            f"[bold]Evidence[/bold]  {facts} facts of the company's graph, "
            f"{len(evidence) - facts} sections of its handbook\n"
            "[bold]Answers[/bold]   recorded (written down, not sampled); every verdict below is "
            "made now\n"
        )
        console.rule("1. Every answer next to its evidence, best first", align="left")
        show_ranking(console, guard.rank(QUESTION, answers, evidence=evidence, policy="annotate"))
        console.rule("2. What a user sees under the policy 'strict', with notes", align="left")
        requests = [
            CheckRequest(question=QUESTION, answer=answer, evidence=evidence) for answer in answers
        ]
        guarded = guard.check_batch(requests, policy="strict")
        for place, item in enumerate(guarded, start=1):
            title = f"answer {place}: {item.action.value}"
            text = Text(render(item, MarkerStyle.FOOTNOTES).text)
            console.print(Panel(text, title=title, title_align="left", border_style="dim"))
        console.rule("3. The first answer under 'strict-correct'", align="left")
        show_answer(
            console,
            guard.check(QUESTION, answers[0], evidence=evidence, policy="strict-correct"),
        )
        console.rule("4. One row of the score log", align="left")
        record, card = record_of(guarded[0]), guarded[0].scorecard
        scores = {"overall": card.overall, **card.scores}
        row = {  # without the long columns
            "id": record.id,
            "created": record.created.isoformat(timespec="seconds"),
            "question": QUESTION,
            "action": guarded[0].action.value,
            "reasons": guarded[0].reasons,
            "scores": {name: score.value for name, score in scores.items()},
            "versions": dict(guarded[0].versions),
        }
        console.print_json(data=row)
    console.print(
        "\nNext: [bold]guardrail check QUESTION ANSWER --passage FILE[/bold] judges an answer by "
        "your own text; continue with docs/quick-start.md."
    )
