"""``guardrail eval``: judge a file of a chatbot's answers for CI."""

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
    arg,
    build_config,
    build_guard,
    opt,
)
from guardrail.core.errors import file_errors
from guardrail.lines import LineJob, json_line

if TYPE_CHECKING:
    from guardrail.config import GuardrailConfig
    from guardrail.core.types.answers import CheckRequest
    from guardrail.evaluation.runs import Comparison, EvalResult, EvalSummary

ROWS_SHOWN = 20


def evaluate(
    source: Annotated[str, arg("JSON lines: answers to judge.", "FILE|-")],
    fail_under: Annotated[
        float | None,
        opt("", "Exit with 3 if a smaller share of the rows passes.", min=0.0, max=1.0),
    ] = None,
    fail_on_worse: Annotated[
        bool, opt("--fail-on-worse", "Exit with 3 if a row passed last time only.")
    ] = False,
    against: Annotated[
        Path | None,
        opt("--against", "The last run, from --output; may be missing.", "FILE"),
    ] = None,
    output: Annotated[Path | None, opt("--output -o", "Where to store this run.", "FILE")] = None,
    junit: Annotated[Path | None, opt("--junit", "Write JUnit XML.", "FILE")] = None,
    supported: Annotated[
        float, opt("", "Minimum share of supported claims.", min=0.0, max=1.0)
    ] = 1.0,
    contradicted: Annotated[
        float, opt("", "Maximum share of contradicted claims.", min=0.0, max=1.0)
    ] = 0.0,
    invariants: Annotated[
        bool, opt("--invariants", "Test the guarantees on these rows; needs no labels.")
    ] = False,
    kg: Graph = None,
    config: Config = None,
    judge: JudgeName = None,
    strictness: StrictnessName = None,
    as_json: AsJson = False,
) -> None:
    """Judge a chatbot's answers for CI: a table, changes since the last run, an exit status.

    Reads {id, question, answer, evidence, expected?}. evidence is a text, or a list of items,
    as in check; without it the graph is used. expected is supported, unsupported, contradicted or
    no_claim: the row passes if that is the answer's verdict. Without it, the row passes if its
    claims are supported (--supported, --contradicted) and its scores reach the thresholds of the
    policy in the settings. What cannot be checked does not pass.

    Of that policy, strictness, thresholds and deadline_s apply. The answer is judged as written, so
    what a policy does with one (contradicted, unsupported, below, refusal, dry_run, sampling and
    retries, structured) does not.

    --output stores {id, question, answer, evidence_hash, expected, verdict, passed, claims,
    supported, contradicted, failures, sentences, versions, error} of each row; --against compares
    the run with such a file: changed verdicts, and the difference of the shares that pass with its
    95 % interval. Both may name one file. Missing folders are created.

    --invariants tests the guarantees instead: it shuffles, duplicates and splits the evidence,
    copies sentences of it, rewrites and breaks values, and counts wrong verdicts.

    The exit status is 0 if all is well, 1 if the file or a setting cannot be used, and 3 if
    --fail-under or --fail-on-worse applies or no row could be checked.
    """
    from guardrail.evaluation.assertion import Requirement
    from guardrail.evaluation.runs import (
        EvalResult,
        evaluation_job,
        read_run,
        summarise,
        write_junit,
    )

    last = read_run(against) if against is not None and against.exists() else None
    for path in filter(None, (output, junit)):
        prepare_target(path)
    settings = build_config(config, kg=kg, judge=judge, strictness=strictness)
    if invariants:
        _test_invariants(settings, source, as_json=as_json)
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
    reasons = []
    if summary.errors == summary.rows:
        reasons.append("no row could be checked")
    if fail_under is not None and summary.passed.value < fail_under:
        reasons.append(f"{summary.passed.value:.1%} of the rows pass, below {fail_under:.1%}")
    if fail_on_worse and summary.comparison is not None and summary.comparison.worse:
        reasons.append(f"{summary.comparison.worse} rows passed in the last run and do not now")
    for reason in reasons:
        typer.echo(f"guardrail: {reason}", err=True)
    if reasons:
        raise typer.Exit(3)  # judged, but falls short; 1 is for unusable input


def _test_invariants(settings: GuardrailConfig, source: str, *, as_json: bool) -> None:
    """Test the guarantees on the rows of a file, and print the violations of each."""
    from guardrail.evaluation.invariants import GUARANTEES, measured, trials_of
    from guardrail.evaluation.rows import EvalRow
    from guardrail.evaluation.runs import EvalResult

    requests: list[CheckRequest] = []

    def collect(rows: Sequence[EvalRow]) -> list[EvalResult]:
        requests.extend(row.request() for row in rows)
        return [EvalResult() for _ in rows]

    for row in results_of(LineJob(EvalRow, collect, title="eval"), source):
        if row["error"]:
            typer.echo(f"guardrail: {row['error']}", err=True)
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
    """Replace the file in one step, so that an interrupted run leaves the last one intact."""
    part = path.with_name(f"{path.name}.part")
    with file_errors("write", path):
        with part.open("w", encoding="utf-8") as file:
            file.writelines(json_line(row.model_dump(mode="json")) + "\n" for row in results)
        part.replace(path)


def _show(summary: EvalSummary, results: Sequence[EvalResult]) -> None:
    wrong = [row for row in results if not row.passed]
    for row in wrong[:ROWS_SHOWN]:
        reasons = [row.error] if row.error else row.failures
        typer.echo(f"{_named(row.id, row.question)}: " + "\n    ".join(reasons))
    if len(wrong) > ROWS_SHOWN:
        typer.echo(f"and {len(wrong) - ROWS_SHOWN} more rows that do not pass")
    verdicts = (f"{number} {verdict}" for verdict, number in sorted(summary.verdicts.items()))
    typer.echo(f"{summary.rows} rows: {', '.join(verdicts)}")
    for pair, number in sorted(summary.expected.items()):
        expected, _, verdict = pair.partition(": ")
        typer.echo(f"    expected {expected}, found {verdict}: {number}")
    typer.echo(f"passed: {summary.passed.percent}")
    if summary.comparison is not None:
        _show_comparison(summary.comparison)


def _show_comparison(found: Comparison) -> None:
    added = f", {found.added} new" if found.added else ""
    gone = f", {found.gone} gone" if found.gone else ""
    typer.echo(f"last run: {found.before.percent} of {found.rows} rows in both{added}{gone}")
    since = found.difference
    typer.echo(
        f"since then: {100 * since.value:+.1f} points [{100 * since.low:+.1f}, "
        f"{100 * since.high:+.1f}], {found.better} rows better, {found.worse} worse"
    )
    for turn in found.turned[:ROWS_SHOWN]:
        changed = f" (changed: {', '.join(turn.changed)})" if turn.changed else ""
        before, after = turn.before or "not checked", turn.after or "not checked"
        typer.echo(f"    {_named(turn.id, turn.question)}: {before} -> {after}{changed}")
        for text, (was, now) in turn.sentences.items():
            typer.echo(f"        {was} -> {now}: {text}")
    if len(found.turned) > ROWS_SHOWN:
        typer.echo(f"    and {len(found.turned) - ROWS_SHOWN} more that changed")


def _named(id: str | int | None, question: str) -> str:
    return str(id) if id is not None else question or "a row without id and question"
