"""``guardrail ask``, ``check``, ``rank`` and ``link``: the main job on JSON lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from pydantic import Field

from guardrail.commands.figures import json_line
from guardrail.commands.jobs import CheckRow, check_job, rank_job, text_id
from guardrail.commands.lines import LineJob, Row, run_lines
from guardrail.commands.options import AsJson, Config, Graph, Input, JudgeName, Output, PolicyName
from guardrail.commands.setup import build_config, build_guard, configured_graph
from guardrail.requests import AskRequest
from guardrail.types import (
    GuardedAnswer,
    LinkedEntity,
    Value,
)

__all__ = ["CheckRow", "ask", "check", "link", "rank"]


class AskRow(Row):
    """A question, with the number of answers to sample."""

    question: str
    n: int | None = Field(default=None, ge=1, le=64)


class LinkRow(Row):
    """A question whose entities are to be linked."""

    question: str


class LinkResult(Value):
    """One linked entity."""

    mention: str
    id: str
    label: str
    matched: str
    candidates: tuple[str, ...]


class Links(Value):
    """All entities linked in a question."""

    entities: tuple[LinkResult, ...]


def ask(
    question: Annotated[
        str | None, typer.Argument(help="One question; rows from --input without.")
    ] = None,
    n: Annotated[int | None, typer.Option("-n", min=1, max=64, help="Answers to sample.")] = None,
    source: Input = "-",
    target: Output = "-",
    kg: Graph = None,
    config: Config = None,
    judge: JudgeName = None,
    policy: PolicyName = None,
    as_json: AsJson = False,
) -> None:
    """Answer questions with a model, grounded in the graph.

    Reads {id, question, n?}; writes a GuardedAnswer per row, as check --help tells it. With a
    QUESTION, prints the answer for a person; exits with 1 where no answer came about.
    """
    with build_guard(config, kg, judge, policy) as guard:
        if question is not None:
            answer = guard.ask(question=question, n=n)
            _show(answer, as_json=as_json)
            # A refused answer has a text, the refusal, and in ``original`` what the model said.
            came = answer.text if answer.original is None else answer.original
            if answer.errors and not came.strip():
                raise typer.Exit(1)
            return

        def process(rows: Sequence[AskRow]) -> list[GuardedAnswer]:
            return guard.ask_batch(
                [AskRequest(question=row.question, n=row.n or n, id=text_id(row)) for row in rows]
            )

        run_lines(LineJob(AskRow, process, batch_size=4, title="ask"), source, target)


def check(
    source: Input = "-",
    target: Output = "-",
    kg: Graph = None,
    config: Config = None,
    judge: JudgeName = None,
    policy: PolicyName = None,
) -> None:
    """Check answers that were written elsewhere.

    Reads {id, question, answer, triples?: [[subject, property, value], …], passages?: [text, …]};
    inline triples or passages replace the graph for that row. Writes a GuardedAnswer per row:
    {id, index, question, text, marked, action, reasons, sentences, entities, evidence, scorecard,
    original, attempts, versions, timings_ms, errors}.

    action is pass, annotate, filter, regenerate, refuse or unverified; reasons say why. sentences:
    [{text, start, end, category, na, citations: [{entity, property, value}], spans, judgement,
    findings, note}]; spans: [{text, start, end, kind: supported, na or contradicted, triple}],
    where triple is the fact that supports or contradicts; findings: [{check, effect, start, end,
    because}]. entities: [{mention, entity, matched, candidates}].
    evidence: triples {subject, property, value, subject_id, property_id, value_id} and passages.
    marked writes [NA] after na and contradicted spans alike. scorecard: {overall: {value, reason,
    evidence}, scores: {NAME: the same}}. errors: [{part, message}]: what could not be used.
    """
    with build_guard(config, kg, judge, policy) as guard:
        run_lines(check_job(guard), source, target)


def rank(
    source: Input = "-",
    target: Output = "-",
    kg: Graph = None,
    config: Config = None,
    judge: JudgeName = None,
    policy: PolicyName = None,
) -> None:
    """Rank several answers to one question, best first.

    Reads {id, question, answers: [text, …], triples?, passages?}; writes {id, ranking:
    [{index, score, scorecard}, …]}, where index is the answer's place in the input.
    """
    with build_guard(config, kg, judge, policy) as guard:
        run_lines(rank_job(guard), source, target)


def link(
    question: Annotated[
        str | None, typer.Argument(help="One question; rows from --input without.")
    ] = None,
    source: Input = "-",
    target: Output = "-",
    kg: Graph = None,
    as_json: AsJson = False,
) -> None:
    """Link the entities that questions name or ask for.

    Reads {id, question}; writes {id, entities: [{mention, id, label, matched, candidates}, …]},
    where matched tells how the entity was found and candidates lists all ids considered, best
    first.
    """
    from kg import EntityLinker

    settings = build_config(kg=kg).graph
    linker = EntityLinker(configured_graph(kg), relations=settings.relations, limit=settings.limit)
    if question is not None:
        found = linker.link([question])[0]
        if as_json:
            typer.echo(json_line(_links(found).model_dump(mode="json")))
        else:
            from rich.console import Console

            from guardrail.commands.render import entity_table

            console = Console()
            if found:
                console.print(entity_table(found))
            else:
                console.print("The question names no entity of the graph.")
        return

    def process(rows: Sequence[LinkRow]) -> list[Links]:
        return [_links(found) for found in linker.link([row.question for row in rows])]

    run_lines(LineJob(LinkRow, process, batch_size=128, title="link"), source, target)


def _show(answer: GuardedAnswer, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json_line(answer.model_dump(mode="json")))
        return
    from rich.console import Console

    from guardrail.commands.render import show_answer

    show_answer(Console(), answer)


def _links(found: Sequence[LinkedEntity]) -> Links:
    return Links(
        entities=tuple(
            LinkResult(
                mention=link.mention.text,
                id=link.entity.id,
                label=link.entity.label,
                matched=link.matched,
                candidates=tuple(candidate.entity.id for candidate in link.candidates),
            )
            for link in found
        )
    )
