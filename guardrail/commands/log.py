"""``guardrail log`` and ``report``: what the guardrail did."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from guardrail.commands.options import AsJson, Config
from guardrail.commands.setup import build_config
from guardrail.core.errors import ConfigError, InputError, RecordError
from guardrail.core.fields import in_short
from guardrail.core.types import Action, Category
from guardrail.log.entries import Record, RecordFilter, ScoreBound, to_json
from guardrail.log.records import MADE_ID, JSONLinesLog, SQLiteLog, open_log

__all__ = ["app", "log", "opened", "report"]

POLL_S = 1.0
AGE = re.compile(r"([0-9]+)([smhdw])")
ID_SHOWN = 12
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
NAMES_FROM = 20
"""Newest records whose scores are named where a score is asked for that they do not have."""

LogFile = Annotated[
    Path, typer.Argument(metavar="LOG", help="A score log: .sqlite or .jsonl.", dir_okay=False)
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="TIME", help="From then on: 2026-05-01T12:00, or 30m, 24h, 7d."
    ),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Before then; spelled as --since.")
]


def log(
    path: LogFile,
    record: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="One answer, whole: its id, or how it begins."),
    ] = None,
    tail: Annotated[int, typer.Option("--tail", "-n", min=1, help="Newest records shown.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as records come.")] = False,
    score: Annotated[
        list[str] | None,
        typer.Option(
            "--score", metavar="EXPR", help="Bound on a score: 'overall<0.5'; repeatable."
        ),
    ] = None,
    category: Annotated[
        Category | None, typer.Option(help="Answers with a sentence of this category.")
    ] = None,
    entity: Annotated[
        str | None, typer.Option(metavar="ID|LABEL", help="Answers that name this entity.")
    ] = None,
    action: Annotated[Action | None, typer.Option(help="Answers the policy did this with.")] = None,
    would_block: Annotated[
        bool, typer.Option("--would-block", help="Answers that a dry run let through alone.")
    ] = False,
    tag: Annotated[
        str | None, typer.Option(metavar="NAME=VALUE", help="Answers with this tag.")
    ] = None,
    since: Since = None,
    until: Until = None,
    target: Annotated[
        Path | None,
        typer.Option(
            "--export", metavar="FILE", help="Write all found to .csv, .parquet or .jsonl instead."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show, find and export what a score log holds.

    Prints the newest records that meet every condition, or with --json a record per line:
    {id, created, answer: GuardedAnswer, tags}. The ids listed are those of records: answers that
    were ranked, or judged twice, may share theirs. One record found by ``--id`` is shown as the
    answer beside its evidence, with what decided each sentence. Where none is found the exit status
    is 1.
    """
    if tag is not None and "=" not in tag:
        raise InputError(f"{tag!r} is no tag; write NAME=VALUE")
    where = RecordFilter(
        id=record,
        since=_moment(since),
        until=_moment(until),
        action=None if action is None else action.value,
        category=category,
        entity=entity,
        bounds=tuple(ScoreBound.parse(item) for item in score or ()),
        would_block=would_block,
        tag=tag,
    )
    score_log = opened(path)
    whole = isinstance(score_log, JSONLinesLog)
    if target is not None:
        from guardrail.log.export import export

        typer.echo(f"{export(score_log, target, where):,} records written to {target}", err=True)
        return
    records = score_log.latest(tail, where)
    if not records:
        typer.echo(f"guardrail: {_none_found(score_log, where)}", err=True)
        if not follow:
            raise typer.Exit(1)
    # A whole id is meant as such, though the ids of other candidates begin with it.
    named = [item for item in records if record in (item.id, item.answer.id)] or records
    if record is not None and len(named) == 1 and not as_json:
        _show_whole(named[0])
    elif records or follow:
        _show(records, whole, as_json=as_json)
    seen = {item.id for item in records}
    last = max((item.created for item in records), default=datetime.now(UTC))
    while follow:
        time.sleep(POLL_S)
        newer = where.model_copy(update={"since": last})
        fresh = [item for item in score_log.records(newer) if item.id not in seen]
        if fresh:
            _show(fresh, whole, as_json=as_json, header=False)
            seen |= {item.id for item in fresh}
            last = max(item.created for item in fresh)


def report(
    path: LogFile,
    target: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")
    ] = Path("report.html"),
    since: Since = None,
    until: Until = None,
    answers: Annotated[int, typer.Option(min=0, help="Answers shown whole.")] = 200,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Guardrail report",
) -> None:
    """Make one self-contained HTML page of a score log.

    Distribution and trend of each score, support by intent, latency by stage, the facts that the
    graph lacks, and the worst and newest answers with the facts behind each sentence.
    """
    from guardrail.report import report_html

    score_log = opened(path)
    where = RecordFilter(since=_moment(since), until=_moment(until))
    html = report_html(score_log, where, title=title, answers=answers)
    try:
        target.write_text(html, encoding="utf-8", errors="replace")
    except OSError as error:
        raise RecordError(f"cannot write {target}: {error.strerror}") from error
    typer.echo(f"{target}: {len(html) / 1024:,.0f} KiB", err=True)


def opened(path: Path) -> SQLiteLog | JSONLinesLog:
    """A score log to read.

    Raises:
        RecordError: It cannot be opened, or is some other file of JSON lines, all of whose lines
            would be passed over as cut short.
    """
    score_log = open_log(path, read_only=True)
    if isinstance(score_log, JSONLinesLog) and path.stat().st_size and not any(score_log.records()):
        raise RecordError(f"{path} holds no record of a response; it is no score log")
    return score_log


def backup(
    log_file: Annotated[
        Path, typer.Argument(metavar="LOG", help="The log; left out, that of the settings.")
    ],
    target: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The copy; replaced where it is there.")
    ] = None,
    config: Config = None,
) -> None:
    """Copy a score log into one file while it is written to.

    With FILE alone the log is the one that the settings name (--config, GUARDRAIL_LOG).
    """
    from guardrail.log.backup import back_up

    source = log_file
    if target is None:
        target, settings = log_file, build_config(config).log
        if settings is None:
            raise ConfigError("no score log is configured; write guardrail log backup LOG FILE")
        source = settings.path
    typer.echo(f"{back_up(source, target):,} records in {target}", err=True)


class _ShowsUnlessTold(TyperGroup):
    """``guardrail log LOG`` shows a log, whatever options stand before its name."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            args = ["show", *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands:
            args = ["show", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_ShowsUnlessTold, no_args_is_help=True)
app.command("show")(log)
app.command("backup")(backup)


def _none_found(score_log: SQLiteLog | JSONLinesLog, where: RecordFilter) -> str:
    """Why no record was found: none is there, no score has that name, or none meets the bounds."""
    newest = score_log.latest(NAMES_FROM)
    if not newest:
        return "the log holds no record yet"
    known = {"overall"}.union(*(record.answer.scorecard.scores for record in newest))
    for bound in where.bounds:
        if bound.name not in known:
            near = get_close_matches(bound.name, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(known))}"
            return f"no answer has a score {bound.name!r}; {hint}"
    return "no record meets these conditions"


def _moment(text: str | None) -> datetime | None:
    """A moment, or so long ago, in UTC.

    Raises:
        InputError: It is none, or the calendar does not reach so far.
    """
    if text is None:
        return None
    age = AGE.fullmatch(text)
    try:
        if age:
            return datetime.now(UTC) - timedelta(**{UNITS[age[2]]: int(age[1])})
        return datetime.fromisoformat(text).astimezone(UTC)
    except (OverflowError, OSError) as error:  # the latter on Windows
        raise InputError(f"{in_short(text)} is further off than the calendar; write 24h") from error
    except ValueError as error:
        raise InputError(f"{in_short(text)} is no time; write 2026-05-01T12:00 or 24h") from error


def _show_whole(record: Record) -> None:
    from rich.console import Console

    from guardrail.commands.render import show_answer

    console = Console()
    console.print(
        f"{record.created.astimezone():%Y-%m-%d %H:%M:%S}", f"id {record.id}",
        f"answer {record.answer.id}", highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip
    for name, value in record.tags.items():
        console.print(f"{name}={value}", highlight=False, markup=False)
    console.print(record.answer.question, highlight=False, markup=False)
    show_answer(console, record.answer)
    for one in record.answer.explain():
        console.print(str(one), highlight=False, markup=False)


def _show(records: list[Record], whole: bool, *, as_json: bool, header: bool = True) -> None:
    """Print records; ``whole`` where the log takes no feedback by the beginning of an id."""
    if as_json:
        for record in records:
            typer.echo(to_json(record))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=header, expand=True)
    for name, width in (("time", 19), ("action", 10), ("overall", 7)):
        table.add_column(name, no_wrap=True, min_width=width)
    table.add_column("question and answer", ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column("id", no_wrap=True, min_width=8)
    for record in records:
        answer = record.answer
        overall = answer.scorecard.overall.value
        own = "" if MADE_ID.fullmatch(answer.id) else f"{answer.id}: "
        text = " ".join(f"{own}{answer.question} → {answer.text}".split())
        table.add_row(
            f"{record.created.astimezone():%Y-%m-%d %H:%M:%S}",
            answer.decided,
            "—" if overall is None else f"{overall:.2f}",
            text.replace("[", r"\["),
            record.id[: None if whole else ID_SHOWN].replace("[", r"\["),
        )
    Console().print(table)
