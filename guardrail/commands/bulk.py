"""``guardrail bulk``: whole files and folders, resumable, on many cores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from guardrail.bulk.inputs import Format
from guardrail.bulk.run import SHARD_ROWS, Summary, run_bulk
from guardrail.bulk.scorer import BulkScorer, Task
from guardrail.commands.lines import Tell, telling
from guardrail.commands.options import (
    AsJson,
    CausalModel,
    Config,
    Graph,
    Judging,
    ModelJudgeName,
    arg,
    build_config,
    grouped,
    opt,
)
from guardrail.core.errors import InputError
from guardrail.lines import json_line

if TYPE_CHECKING:
    from guardrail.config import GuardrailConfig

app = typer.Typer(
    help="Check, score, rank or judge again whole files and folders, on many cores.",
    no_args_is_help=True,
)


Source = Annotated[
    str, arg("JSON lines or Parquet: a file, a folder, or an address (s3://…, gs://…).", "INPUT")
]
Target = Annotated[str, opt("--output -o", "Where the results go, in parts.", "FOLDER")]


@dataclass(frozen=True, kw_only=True)
class Work:
    """Where the work is done, in which parts, and how results are printed."""

    engine: Annotated[
        Literal["local", "ray"], opt("", "local: processes; ray: actors of a Ray cluster.")
    ] = "local"
    workers: Annotated[
        int | None, opt("--workers -w", "Processes or actors. Default: one per core.", min=1)
    ] = None
    shard_rows: Annotated[int, opt("", "Rows per part.", min=1)] = SHARD_ROWS
    as_json: AsJson = False

    def runner(self, title: str, tell: Tell) -> partial[Summary]:
        """``run_bulk`` with these options."""
        return partial(
            run_bulk,
            engine=self.engine,
            workers=self.workers,
            shard_rows=self.shard_rows,
            progress=partial(tell, title),
        )


@dataclass(frozen=True, kw_only=True)
class Written(Work):
    """The same, and the format of the results."""

    format: Annotated[Format | None, opt("", "Of the output. Default: that of the input.")] = None


@app.command()
@grouped
def check(source: Source, target: Target, *, work: Written, judging: Judging) -> None:
    """Check answers: rows and results are those of guardrail check, without timings.

    Every row of the input is a row of the output: {row, id, …} or {row, id, error}. A second run
    skips finished parts. Rates with 95 % confidence intervals are printed at the end.
    """
    _run("check", judging.settings(), source, target, work)


@app.command()
@grouped
def rank(source: Source, target: Target, *, work: Written, judging: Judging) -> None:
    """Rank answers: rows and results are those of guardrail rank; see guardrail bulk check."""
    _run("rank", judging.settings(), source, target, work)


@app.command()
@grouped
def score(
    source: Source,
    target: Target,
    *,
    work: Written,
    kg: Graph = None,
    config: Config = None,
    judge: ModelJudgeName = None,
    causal_lm: CausalModel = None,
) -> None:
    """Score answers: rows and results are those of guardrail score; see guardrail bulk check."""
    settings = build_config(config, kg=kg, judge=judge, causal_lm=causal_lm)
    _run("score", settings, source, target, work)


@app.command()
@grouped
def replay(
    log: Annotated[Path, arg("A score log.")],
    target: Target,
    *,
    work: Work,
    judging: Judging,
) -> None:
    """Judge the answers of a score log again and print changed verdicts with the reason.

    Each flip is {id, created, sentence, before, after, was, now, because, changed}: before and
    after are verdicts, was and now the cited facts, changed the hashes that differ (graph_snapshot,
    judge_hash, policy_hash, evidence:FILE). Answers that came with evidence are judged against the
    part of it that the log holds. Answers that cannot be judged or compared are {id, created,
    error}. A second run continues, with the records added since.
    """
    from guardrail.bulk.replay import Unjudged, replay_log

    with telling() as tell:
        result = replay_log(log, judging.settings(), target, work.runner("replay", tell))
        answers, unjudged, flipped = 0, 0, set()
        for flip in result:
            if flip is None:
                answers += 1
                continue
            if isinstance(flip, Unjudged):
                unjudged += 1
                text = f"{flip.id}: not judged: {flip.error}"
            else:
                flipped.add(flip.id)
                text = f"{flip.id}: {flip.before} -> {flip.after}: {flip.sentence}\n"
                text += f"    {flip.because}"
            typer.echo(json_line(flip.model_dump(mode="json")) if work.as_json else text)
    rest = f", {unjudged} could not be judged" if unjudged else ""
    typer.echo(f"{len(flipped)} of {answers} answers flipped{rest}", err=True)


def _run(task: Task, settings: GuardrailConfig, source: str, target: str, work: Written) -> None:
    with telling() as tell:
        scorer = BulkScorer(task=task, config=settings)
        summary = work.runner(task, tell)(scorer, source, target, kind=work.format)
    if work.as_json:
        typer.echo(json_line(summary.model_dump(mode="json")))
    else:
        typer.echo(
            f"{summary.rows:,} rows, {summary.errors:,} errors; {summary.shards} shards, "
            f"{summary.skipped} finished before; {summary.seconds:,.1f} s, "
            f"{summary.rows_per_second:,.1f} rows/s"
        )
        if summary.unverified:
            typer.echo(
                f"{summary.unverified:,} errors: graph, judge or model did not answer; run the "
                "command again to judge their parts again"
            )
        for name, rate in summary.rates.items():
            typer.echo(f"  {name:<42} {rate.value:8.4f}  [{rate.low:.4f}, {rate.high:.4f}]")
    if summary.errors == summary.rows:
        raise InputError(
            f"all {summary.rows} rows failed" if summary.rows else f"no rows in {source}"
        )
