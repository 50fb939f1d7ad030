"""How results look in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from guardrail.core.types import (
    Category,
    Citation,
    GuardedAnswer,
    LinkedEntity,
    Passage,
    Score,
    Sentence,
    SpanKind,
    Triple,
)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None
) -> None:
    """Print a table of text on stdout; all columns but the first are aligned right."""
    table = Table(title=title, box=None, pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def show_answer(console: Console, answer: GuardedAnswer) -> None:
    """Print the linked entities, the answer by support, and the decision with its reasons."""
    if answer.entities:
        console.print(entity_table(answer.entities))
    console.print(answer_panel(answer))


def show_ranking(console: Console, ranked: Sequence[GuardedAnswer]) -> None:
    """Print every answer next to its evidence, best first, with the reason for its rank."""
    for place, answer in enumerate(ranked, start=1):
        why = answer.reasons[0] if answer.reasons else answer.action.value
        console.print(
            Panel(
                Group(_sentences(answer), Text(), Text(why, style="dim")),
                title=Text(f"answer {answer.index + 1}: rank {place}"),
                title_align="left",
                border_style="green" if place == 1 else "dim",
            )
        )


def entity_table(entities: Sequence[LinkedEntity]) -> Table:
    """Each linked entity, how it was found, and the number of candidates."""
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
            ", ".join(chosen.matches[:4]) if chosen else "",
        )
    return table


def answer_panel(answer: GuardedAnswer) -> Panel:
    """The sentences next to their evidence, then scores, reasons and problems."""
    scores = Text("scores: ").append(f"overall {_score(answer.scorecard.overall)}", style="bold")
    for name, score in answer.scorecard.scores.items():
        scores.append(f"  {name} {_score(score)}")
    parts: list[RenderableType] = [_sentences(answer), Text(), scores]
    messages = {problem.message for problem in answer.errors}
    reasons = [reason for reason in answer.reasons if reason not in messages]
    if reasons:
        parts.append(Text("why:"))
        parts += [Padding(Text(f"· {reason}"), (0, 0, 0, 2)) for reason in reasons]
    parts += [
        Text(f"problem in {problem.part}: {problem.message}", style="magenta")
        for problem in answer.errors
    ]
    return Panel(Group(*parts), title=Text(answer.action.value), title_align="left")


def _score(score: Score) -> str:
    return "–" if score.value is None else f"{score.value:.2f}"


def _sentences(answer: GuardedAnswer) -> RenderableType:
    """Each sentence with its verdict and the statements for or against it."""
    if not answer.sentences:
        return Text(answer.text)
    grid = Table.grid(padding=(0, 2), expand=True)
    grid.add_column(ratio=5, overflow="fold")
    grid.add_column(min_width=12, no_wrap=True)
    grid.add_column(ratio=5, overflow="fold")
    facts = {fact.citation: fact.text for fact in answer.evidence if isinstance(fact, Triple)}
    passages = [item for item in answer.evidence if isinstance(item, Passage) and item.id]
    for sentence in answer.sentences:
        word, style = {
            Category.SUPPORTIVE: ("supported", "green"),
            Category.PARTIALLY_SUPPORTIVE: ("in part", "yellow"),
            Category.CONTRADICTORY: ("contradicted", "bold red"),
            Category.IRRELEVANT: ("unsupported", "yellow"),
            None: ("no claim", "dim"),
        }[sentence.category]
        word = word if sentence.correction is None else "corrected"
        grid.add_row(
            _coloured(sentence), Text(word, style=style), _support(sentence, facts, passages)
        )
    return grid


def _support(
    sentence: Sentence, facts: Mapping[Citation, str], passages: Sequence[Passage]
) -> Text:
    """The statements that support or contradict a sentence, with the passages they are in."""
    against = sentence.against if sentence.correction is None else sentence.correction.against
    sign, colour = ("✗", "red") if sentence.correction is None else ("✓", "green")
    lines = []
    for text in against:
        place = next((f" ({item.id})" for item in passages if text in item.text), "")
        lines.append(Text(f"{sign} {text}{place}", style=colour))
    if sentence.note and not against:
        lines.append(Text(sentence.note, style="dim"))
    for citation in sentence.citations:
        text = facts.get(citation) or f"{citation.value} ({citation.entity})"
        if text not in against:
            lines.append(Text(f"✓ {text}", style="green"))
    missing = [span.text for span in sentence.spans if span.kind is SpanKind.NA]
    if missing and sentence.citations:
        lines.append(Text("? " + ", ".join(missing), style="yellow"))
    return Text("\n").join(lines)


def _coloured(sentence: Sentence) -> Text:
    """The sentence coloured by support; corrected words are struck out before the new ones."""
    styles = {
        SpanKind.SUPPORTED: "green",
        SpanKind.NA: "yellow",
        SpanKind.CONTRADICTED: "red strike",
        SpanKind.CORRECTED: "bold green",
    }
    text = Text(sentence.text)
    for span in sentence.spans:
        text.stylize(styles[span.kind], span.start - sentence.start, span.end - sentence.start)
    for span in reversed(sentence.spans):
        if span.instead_of:
            gone = Text(span.instead_of, style=styles[SpanKind.CONTRADICTED])
            at = span.start - sentence.start
            text = Text.assemble(text[:at], gone, " ", text[at:])
    return text
