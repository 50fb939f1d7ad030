"""``guardrail ask``, ``check``, ``rank`` and ``link``: the main job on JSON lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

import typer
from pydantic import Field

from guardrail.commands.figures import json_line
from guardrail.commands.lines import LineJob, Row, run_lines
from guardrail.commands.options import AsJson, Config, Graph, Input, JudgeName, Output, PolicyName
from guardrail.commands.setup import build_config, build_guard, configured_graph
from guardrail.requests import AskRequest, CheckRequest, RankRequest
from guardrail.types import (
    Evidence,
    GuardedAnswer,
    LinkedEntity,
    ScoreCard,
    Value,
)

__all__ = ["CheckRow", "ask", "check", "link", "rank"]

ROWS_PER_CALL = 32


class EvidenceRow(Row):
    """A row that may bring its own evidence in place of the graph."""

    other_names: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("evidence", "context", "contexts", "documents"), "passages"),
        **dict.fromkeys(("facts", "knowledge"), "triples"),
    }
    triples: tuple[tuple[str, str, str], ...] | None = None
    passages: tuple[str, ...] | None = None

    def evidence(self) -> tuple[Evidence, ...] | None:
        """The inline evidence, None where the graph is to be asked."""
        from guardrail.evidence.retrieval import inline_evidence

        return inline_evidence(self.triples, self.passages)


class AskRow(Row):
    """A question, with the number of answers to sample."""

    question: str
    n: int | None = Field(default=None, ge=1, le=64)


class CheckRow(EvidenceRow):
    """An answer to check."""

    question: str = ""
    answer: str


class RankRow(EvidenceRow):
    """Answers to rank."""

    question: str = ""
    answers: tuple[str, ...]


class LinkRow(Row):
    """A question whose entities are to be linked."""

    question: str


class RankedAnswer(Value):
    """A candidate's place in the input, its score and its whole score card."""

    index: int
    score: float | None
    scorecard: ScoreCard


class Ranking(Value):
    """Candidates, best first."""

    ranking: tuple[RankedAnswer, ...]


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
                [AskRequest(question=row.question, n=row.n or n, id=_text_id(row)) for row in rows]
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

        def process(rows: Sequence[CheckRow]) -> list[GuardedAnswer]:
            return guard.check_batch(
                [
                    CheckRequest(
                        question=row.question,
                        answer=row.answer,
                        evidence=row.evidence(),
                        id=_text_id(row),
                    )
                    for row in rows
                ]
            )

        job = LineJob(CheckRow, process, batch_size=ROWS_PER_CALL, title="check")
        run_lines(job, source, target)


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

        def process(rows: Sequence[RankRow]) -> list[Ranking]:
            ranked = guard.rank_batch(
                [
                    RankRequest(question=row.question, answers=row.answers, evidence=row.evidence())
                    for row in rows
                ]
            )
            return [
                Ranking(ranking=tuple(_ranked_answer(answer) for answer in group))
                for group in ranked
            ]

        job = LineJob(RankRow, process, batch_size=ROWS_PER_CALL, title="rank")
        run_lines(job, source, target)


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


def _ranked_answer(answer: GuardedAnswer) -> RankedAnswer:
    return RankedAnswer(
        index=answer.index, score=answer.scorecard.overall.value, scorecard=answer.scorecard
    )


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


def _text_id(row: Row) -> str | None:
    return None if row.id is None else str(row.id)
