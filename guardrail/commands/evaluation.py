"""``guardrail eval``: a file of a chatbot's answers, judged for CI and held beside the last run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guardrail.commands.lines import prepare_target, results_of
from guardrail.commands.options import (
    AsJson,
    Config,
    Graph,
    JudgeName,
    StrictnessName,
    build_config,
    build_guard,
)
from guardrail.core.errors import InputError
from guardrail.lines.rows import json_line

if TYPE_CHECKING:
    from guardrail.config import GuardrailConfig
    from guardrail.evaluation.comparison import Comparison, EvalSummary
    from guardrail.evaluation.rows import EvalResult
    from guardrail.intervals import Rate
    from guardrail.requests import CheckRequest

__all__ = ["evaluate"]

BELOW = 3
"""Exit status where the rows were judged and fall short; 1 is for what cannot be used."""
ROWS_SHOWN = 20


def evaluate(
    source: Annotated[str, typer.Argument(metavar="FILE|-", help="JSON lines: answers to judge.")],
    fail_under: Annotated[
        float | None,
        typer.Option(
            "--fail-under", min=0.0, max=1.0, help="Exit with 3 where a smaller share passes."
        ),
    ] = None,
    fail_on_worse: Annotated[
        bool,
        typer.Option("--fail-on-worse", help="Exit with 3 where a row passed before and not now."),
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="The last run, as --output wrote it; none yet is no mistake.",
            dir_okay=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Keep this run, for the next.", dir_okay=False
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", help="Write JUnit XML.", dir_okay=False),
    ] = None,
    supported: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="Least share of an answer's claims to be supported."),
    ] = 1.0,
    contradicted: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="Most of them that may be contradicted, as a share."),
    ] = 0.0,
    invariants: Annotated[
        bool,
        typer.Option(
            "--invariants",
            help="Test the guarantees on these answers and evidence; needs no labels.",
        ),
    ] = False,
    kg: Graph = None,
    config: Config = None,
    judge: JudgeName = None,
    strictness: StrictnessName = None,
    as_json: AsJson = False,
) -> None:
    """Judge a chatbot's answers, for CI: a table, what turned since the last run, an exit status.

    Reads {id, question, answer, evidence, expected?}. evidence is a text, or a list of items,
    as in check, tables and files among them; without it the graph is asked.
    expected is supported, unsupported, contradicted or no_claim: the row passes where the answer's
    verdict is that. Without it, it passes where its claims are supported (--supported,
    --contradicted). What cannot be checked does not pass.

    --output keeps {id, question, answer, evidence_hash, expected, verdict, passed, claims,
    supported, contradicted, failures, sentences, versions, error} of each row; --against holds the
    run beside such a file and tells which verdicts turned, and the difference of the shares that
    pass with its 95 % interval. Both may name one file. Folders that are not there yet are made.

    --invariants tests the guarantees instead: it shuffles, duplicates and splits the evidence,
    copies sentences of it, rewrites and breaks values, and counts the verdicts that are wrong.

    Exits with 0 where all is well, 1 where the file or a setting cannot be used, 3 where
    --fail-under or --fail-on-worse speaks, or where no row could be checked.
    """
    from guardrail.evaluation.assertion import Requirement
    from guardrail.evaluation.comparison import read_run, summarise, write_junit
    from guardrail.evaluation.rows import EvalResult, evaluation_job

    last = read_run(against) if against is not None and against.exists() else None
    for path in filter(None, (output, junit)):
        prepare_target(path)
    settings = build_config(config, kg=kg, judge=judge, strictness=strictness)
    if invariants:
        _print_invariants(settings, source, as_json)
        return
    with build_guard(settings) as guard:
        wanted = Requirement(supported=supported, contradicted=contradicted)
        found = results_of(evaluation_job(guard, wanted), source)
    results = [EvalResult.model_validate(row) for row in found]
    summary = summarise(results, last)
    if output is not None:
        _write(output, results)
    if junit is not None:
        write_junit(junit, results)
    if as_json:
        typer.echo(json_line(summary.model_dump(mode="json")))
    else:
        _show(summary, results)
        if against is not None and last is None:
            typer.echo(f"no run at {against} yet, nothing to compare with")
    if reasons := _short(summary, fail_under, fail_on_worse):
        for reason in reasons:
            typer.echo(f"guardrail: {reason}", err=True)
        raise typer.Exit(BELOW)


def _print_invariants(settings: GuardrailConfig, source: str, as_json: bool) -> None:
    """Test the guarantees on the rows of a file, and print the violations of each."""
    from guardrail.evaluation.invariants import GUARANTEES, measured, trials_of
    from guardrail.evaluation.rows import collecting_job

    requests: list[CheckRequest] = []
    unread = [row["error"] for row in results_of(collecting_job(requests), source) if row["error"]]
    for error in unread:
        typer.echo(f"guardrail: {error}", err=True)
    with build_guard(settings) as guard:
        found = measured(guard, list(trials_of(requests)))
    if as_json:
        typer.echo(json_line({kind: tally._asdict() for kind, tally in found.items()}))
        return
    for kind, tally in found.items():
        typer.echo(
            f"guarantee {GUARANTEES[kind]}, {kind}: {tally.violations} of {tally.trials} violated"
        )
    if not found:
        typer.echo("no row has evidence, so nothing was tested")


def _write(path: Path, results: Sequence[EvalResult]) -> None:
    """Replace the file in one step, so that a run that is cut off leaves the last one whole.

    Raises:
        InputError: It cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            for row in results:
                file.write(json_line(row.model_dump(mode="json")) + "\n")
        part.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def _short(summary: EvalSummary, fail_under: float | None, fail_on_worse: bool) -> list[str]:
    """What makes the run fail, a line each."""
    reasons = []
    if summary.errors == summary.rows:
        reasons.append("no row could be checked")
    if fail_under is not None and summary.passed.value < fail_under:
        reasons.append(f"{summary.passed.value:.1%} of the rows pass, below {fail_under:.1%}")
    comparison = summary.comparison
    if fail_on_worse and comparison is not None and comparison.worse:
        reasons.append(f"{comparison.worse} rows passed in the last run and do not now")
    return reasons


def _show(summary: EvalSummary, results: Sequence[EvalResult]) -> None:
    wrong = [row for row in results if not row.passed]
    for row in wrong[:ROWS_SHOWN]:
        typer.echo(f"{_named(row.id, row.question)}: {row.error or row.failures[0]}")
        for line in row.failures[1:]:
            typer.echo(f"    {line}")
    if len(wrong) > ROWS_SHOWN:
        typer.echo(f"and {len(wrong) - ROWS_SHOWN} more rows that do not pass")
    told = ", ".join(f"{number} {verdict}" for verdict, number in sorted(summary.verdicts.items()))
    typer.echo(f"{summary.rows} rows: {told}")
    for pair, number in sorted(summary.expected.items()):
        expected, _, verdict = pair.partition(": ")
        typer.echo(f"    expected {expected}, found {verdict}: {number}")
    typer.echo(f"passed: {_rate(summary.passed)}")
    if summary.comparison is not None:
        _show_comparison(summary.comparison)


def _show_comparison(found: Comparison) -> None:
    rest = "".join(
        f", {number} {word}" for number, word in ((found.added, "new"), (found.gone, "gone"))
        if number
    )  # fmt: skip
    typer.echo(f"last run: {_rate(found.before)} of {found.rows} rows in both{rest}")
    difference = found.difference
    typer.echo(
        f"since then: {100 * difference.value:+.1f} points [{100 * difference.low:+.1f}, "
        f"{100 * difference.high:+.1f}], {found.better} rows better, {found.worse} worse"
    )
    for turn in found.turned[:ROWS_SHOWN]:
        changed = f" (changed: {', '.join(turn.changed)})" if turn.changed else ""
        typer.echo(
            f"    {_named(turn.id, turn.question)}: {_word(turn.before)} -> {_word(turn.after)}"
            f"{changed}"
        )
        for sentence in turn.sentences:
            typer.echo(f"        {sentence.before} -> {sentence.after}: {sentence.text}")
    if len(found.turned) > ROWS_SHOWN:
        typer.echo(f"    and {len(found.turned) - ROWS_SHOWN} more that turned")


def _named(id: str | int | None, question: str) -> str:
    return str(id) if id is not None else question or "a row without id and question"


def _word(verdict: str | None) -> str:
    return verdict or "not checked"


def _rate(rate: Rate) -> str:
    return f"{rate.value:.1%} [{rate.low:.1%}, {rate.high:.1%}]"
