"""How the program shows its results to a person in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from guardrail.markers.grammar import Marker, render_marker
from guardrail.markers.rendering import markers_of
from guardrail.types import (
    Category,
    GuardedAnswer,
    LinkedEntity,
    Score,
    Sentence,
    SpanKind,
)

__all__ = ["answer_panel", "entity_table", "ranking_table", "show_answer"]

SPAN_STYLE = {
    SpanKind.SUPPORTED: "green",
    SpanKind.NA: "yellow",
    SpanKind.CONTRADICTED: "red strike",
}
CATEGORY_STYLE = {
    Category.SUPPORTIVE: "green",
    Category.PARTIALLY_SUPPORTIVE: "yellow",
    Category.CONTRADICTORY: "red",
    Category.IRRELEVANT: "dim",
}
MATCHES_SHOWN = 4


def show_answer(console: Console, answer: GuardedAnswer) -> None:
    """Print the linked entities, the answer by support, and what was decided and why."""
    if answer.entities:
        console.print(entity_table(answer.entities))
    console.print(answer_panel(answer))


def entity_table(entities: Sequence[LinkedEntity]) -> Table:
    """Each linked entity with how it was found and which of how many candidates it was."""
    table = Table(title="Linked entities", title_justify="left", box=None, pad_edge=False)
    for heading in ("mention", "entity", "id", "found by", "candidates", "values in the question"):
        table.add_column(heading, overflow="fold")
    for link in entities:
        chosen = link.candidates[0] if link.candidates else None
        table.add_row(
            link.mention.text,
            link.entity.label,
            link.entity.id,
            link.matched,
            str(len(link.candidates)),
            ", ".join(chosen.matches[:MATCHES_SHOWN]) if chosen else "",
        )
    return table


def ranking_table(answers: Sequence[GuardedAnswer], rank_by: str = "overall") -> Table:
    """Candidates best first, with the numbers and reasons that ordered them.

    Args:
        answers: The candidates in their order.
        rank_by: The score that ordered them.
    """
    table = Table(title="Ranking", title_justify="left", box=None, pad_edge=False)
    scores = tuple(dict.fromkeys((rank_by, "overall")))
    for heading in ("#", *scores):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for place, answer in enumerate(answers, start=1):
        card = answer.scorecard
        held = {"overall": card.overall, **card.scores}
        table.add_row(
            str(place),
            *(format_score(held[name]) if name in held else "–" for name in scores),
            answer.reasons[0] if answer.reasons else answer.action.value,
        )
    return table


def answer_panel(answer: GuardedAnswer) -> Panel:
    """The answer with every phrase coloured by support, then scores, decision and problems."""
    parts: list[RenderableType] = [_coloured(answer)]
    legend = Text("supported", style="green")
    legend.append("  unsupported [NA]", style="yellow").append("  contradicted", style="red strike")
    parts += [Text(), legend, _score_line(answer)]
    told = {problem.message for problem in answer.errors}
    reasons = [reason for reason in answer.reasons if reason not in told]
    if reasons:
        parts.append(Text("why:"))
        parts += [Padding(Text(f"· {reason}"), (0, 0, 0, 2)) for reason in reasons]
    parts += [
        Text(f"problem in {problem.part}: {problem.message}", style="magenta")
        for problem in answer.errors
    ]
    return Panel(Group(*parts), title=Text(answer.action.value), title_align="left")


def format_score(score: Score) -> str:
    """Two decimals, or a dash where there is no value."""
    return "–" if score.value is None else f"{score.value:.2f}"


def _coloured(answer: GuardedAnswer) -> Text:
    text = Text()
    position = 0
    for sentence in answer.sentences:
        text.append(answer.text[position : sentence.start])
        _append_sentence(text, answer.text, sentence)
        position = sentence.end
    return text.append(answer.text[position:])


def _append_sentence(text: Text, whole: str, sentence: Sentence) -> None:
    marks: dict[int, list[Marker]] = {}
    for mark in markers_of(sentence):
        marks.setdefault(mark.at, []).append(mark)
    styles = {span.start: (span.end, SPAN_STYLE[span.kind]) for span in sentence.spans}
    ends = [end for end, _ in styles.values()]
    end, style = sentence.start, ""
    position = sentence.start
    for stop in sorted({*styles, *ends, *marks, sentence.end}):
        text.append(whole[position:stop], style=style if position < end else "")
        for mark in marks.get(stop, ()):
            bracket = render_marker(mark.citations, na=mark.na)
            text.append(f" {bracket}", style="dim yellow" if mark.na else "dim green")
        end, style = styles.get(stop, (end, style))
        position = stop
    if sentence.category is not None:
        text.append(
            f" ({sentence.category.value})", style="dim " + CATEGORY_STYLE[sentence.category]
        )


def _score_line(answer: GuardedAnswer) -> Text:
    line = Text("scores: ").append(
        f"overall {format_score(answer.scorecard.overall)}", style="bold"
    )
    for name, score in answer.scorecard.scores.items():
        line.append(f"  {name} {format_score(score)}")
    return line
