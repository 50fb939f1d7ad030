"""``guardrail log`` and ``report``: search, export, back up and summarise a score log."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from guardrail.commands.options import AsJson, arg, opt
from guardrail.core.errors import InputError, RecordError, file_errors
from guardrail.core.fields import did_you_mean, in_short
from guardrail.core.types import Action
from guardrail.log.entries import Record, RecordFilter, ScoreBound, to_json
from guardrail.log.records import MADE_ID, SQLiteLog, export, open_log

LogFile = Annotated[Path, arg("A score log.", "LOG", dir_okay=False)]
Since = Annotated[
    str | None, opt("--since", "From this time on: 2026-05-01T12:00, or 30m, 24h, 7d.", "TIME")
]
Until = Annotated[str | None, opt("--until", "Before this time, as in --since.", "TIME")]


class _ShowByDefault(TyperGroup):
    """``guardrail log LOG`` is short for ``guardrail log show LOG``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands:
            args = ["show", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_ShowByDefault, no_args_is_help=True)


@app.command()
def show(
    path: LogFile,
    record: Annotated[
        str | None, opt("--id", "One whole answer: its id, or the beginning.", "ID")
    ] = None,
    tail: Annotated[int, opt("--tail -n", "Newest records shown.", min=1)] = 20,
    score: Annotated[
        list[str] | None, opt("--score", "Bound on a score: 'overall<0.5'; repeatable.", "EXPR")
    ] = None,
    action: Annotated[Action | None, opt("", "Answers with this action.")] = None,
    would_block: Annotated[
        bool, opt("--would-block", "Answers that only a dry run let pass.")
    ] = False,
    tag: Annotated[str | None, opt("", "Answers with this tag.", "NAME=VALUE")] = None,
    since: Since = None,
    until: Until = None,
    target: Annotated[
        Path | None, opt("--export", "Write all found to .csv or .jsonl instead.", "FILE")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show, find and export records of a score log.

    Prints the newest records that meet every condition, or with --json a record per line:
    {id, created, answer: GuardedAnswer, tags}. The ids listed are those of records; several records
    may be about one answer. A single record found by --id is shown in full. The exit status is 1 if
    none is found.
    """
    if tag is not None and "=" not in tag:
        raise InputError(f"{tag!r} is not a tag; write NAME=VALUE")
    where = RecordFilter(
        id=record,
        since=_time(since),
        until=_time(until),
        action=None if action is None else action.value,
        bounds=tuple(ScoreBound.parse(item) for item in score or ()),
        would_block=would_block,
        tag=tag,
    )
    with open_log(path, read_only=True) as log:
        if target is not None:
            typer.echo(f"{export(log, target, where):,} records written to {target}", err=True)
            return
        records = log.latest(tail, where)
        if not records:
            typer.echo(f"guardrail: {_none_found(log, where)}", err=True)
            raise typer.Exit(1)
    # A complete id means its own record, even if ids of other candidates begin with it.
    named = [item for item in records if record in (item.id, item.answer.id)] or records
    if as_json:
        for item in records:
            typer.echo(to_json(item))
    elif record is not None and len(named) == 1:
        _print_whole(named[0])
    else:
        _print_table(records)


def report(
    path: LogFile,
    target: Annotated[Path, opt("--output -o", "The page to write.", "FILE")] = Path("report.html"),
    since: Since = None,
    until: Until = None,
) -> None:
    """Make one self-contained HTML page of a score log.

    Distribution and trend of each score, support by intent, latency by stage, phrases without
    support, and the worst and newest answers with the facts behind each sentence.
    """
    from guardrail.report import report_html

    with open_log(path, read_only=True) as log:
        html = report_html(log, RecordFilter(since=_time(since), until=_time(until)))
    with file_errors("write", target, RecordError):
        target.write_text(html, encoding="utf-8", errors="replace")
    typer.echo(f"{target}: {len(html) / 1024:,.0f} KiB", err=True)


@app.command()
def backup(
    path: LogFile,
    target: Annotated[Path, arg("The copy; an existing file is replaced.", "FILE")],
) -> None:
    """Copy a score log into one file, even while it is written to."""
    with open_log(path, read_only=True) as log:
        typer.echo(f"{log.back_up(target):,} records in {target}", err=True)


def _none_found(log: SQLiteLog, where: RecordFilter) -> str:
    """Why no record was found."""
    # Newest records whose scores are named
    newest = log.latest(20)
    known = {"overall"}.union(*(record.answer.scorecard.scores for record in newest))
    for bound in where.bounds if newest else ():
        if bound.name not in known:
            return (
                f"no answer has a score {bound.name!r}; {did_you_mean(bound.name, sorted(known))}"
            )
    return "no record meets these conditions" if newest else "the log holds no record yet"


def _time(text: str | None) -> datetime | None:
    """A point in time, or an age before now, in UTC."""
    if text is None:
        return None
    age = re.fullmatch(r"([0-9]+)([smhdw])", text)
    try:
        if age:
            units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
            return datetime.now(UTC) - timedelta(**{units[age[2]]: int(age[1])})
        return datetime.fromisoformat(text).astimezone(UTC)
    except (OverflowError, OSError, ValueError) as error:  # OSError on Windows
        raise InputError(
            f"{in_short(text)} is not a time; write 2026-05-01T12:00 or 24h"
        ) from error


def _print_whole(record: Record) -> None:
    from rich.console import Console

    from guardrail.commands.render import show_answer

    answer, console = record.answer, Console(highlight=False, markup=False)
    at = f"{record.created.astimezone():%Y-%m-%d %H:%M:%S}"
    console.print(f"{at} id {record.id} answer {answer.id}", soft_wrap=True)
    for line in (*(f"{name}={value}" for name, value in record.tags.items()), answer.question):
        console.print(line)
    show_answer(console, answer)
    for one in answer.explain():
        console.print(str(one))


def _print_table(records: list[Record]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, expand=True)
    for name, width in (("time", 19), ("action", 10), ("overall", 7)):
        table.add_column(name, no_wrap=True, min_width=width)
    table.add_column("question and answer", ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column("id", no_wrap=True, min_width=8)
    for record in records:
        answer = record.answer
        overall = answer.scorecard.overall.value
        own = "" if MADE_ID.fullmatch(answer.id) else f"{answer.id}: "
        table.add_row(
            f"{record.created.astimezone():%Y-%m-%d %H:%M:%S}",
            answer.decided,
            "—" if overall is None else f"{overall:.2f}",
            Text(" ".join(f"{own}{answer.question} → {answer.text}".split())),
            Text(record.id[:12]),
        )
    Console().print(table)
