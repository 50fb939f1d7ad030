"""``guardrail ask``, ``check``, ``explain``, ``rank`` and ``link``."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from pydantic import Field
from pydantic_core import to_jsonable_python

from guardrail.commands.lines import QuestionRow, put_line, run_lines
from guardrail.commands.options import (
    AsJson,
    Graph,
    Input,
    Judging,
    Output,
    Question,
    arg,
    build_config,
    build_guard,
    grouped,
    opt,
    writes,
)
from guardrail.core.errors import ConfigError
from guardrail.core.types import GuardedAnswer, LinkedEntity, Sentence, Span, Triple
from guardrail.core.types.answers import Action, AskRequest
from guardrail.lines import LineJob, RankRow, Result, RowT, check_job, json_line, rank_job


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Where rows come from, and where and how results go."""

    source: Input = "-"
    target: Output = "-"
    as_json: AsJson = False

    @property
    def for_people(self) -> bool:
        """True if results are printed on a terminal."""
        return self.target == "-" and not self.as_json and sys.stdout.isatty()

    def run(self, job: LineJob[RowT], show: Callable[[dict[str, object]], None]) -> None:
        """Run a job on the rows; ``show`` prints a result for people."""
        run_lines(job, self.source, self.target, show if self.for_people else None)

    def put(self, result: Result, show: Callable[[dict[str, object]], None]) -> None:
        """Print or write one result."""
        found = to_jsonable_python(result)
        if self.for_people:
            show(found)
        else:
            put_line(found, self.target)


class AskRow(QuestionRow):
    """A question, with the number of answers to sample."""

    n: int | None = Field(default=None, ge=1, le=64)


@grouped
def ask(
    question: Question = None,
    n: Annotated[int | None, opt("-n", "Answers to sample.", min=1, max=64)] = None,
    *,
    lines: Lines,
    judging: Judging,
) -> None:
    """Answer questions with a model, grounded in the graph.

    Reads {id, question, n?}; writes a GuardedAnswer per row, see check --help. On a terminal,
    prints the answers for people. With a QUESTION, the exit status is 1 if no answer was obtained.
    """
    with judging.guard() as guard:
        if question is not None:
            answer = guard.ask(question=question, n=n)
            lines.put(answer, _print_answer)
            # The text of a refused answer is the refusal; ``original`` is the model's.
            written = answer.text if answer.original is None else answer.original
            if answer.errors and not written.strip():
                raise typer.Exit(1)
            return

        def process(rows: Sequence[AskRow]) -> list[GuardedAnswer]:
            return guard.ask_batch(
                [AskRequest(question=row.question, n=row.n or n, id=row.text_id) for row in rows]
            )

        lines.run(LineJob(AskRow, process, batch_size=4, title="ask"), _print_answer)


@writes(GuardedAnswer=GuardedAnswer, sentences=Sentence, spans=Span)
@grouped
def check(
    question: Question = None,
    answer: Annotated[str | None, arg("The answer to it.")] = None,
    *,
    lines: Lines,
    judging: Judging,
) -> None:
    """Check answers written elsewhere: one QUESTION and ANSWER, or rows.

    Reads {id, question, answer, evidence?}; evidence replaces the graph for that row: a text, or a
    list of texts, {text, id?, title?, url?}, [subject, property, value], {table: {rows, columns?,
    subject?, name?}} and {file: {filename, file_data: base 64}}. Shorter forms are passages?
    (texts) and triples?. Writes a GuardedAnswer per row; on a terminal, prints it for people.
    """
    if question is not None and answer is None:
        raise typer.BadParameter("give both: guardrail check QUESTION ANSWER", param_hint="ANSWER")
    with judging.guard() as guard:
        if question is not None and answer is not None:
            lines.put(guard.check(question, answer), _print_answer)
        else:
            lines.run(check_job(guard), _print_answer)


@grouped
def explain(
    question: Annotated[str, arg("A question.")],
    answer: Annotated[str, arg("The answer to it.")],
    *,
    judging: Judging,
    as_json: AsJson = False,
) -> None:
    """Explain the verdict on each sentence of an ANSWER.

    For each sentence: shown, marked or removed; the verdict with both probabilities and their
    thresholds; findings of the checks; the supporting or contradicting statement; the weight of
    each in log-odds; which probabilities would have changed the verdict; and the numbers of the
    passages and facts that were read for it, which come last. With --json a line each: {text,
    verdict, outcome, because, otherwise, support, contradiction, thresholds, weights, findings,
    rests_on, against, read}, and finally {read: [passage or triple, …], from: [source, …]}, to
    which the numbers refer, from 1.
    """
    # A look at an answer is none: it does not count in the log
    with build_guard(judging.settings().changed(log=None)) as guard:
        checked = guard.check(question, answer)
    for one in checked.explain():
        typer.echo(json_line(one.model_dump(mode="json")) if as_json else f"{one}")
    found, sources = checked.evidence, list(checked.evidence_from)
    if as_json:
        items = [item.model_dump(mode="json", exclude_none=True) for item in found]
        typer.echo(json_line({"read": items, "from": sources}))
        return
    read = sorted({number for sentence in checked.judged for number in sentence.read})
    if checked.action is Action.REFUSE:
        typer.echo(f"refused: {checked.reasons[-1]}")
    typer.echo(
        f"read: {len(read):,} of {len(found):,} passages and facts from "
        f"{', '.join(sources) or 'nowhere'}"
    )
    for number in read[:20]:
        item = found[number - 1]
        text = item.statement if isinstance(item, Triple) else f"{item.id or ''}: {item.text}"
        typer.echo(f"  {number}  {' '.join(text.removeprefix(': ').split()):.120}")
    if more := len(read[20:]):
        typer.echo(f"  … and {more:,} more; --json prints all")


@grouped
def rank(
    question: Question = None,
    answers: Annotated[list[str] | None, arg("The answers to it.")] = None,
    *,
    lines: Lines,
    judging: Judging,
) -> None:
    """Rank several answers to one question, best first: one QUESTION and its ANSWERS, or rows.

    Reads {id, question, answers: [text, …], evidence?}, evidence as in check; writes {id, ranking:
    [{index, score, scorecard}, …]}, where index is the answer's place in the input. On a terminal,
    prints the rankings for people.
    """
    if question is not None and not answers:
        raise typer.BadParameter("give both: guardrail rank QUESTION ANSWER…", param_hint="ANSWERS")
    with judging.guard() as guard:
        ranked: deque[list[GuardedAnswer]] = deque()
        job = rank_job(guard, ranked.extend if lines.for_people else lambda _: None)

        def show(_: dict[str, object]) -> None:
            from rich.console import Console

            from guardrail.commands.render import show_ranking

            show_ranking(Console(), ranked.popleft())

        if question is not None and answers:
            (found,) = job.process([RankRow(question=question, answers=tuple(answers))])
            lines.put(found, show)
        else:
            lines.run(job, show)


@grouped
def link(question: Question = None, kg: Graph = None, *, lines: Lines) -> None:
    """Link the entities that questions name or ask for.

    Reads {id, question}; writes {id, entities: [{mention, id, label, matched, candidates}, …]},
    where matched says how the entity was found and candidates lists all ids considered, best first.
    """
    from guardrail.engine.parts import Parts

    linker = Parts(build_config(kg=kg), {}, ()).linker
    if linker is None:
        raise ConfigError("the settings name no graph (none); give one with --kg")
    if question is None:

        def process(rows: Sequence[QuestionRow]) -> list[Result]:
            return [_links(found) for found in linker.link([row.question for row in rows])]

        job = LineJob(QuestionRow, process, batch_size=128, title="link")
        run_lines(job, lines.source, lines.target)
        return
    (found,) = linker.link([question])
    if lines.as_json:
        typer.echo(json_line(_links(found)))
        return
    from rich.console import Console

    from guardrail.commands.render import entity_table

    Console().print(entity_table(found) if found else "The question names no entity of the graph.")


def _print_answer(result: dict[str, object]) -> None:
    from rich.console import Console

    from guardrail.commands.render import show_answer

    show_answer(Console(), GuardedAnswer.model_validate(result))


def _links(found: Sequence[LinkedEntity]) -> dict[str, object]:
    return {
        "entities": [
            {
                "mention": link.mention.text,
                "id": link.entity.id,
                "label": link.entity.label,
                "matched": link.matched,
                "candidates": [candidate.entity.id for candidate in link.candidates],
            }
            for link in found
        ]
    }
