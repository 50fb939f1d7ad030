"""``guardrail log``, ``report`` and ``tune``: what the guardrail did, and what to make of it."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guardrail.commands.options import AsJson
from guardrail.errors import InputError, RecordError
from guardrail.log.entries import Record, RecordFilter, ScoreBound, to_json
from guardrail.log.records import JSONLinesLog, SQLiteLog, open_log
from guardrail.types import Action, Category

if TYPE_CHECKING:
    from rich.table import Table

    from guardrail.log.tuning import Tuning, WeightAdvice

__all__ = ["log", "report", "tune"]

POLL_S = 1.0
AGE = re.compile(r"(\d+)([smhdw])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
CURVE_ROWS = 12
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
    {id, created, answer: GuardedAnswer, tags}.
    """
    if tag is not None and "=" not in tag:
        raise InputError(f"{tag!r} is no tag; write NAME=VALUE")
    where = RecordFilter(
        since=_moment(since),
        until=_moment(until),
        action=None if action is None else action.value,
        category=category,
        entity=entity,
        bounds=tuple(ScoreBound.parse(one) for one in score or ()),
        tag=tag,
    )
    held = _opened(path)
    if target is not None:
        from guardrail.log.export import export

        typer.echo(f"{export(held, target, where):,} records written to {target}", err=True)
        return
    records = held.latest(tail, where)
    if not records:
        typer.echo(f"guardrail: {_none_found(held, where)}", err=True)
    if records or follow:
        _show(records, as_json=as_json)
    seen = {record.id for record in records}
    last = max((record.created for record in records), default=datetime.now(UTC))
    while follow:
        time.sleep(POLL_S)
        newer = where.model_copy(update={"since": last})
        fresh = [one for one in held.records(newer) if one.id not in seen]
        if fresh:
            _show(fresh, as_json=as_json, header=False)
            seen |= {one.id for one in fresh}
            last = max(one.created for one in fresh)


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

    held = _opened(path)
    where = RecordFilter(since=_moment(since), until=_moment(until))
    html = report_html(held, where, title=title, answers=answers)
    try:
        target.write_text(html, encoding="utf-8", errors="replace")
    except OSError as error:
        raise RecordError(f"cannot write {target}: {error.strerror}") from error
    typer.echo(f"{target}: {len(html) / 1024:,.0f} KiB", err=True)


def tune(
    path: LogFile,
    score: Annotated[str, typer.Option(help="The score a threshold is wanted for.")] = "overall",
    false_pass: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of wrong answers that may pass.")
    ] = 0.05,
    as_json: AsJson = False,
) -> None:
    """Choose a threshold of a score from readers' feedback.

    At most the share --false-pass of the wrong answers passes it. An answer counts as wrong when a
    reader gave it or one of its sentences a thumb down or a correction, as right with thumbs up
    alone. Prints the curve, the setting to copy, and, where SCK was scored, the weights that order
    right answers above wrong ones best.
    """
    from guardrail.log.tuning import learn_sck_weights, read_labels
    from guardrail.log.tuning import tune as choose

    labels = read_labels(_opened(path))
    found = choose(labels, score=score, false_pass=false_pass)
    weights = learn_sck_weights(labels)
    if as_json:
        typer.echo(found.model_dump_json())
        for advice in weights:
            typer.echo(advice.model_dump_json())
        return
    from rich.console import Console

    console = Console()
    console.print(_curve_table(found))
    console.print(
        f"{found.right} right and {found.wrong} wrong answers; a right one scores above a wrong "
        f"one with probability {found.auc:.2f}."
    )
    if found.chosen is None:
        console.print(f"No threshold keeps false passes at {false_pass:.0%}.")
    else:
        one = found.chosen
        console.print(
            f"At {one.threshold:.4f}, {one.false_pass:.1%} of wrong answers pass (at most "
            f"{one.upper:.1%} with 95 % confidence) and {one.pass_right:.1%} of right ones."
        )
        typer.echo(f"\n{found.toml}", nl=False)
    if weights:
        console.print(_weight_table(weights))


def _opened(path: Path) -> SQLiteLog | JSONLinesLog:
    """A score log to read.

    Raises:
        RecordError: It cannot be opened, or is some other file of JSON lines, all of whose lines
            would be passed over as cut short.
    """
    held = open_log(path, read_only=True)
    if isinstance(held, JSONLinesLog) and path.stat().st_size and not any(held.records()):
        raise RecordError(f"{path} holds no record of a response; it is no score log")
    return held


def _none_found(held: SQLiteLog | JSONLinesLog, where: RecordFilter) -> str:
    """Why no record was found: none is there, no score has that name, or none meets the bounds."""
    newest = held.latest(NAMES_FROM)
    if not newest:
        return "the log holds no record yet"
    known = {"overall"}.union(*(record.answer.scorecard.scores for record in newest))
    for bound in where.bounds:
        if bound.name not in known:
            near = get_close_matches(bound.name, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(known))}"
            return f"no answer has a score {bound.name!r}; {hint}"
    return "no record meets these conditions"


def _curve_table(found: Tuning) -> Table:
    from rich.table import Table

    table = Table(title=f"Thresholds on {found.score}", box=None, pad_edge=False)
    for name in ("threshold", "false pass", "at most (95 %)", "right pass"):
        table.add_column(name, justify="right")
    table.add_column("wrong (█) and right (░) that pass")
    step = max(1, len(found.curve) // CURVE_ROWS)
    shown = [*found.curve[::step], *([found.chosen] if found.chosen else [])]
    for point in sorted(set(shown), key=lambda one: one.threshold):
        mark = "→ " if point == found.chosen else ""
        bars = "█" * round(20 * point.false_pass) + "\n" + "░" * round(20 * point.pass_right)
        table.add_row(
            f"{mark}{point.threshold:.3f}",
            f"{point.false_pass:.1%}",
            f"{point.upper:.1%}",
            f"{point.pass_right:.1%}",
            bars,
        )
    return table


def _weight_table(weights: list[WeightAdvice]) -> Table:
    from rich.table import Table

    table = Table(title="Weights of SCK by intent", box=None, pad_edge=False)
    for name in ("intent", "answers", "structure", "content", "knowledge", "AUC", "AUC, equal"):
        table.add_column(name, justify="left" if name == "intent" else "right")
    for one in weights:
        parts = (one.structure, one.content, one.knowledge, one.auc, one.auc_equal)
        table.add_row(one.intent, str(one.labels), *(f"{part:.2f}" for part in parts))
    return table


def _moment(text: str | None) -> datetime | None:
    """A moment, or so long ago."""
    if text is None:
        return None
    age = AGE.fullmatch(text)
    if age:
        return datetime.now(UTC) - timedelta(**{UNITS[age[2]]: int(age[1])})
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"{text!r} is no time; write 2026-05-01T12:00 or 24h") from error
    return moment if moment.tzinfo else moment.astimezone()


def _show(records: list[Record], *, as_json: bool, header: bool = True) -> None:
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
        text = " ".join(f"{answer.question} → {answer.text}".split())
        table.add_row(
            f"{record.created.astimezone():%Y-%m-%d %H:%M:%S}",
            answer.action.value,
            "—" if overall is None else f"{overall:.2f}",
            text.replace("[", r"\["),
            record.id[:8],
        )
    Console().print(table)
