"""``guardrail ask``, ``check``, ``rank`` and ``link``: the main job on JSON lines."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from pydantic import Field

from guardrail.commands.lines import put_line, run_lines
from guardrail.commands.options import (
    AsJson,
    Graph,
    Input,
    Judging,
    Output,
    Passages,
    grouped,
)
from guardrail.commands.setup import build_config
from guardrail.core.errors import ConfigError
from guardrail.core.types import (
    GuardedAnswer,
    LinkedEntity,
    Triple,
    Value,
)
from guardrail.lines.figures import json_line
from guardrail.lines.jobs import (
    CheckRow,
    RankRow,
    check_job,
    rank_job,
    text_id,
)
from guardrail.lines.rows import LineJob, Row
from guardrail.requests import AskRequest
from guardrail.sources.files import evidence_of_files

__all__ = ["CheckRow", "ask", "check", "explain", "link", "rank"]

MOST_READ = 20
"""Passages and facts that ``explain`` prints."""
READ_CHARS = 120
"""Characters of each."""

Question = Annotated[str | None, typer.Argument(help="One question; rows from --input without.")]


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Where rows come from, and where results go."""

    source: Input = "-"
    target: Output = "-"


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


@grouped
def ask(
    question: Question = None,
    n: Annotated[int | None, typer.Option("-n", min=1, max=64, help="Answers to sample.")] = None,
    *,
    lines: Lines,
    judging: Judging,
    as_json: AsJson = False,
) -> None:
    """Answer questions with a model, grounded in the graph.

    Reads {id, question, n?}; writes a GuardedAnswer per row, as check --help tells it. On a
    terminal, prints the answers for a person. With a QUESTION, exits with 1 where no answer came
    about.
    """
    with judging.guard() as guard:
        if question is not None:
            answer = guard.ask(question=question, n=n)
            _put(answer, lines.target, as_json=as_json)
            # A refused answer has a text, the refusal, and in ``original`` what the model said.
            came = answer.text if answer.original is None else answer.original
            if answer.errors and not came.strip():
                raise typer.Exit(1)
            return

        def process(rows: Sequence[AskRow]) -> list[GuardedAnswer]:
            return guard.ask_batch(
                [AskRequest(question=row.question, n=row.n or n, id=text_id(row)) for row in rows]
            )

        job = LineJob(AskRow, process, batch_size=4, title="ask")
        run_lines(job, lines.source, lines.target, _shown(lines.target, as_json=as_json))


@grouped
def check(
    question: Question = None,
    answer: Annotated[str | None, typer.Argument(help="The answer to it.")] = None,
    passage: Passages = None,
    *,
    lines: Lines,
    judging: Judging,
    as_json: AsJson = False,
) -> None:
    """Check answers that were written elsewhere: one QUESTION and ANSWER, or rows.

    Reads {id, question, answer, evidence?}; evidence replaces the graph for that row: a text, or a
    list of texts, {text, id?, title?, url?}, [subject, property, value], {table: {rows, columns?,
    subject?, name?}} and {file: {filename, file_data: base 64}}. passages? (texts) and triples? are
    shorter forms. Writes a GuardedAnswer per row:
    {id, index, question, text, marked, action, would, reasons, sentences, removed, entities,
    evidence, scorecard, original, attempts, versions, timings_ms, errors, evidence_from}. On a
    terminal, prints them for a person.

    action is pass, annotate, correct, filter, regenerate, refuse or unverified; reasons say why;
    would is what a dry run left undone.
    sentences: [{text, start, end, verdict: supported, unsupported, contradicted, no_claim or
    not_checked, partial, category, na, citations: [{entity, property, value}], uncited,
    citation_errors, spans, judgement, findings, against, note, support, contradiction, sure,
    weights: [{name, support, contradiction}], thresholds: {support, contradiction, removal},
    correction: {original, by, against}, judged_by, second_opinion: {judge, support, contradiction,
    missing}}]; removed: those that the policy took out; spans: [{text, start, end, kind: supported,
    na, contradicted or corrected, triple, instead_of}], where triple is the fact that supports or
    contradicts; findings: [{check, effect, start, end, because, instead}].
    entities: [{mention, entity, matched, candidates}].
    evidence: triples {subject, property, value, subject_id, property_id, value_id} and passages.
    marked writes [NA] after na and contradicted spans alike. scorecard: {overall: {value, reason,
    evidence}, scores: {NAME: the same}}. errors: [{part, message}]: what could not be used.
    """
    if question is not None and answer is None:
        raise typer.BadParameter("give both: guardrail check QUESTION ANSWER", param_hint="ANSWER")
    evidence = evidence_of_files(passage or ())
    with judging.guard() as guard:
        if question is not None and answer is not None:
            _put(guard.check(question, answer, evidence=evidence), lines.target, as_json=as_json)
            return

        job = check_job(guard, evidence)
        run_lines(job, lines.source, lines.target, _shown(lines.target, as_json=as_json))


@grouped
def explain(
    question: Annotated[str, typer.Argument(help="A question.")],
    answer: Annotated[str, typer.Argument(help="The answer to it.")],
    passage: Passages = None,
    *,
    judging: Judging,
    as_json: AsJson = False,
) -> None:
    """Tell why each sentence of an ANSWER is judged and treated as it is.

    Prints for each sentence whether it is shown, marked or removed; its verdict with both
    probabilities and the thresholds they were held against; what the checks found; what it rests
    on or what speaks against it; what each of them added, in log-odds; and under which
    probabilities it would have come out differently. Removed sentences come last, and then the
    passages and facts that were read. With --json a line each: {text, verdict, outcome, because,
    otherwise, support, contradiction, thresholds, weights, findings, rests_on, against}, and at
    last {read: [passage or triple, …], from: [where they come from, …]}.
    """
    with judging.guard() as guard:
        checked = guard.check(question, answer, evidence=evidence_of_files(passage or ()))
    for one in checked.explain():
        typer.echo(json_line(one.model_dump(mode="json")) if as_json else f"{one}")
    read, sources = checked.evidence, list(checked.evidence_from)
    if as_json:
        items = [item.model_dump(mode="json", exclude_none=True) for item in read]
        typer.echo(json_line({"read": items, "from": sources}))
        return
    typer.echo(f"read: {len(read):,} passages and facts from {', '.join(sources) or 'nowhere'}")
    for item in read[:MOST_READ]:
        named = item.statement if isinstance(item, Triple) else f"{item.id or ''}: {item.text}"
        typer.echo(f"  {' '.join(named.removeprefix(': ').split()):.{READ_CHARS}}")
    if len(read) > MOST_READ:
        typer.echo(f"  … and {len(read) - MOST_READ:,} more; --json prints all")


@grouped
def rank(
    question: Question = None,
    answers: Annotated[list[str] | None, typer.Argument(help="The answers to it.")] = None,
    passage: Passages = None,
    *,
    lines: Lines,
    judging: Judging,
    as_json: AsJson = False,
) -> None:
    """Rank several answers to one question, best first: one QUESTION and its ANSWERS, or rows.

    Reads {id, question, answers: [text, …], evidence?}, evidence as in check; writes {id, ranking:
    [{index, score, scorecard}, …]}, where index is the answer's place in the input. On a terminal,
    prints the rankings for a person.
    """
    if question is not None and not answers:
        raise typer.BadParameter("give both: guardrail rank QUESTION ANSWER…", param_hint="ANSWERS")
    evidence = evidence_of_files(passage or ())
    with judging.guard() as guard:
        for_person = _for_person(lines.target, as_json=as_json)
        groups: deque[list[GuardedAnswer]] = deque()
        job = rank_job(guard, evidence, groups.extend if for_person else lambda _: None)

        def show(_: dict[str, object]) -> None:
            from rich.console import Console

            from guardrail.commands.render import show_ranking

            show_ranking(Console(), groups.popleft())

        if question is not None and answers:
            (ranking,) = job.process([RankRow(question=question, answers=tuple(answers))])
            if for_person:
                show({})
            else:
                put_line(ranking.model_dump(mode="json"), lines.target)
            return
        run_lines(job, lines.source, lines.target, show if for_person else None)


def link(
    question: Question = None,
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
    from guardrail.engine.parts import Parts

    linker = Parts(build_config(kg=kg), {}, ()).linker
    if linker is None:
        raise ConfigError("the settings name no graph (none); give one with --kg")
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


def _for_person(target: str, *, as_json: bool) -> bool:
    return target == "-" and not as_json and sys.stdout.isatty()


def _shown(target: str, *, as_json: bool) -> Callable[[dict[str, object]], None] | None:
    """What prints a result for a person, None where it is to be a line of JSON."""
    if not _for_person(target, as_json=as_json):
        return None
    return lambda result: _print_answer(GuardedAnswer.model_validate(result))


def _put(answer: GuardedAnswer, target: str, *, as_json: bool) -> None:
    if _for_person(target, as_json=as_json):
        _print_answer(answer)
    else:
        put_line(answer.model_dump(mode="json"), target)


def _print_answer(answer: GuardedAnswer) -> None:
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
