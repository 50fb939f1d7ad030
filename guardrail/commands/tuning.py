"""``guardrail tune``: thresholds from answers that people judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guardrail.commands.lines import prepare_target
from guardrail.commands.options import AsJson, Config, JudgeName
from guardrail.core.errors import ConfigError, InputError

if TYPE_CHECKING:
    from rich.table import Table

    from guardrail.tuning.curve import CurvePoint, Tuning
    from guardrail.tuning.feedback import WeightAdvice
    from guardrail.tuning.labelled import Counts, LabelledTuning
    from guardrail.tuning.second import SecondTuning

__all__ = ["tune"]

FALSE_PASS = 0.05
"""Share of the wrong answers of a log that may pass, unless told."""

PATIENCE_S = 600.0
"""Seconds that one call of a chat model may take while it is measured."""

CURVE_ROWS = 12
"""Most thresholds of the curve that are printed, beside the chosen one."""


def tune(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="LOG", help="A score log with feedback.", dir_okay=False),
    ] = None,
    labelled: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="A file of labelled answers, in place of a log.",
            dir_okay=False,
        ),
    ] = None,
    score: Annotated[
        str, typer.Option(help="The score of a log that a threshold is wanted for.")
    ] = "overall",
    false_pass: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Share of wrong answers that may pass (of a log: 0.05 unless given).",
        ),
    ] = None,
    config: Config = None,
    judge: JudgeName = None,
    second: Annotated[
        str | None,
        typer.Option(
            metavar="chat:MODEL",
            help="Measure with --labelled whether this second judge improves on the first.",
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write what is learned into the file of --config.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Choose thresholds: where at most the share --false-pass of the wrong answers passes.

    With --labelled, the strictness of verdicts; without --false-pass that of the best balanced
    accuracy, and only where it does better than the one in force on rows that it was not learned
    from (five-fold cross-validation): the counts of both are printed. The CSV's first line names
    its columns: question (may be left out), answer or sentence, evidence or passages (may be left
    out where the settings name files of evidence), label. Evidence is a text, or a JSON list of
    texts and of [subject, property, value]; a label is supported, unsupported or contradicted (or
    true and false, yes and no, 1 and 0). At least ten supported answers are needed, and ten others;
    a hundred of each give intervals of some ten points. The answers are judged by the settings.

    With --second chat:MODEL as well, the answers are judged with and without a second opinion of
    that chat model, whose probabilities are calibrated on other answers than those that they are
    measured on. It is switched on only where it improves balanced accuracy beyond chance.

    With a LOG, a score of answers. An answer counts as wrong when a reader gave it or one of its
    sentences a thumb down or a correction, as right with thumbs up alone. Where SCK was scored, the
    weights that order right answers above wrong ones best are printed as well.

    Prints the curve with 95 % intervals and the settings, which --write writes. Rows that share
    their evidence count as a group, which makes intervals wider.
    """
    if (path is None) == (labelled is None):
        raise InputError("give a score log or --labelled CSV, one of the two")
    if write and config is None:
        raise ConfigError("--write needs a file to write to: --config FILE")
    if write and config is not None:
        prepare_target(config)
    if second is not None:
        if labelled is None:
            raise InputError("--second needs --labelled CSV: answers that people judged")
        _second(labelled, config, judge, second, write=write, as_json=as_json)
        return
    weights: list[WeightAdvice] = []
    found: Tuning
    if labelled is not None:
        found = _by_labels(labelled, config, judge, false_pass)
    else:
        assert path is not None
        wanted = FALSE_PASS if false_pass is None else false_pass
        found, weights = _by_feedback(path, score, wanted)
    if as_json:
        typer.echo(found.model_dump_json())
        for advice in weights:
            typer.echo(advice.model_dump_json())
    else:
        _show(found)
        if weights:
            _print(_weight_table(weights))
    if write:
        assert config is not None
        _write(config, found)
    elif found.toml and not as_json:
        typer.echo("guardrail: nothing is written; --write --config FILE writes it", err=True)


def _by_feedback(path: Path, score: str, false_pass: float) -> tuple[Tuning, list[WeightAdvice]]:
    from guardrail.log.records import open_log
    from guardrail.tuning.feedback import learn_sck_weights, read_labels
    from guardrail.tuning.feedback import tune as choose

    with open_log(path, read_only=True) as log:
        labels = read_labels(log)
    return choose(labels, score=score, false_pass=false_pass), learn_sck_weights(labels)


def _by_labels(
    path: Path, config: Path | None, judge: str | None, false_pass: float | None
) -> LabelledTuning:
    from guardrail.commands.progress import telling
    from guardrail.commands.setup import build_config
    from guardrail.engine.parts import Parts
    from guardrail.tuning.labelled import tune_labelled
    from guardrail.tuning.rows import read_labelled

    settings = build_config(config if config and config.exists() else None, judge=judge)
    parts = Parts(settings, {}, ())
    files = parts.own_evidence
    rows = read_labelled(path, files.evidence if files else None)
    if parts.grounding is None:
        raise ConfigError("a threshold is one of a judge's, and the judge of the settings is none")
    with telling() as tell:
        return tune_labelled(
            rows,
            parts.remembering_grounder(),
            false_pass=false_pass,
            before=(settings.policy.strictness or settings.strictness).thresholds,
            progress=lambda done, total: tell("tune", done, total),
        )


def _second(
    path: Path, config: Path | None, judge: str | None, name: str, *, write: bool, as_json: bool
) -> None:
    from guardrail.commands.progress import telling
    from guardrail.commands.settings_file import write_settings
    from guardrail.commands.setup import build_config
    from guardrail.engine.parts import Parts
    from guardrail.tuning.rows import read_labelled
    from guardrail.tuning.second import tune_second
    from judges.calibration import Calibration
    from judges.chat import ChatJudge
    from judges.recalibration import RecalibratedJudge

    if not name.startswith("chat:"):
        raise ConfigError(f"--second takes a chat model, as in chat:MODEL, not {name!r}")
    rows = read_labelled(path)
    settings = build_config(config if config and config.exists() else None, judge=judge)
    chat = settings.chat.model_copy(
        update={"calibration": Calibration(), "form": settings.chat.form or "label"}
    )
    second = RecalibratedJudge(
        ChatJudge(name.removeprefix("chat:"), settings=chat, timeout_s=PATIENCE_S)
    )
    with telling() as tell:
        found = tune_second(
            rows,
            Parts(settings.model_copy(update={"second_judge": None}), {}, ()),
            second,
            settings.second_judge,
            thresholds=(settings.policy.strictness or settings.strictness).thresholds,
            progress=lambda done, total: tell("tune", done, total),
        )
    second.close()
    if as_json:
        typer.echo(found.model_dump_json())
    else:
        _print(_second_table(found))
        typer.echo(
            f"{found.rows} answers by {found.groups} different texts of evidence; {found.judge} "
            f"was asked about {found.asked} and answered on {found.answered}."
        )
        typer.echo(
            f"Gain in balanced accuracy {found.gain:+.3f}; at least {found.lower:+.3f} with 90 % "
            "confidence."
        )
        if found.usage:
            typer.echo(", ".join(f"{count} {what}" for what, count in found.usage.items()))
    if not found.helps:
        typer.echo(f"{name} does not improve on the first judge; it is not switched on.")
        raise typer.Exit(1)
    if write and config is not None:
        write_settings(config, "second_judge", {"judge": name})
        write_settings(config, "chat.calibration", dict(found.calibration))
        typer.echo(f"guardrail: written to {config}", err=True)
    else:
        typer.echo("guardrail: nothing is written; --write --config FILE writes it", err=True)


def _second_table(found: SecondTuning) -> Table:
    from rich.table import Table

    table = Table(title=f"{found.judge} as second judge", box=None, pad_edge=False)
    for name in ("", "balanced accuracy", "AUC"):
        table.add_column(name, justify="right" if name else "left")
    for name, quality in (("first judge alone", found.first), ("with second opinion", found.both)):
        table.add_row(name, f"{quality.balanced:.3f}", f"{quality.auc:.3f}")
    return table


def _write(path: Path, found: Tuning) -> None:
    from guardrail.commands.settings_file import write_settings
    from guardrail.config import GuardrailConfig

    if found.chosen is None:
        raise ConfigError(f"{path} is left as it is: no threshold keeps false passes down")
    if not found.settings:
        typer.echo(f"guardrail: {path} is left as it is", err=True)
        return
    own = path.exists() and GuardrailConfig.from_toml(path, environ={}).policy.strictness
    if found.section == "strictness" and own:
        raise ConfigError(f"{path}: its policy has a strictness, which would win; take that out")
    write_settings(path, found.section, found.settings)
    typer.echo(f"guardrail: written to {path}", err=True)


def _show(found: Tuning) -> None:
    from guardrail.tuning.labelled import LabelledTuning

    _print(_curve_table(found))
    grouped = isinstance(found, LabelledTuning)
    groups = f", by {found.groups} different texts of evidence" if grouped else ""  # type: ignore[attr-defined]
    typer.echo(
        f"{found.right} right and {found.wrong} wrong answers{groups}; a right one scores above a "
        f"wrong one with probability {found.auc:.2f}."
    )
    if found.chosen is None:
        typer.echo(f"No threshold keeps false passes at {found.wanted:.0%}.")
        return
    best = found.chosen
    wrong = _share(best.false_pass, best.lower, best.upper)
    right = _share(best.pass_right, best.right_lower, best.right_upper)
    typer.echo(
        f"At {best.threshold:.4f}, {wrong} of wrong answers pass and {right} of right ones "
        "(95 % confidence)."
    )
    if isinstance(found, LabelledTuning):
        against = found.contradiction
        if against is not None:
            typer.echo(
                f"Of what does not pass, from {against.threshold:.4f} on {against.found:.1%} of "
                f"the contradicted answers and {against.wrong:.1%} of the others are called "
                "contradicted."
            )
        _print(_counts_table(found.before, found.after))
        if not found.helps:
            typer.echo("It does no better on such rows; keep what you have.")
    typer.echo(f"\n{found.toml}" if found.toml else "", nl=False)


def _share(value: float, low: float, high: float) -> str:
    return f"{value:.1%} [{low:.1%}, {high:.1%}]"


def _print(table: Table) -> None:
    from rich.console import Console

    Console().print(table)


def _curve_table(found: Tuning) -> Table:
    from rich.table import Table

    table = Table(title=f"Thresholds on {found.score}", box=None, pad_edge=False)
    for name in ("threshold", "wrong that pass", "95 %", "right that pass", "95 %"):
        table.add_column(name, justify="right")
    for point in _shown(found):
        mark = "→ " if point == found.chosen else ""
        table.add_row(
            f"{mark}{point.threshold:.4f}",
            f"{point.false_pass:.1%}",
            f"{point.lower:.1%}–{point.upper:.1%}",
            f"{point.pass_right:.1%}",
            f"{point.right_lower:.1%}–{point.right_upper:.1%}",
        )
    return table


def _counts_table(before: Counts, after: Counts) -> Table:
    from rich.table import Table

    table = Table(title="On rows that it was not learned from", box=None, pad_edge=False)
    for name in ("", "in force", "learned"):
        table.add_column(name, justify="right" if name else "left")
    rows = {
        "right that pass": ("right_passed", "right"),
        "wrong that pass": ("wrong_passed", "wrong"),
        "right called contradicted": ("right_called", "right"),
        "contradicted called so": ("named", "contradicted"),
    }
    for title, (part, whole) in rows.items():
        cells = (f"{getattr(it, part)} of {getattr(it, whole)}" for it in (before, after))
        table.add_row(title, *cells)
    table.add_row("balanced accuracy", f"{before.balanced:.3f}", f"{after.balanced:.3f}")
    return table


def _shown(found: Tuning) -> list[CurvePoint]:
    step = max(1, len(found.curve) // CURVE_ROWS)
    shown = {*found.curve[::step], *([found.chosen] if found.chosen else [])}
    return sorted(shown, key=lambda item: item.threshold)


def _weight_table(weights: list[WeightAdvice]) -> Table:
    from rich.table import Table

    table = Table(title="Weights of SCK by intent", box=None, pad_edge=False)
    for name in ("intent", "answers", "structure", "content", "knowledge", "AUC", "AUC, equal"):
        table.add_column(name, justify="left" if name == "intent" else "right")
    for weight in weights:
        parts = (weight.structure, weight.content, weight.knowledge, weight.auc, weight.auc_equal)
        table.add_row(weight.intent, str(weight.labels), *(f"{part:.2f}" for part in parts))
    return table
