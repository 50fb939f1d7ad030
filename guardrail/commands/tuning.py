"""``guardrail tune``: thresholds from labelled answers or feedback."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guardrail.commands.lines import prepare_target
from guardrail.commands.options import AsJson, Config, JudgeName, build_config
from guardrail.core.errors import ConfigError, InputError

if TYPE_CHECKING:
    from guardrail.tuning.curve import Tuning
    from guardrail.tuning.labelled import Counts, LabelledTuning
    from guardrail.tuning.second import SecondTuning

__all__ = ["tune"]

FALSE_PASS = 0.05
"""Default share of the wrong answers of a log that may pass."""
CALL_TIMEOUT_S = 600.0
"""Timeout of a chat model's call while it is measured."""
CURVE_ROWS = 12
"""Maximum thresholds printed, besides the chosen one."""
NOT_WRITTEN = "guardrail: nothing is written; --write --config FILE writes it"


def tune(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="LOG", help="A score log with feedback.", dir_okay=False),
    ] = None,
    labelled: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV", help="A file of labelled answers instead of a log.", dir_okay=False
        ),
    ] = None,
    score: Annotated[str, typer.Option(help="The score of a log to find a threshold for.")] = (
        "overall"
    ),
    false_pass: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Share of wrong answers that may pass. Default for a log: 0.05.",
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
        bool, typer.Option("--write", help="Write the result into the file of --config.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Choose thresholds with which at most the share --false-pass of the wrong answers passes.

    With --labelled: the strictness of verdicts. Without --false-pass, the one with the best
    balanced accuracy, and only if it does better than the current one on rows that it was not
    learned from (five-fold cross-validation); the counts of both are printed. The first line of the
    CSV names its columns: question (optional), answer or sentence, evidence or passages (optional
    if the settings name evidence files), label. Evidence is a text, or a JSON list of texts and of
    [subject, property, value]; a label is supported, unsupported or contradicted (or true and
    false, yes and no, 1 and 0). At least ten supported answers and ten others are needed; a hundred
    of each give intervals of about ten points. The answers are judged with the settings.

    With --second chat:MODEL as well: the answers are judged with and without a second opinion of
    that chat model. Its probabilities are calibrated on other answers than those it is measured on.
    It is switched on only if it improves balanced accuracy beyond chance.

    With a LOG, a score of answers. An answer counts as wrong if a reader gave it or one of its
    sentences a thumb down or a correction, and as right with only thumbs up.

    Prints the curve with 95 % intervals and the settings, which --write writes. Rows with the same
    evidence count as a group, which makes intervals wider.
    """
    if (path is None) == (labelled is None):
        raise InputError("give either a score log or --labelled CSV")
    if write and config is None:
        raise ConfigError("--write needs a file to write to: --config FILE")
    if write and config is not None:
        prepare_target(config)
    if second is not None:
        if labelled is None:
            raise InputError("--second needs --labelled CSV: answers that people judged")
        _second(labelled, config, judge, second, write=write, as_json=as_json)
        return
    found: Tuning
    if labelled is not None:
        found = _by_labels(labelled, config, judge, false_pass)
    else:
        assert path is not None
        found = _by_feedback(path, score, FALSE_PASS if false_pass is None else false_pass)
    if as_json:
        typer.echo(found.model_dump_json())
    else:
        _show(found)
    if write:
        assert config is not None
        _write(config, found)
    elif found.toml and not as_json:
        typer.echo(NOT_WRITTEN, err=True)


def _by_feedback(path: Path, score: str, false_pass: float) -> Tuning:
    from guardrail.log.records import open_log
    from guardrail.tuning.feedback import read_labels
    from guardrail.tuning.feedback import tune as choose

    with open_log(path, read_only=True) as log:
        labels = read_labels(log)
    return choose(labels, score=score, false_pass=false_pass)


def _by_labels(
    path: Path, config: Path | None, judge: str | None, false_pass: float | None
) -> LabelledTuning:
    from guardrail.commands.progress import telling
    from guardrail.engine.parts import Parts
    from guardrail.evaluation.rows import read_labelled
    from guardrail.tuning.labelled import tune_labelled

    settings = build_config(config if config and config.exists() else None, judge=judge)
    parts = Parts(settings, {}, ())
    files = parts.own_evidence
    rows = read_labelled(path, files.evidence if files else None)
    if parts.grounding is None:
        raise ConfigError("thresholds are those of a judge, and the settings name none")
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
    from guardrail.engine.parts import Parts
    from guardrail.evaluation.rows import read_labelled
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
        ChatJudge(name.removeprefix("chat:"), settings=chat, timeout_s=CALL_TIMEOUT_S)
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
        _show_second(found)
    if not found.helps:
        typer.echo(f"{name} does not improve on the first judge; it is not switched on.")
        raise typer.Exit(1)
    if write and config is not None:
        write_settings(config, "second_judge", {"judge": name})
        write_settings(config, "chat.calibration", dict(found.calibration))
        typer.echo(f"guardrail: written to {config}", err=True)
    else:
        typer.echo(NOT_WRITTEN, err=True)


def _write(path: Path, found: Tuning) -> None:
    from guardrail.commands.settings_file import write_settings
    from guardrail.config import GuardrailConfig

    if found.chosen is None:
        raise ConfigError(f"{path} is unchanged: no threshold keeps false passes down")
    if not found.settings:
        typer.echo(f"guardrail: {path} is unchanged", err=True)
        return
    own = path.exists() and GuardrailConfig.from_toml(path, environ={}).policy.strictness
    if found.section == "strictness" and own:
        raise ConfigError(f"{path}: its policy sets a strictness, which would win; remove that")
    write_settings(path, found.section, found.settings)
    typer.echo(f"guardrail: written to {path}", err=True)


def _show(found: Tuning) -> None:
    from guardrail.commands.render import print_table
    from guardrail.tuning.labelled import LabelledTuning

    step = max(1, len(found.curve) // CURVE_ROWS)
    shown = {*found.curve[::step], *([found.chosen] if found.chosen else [])}
    print_table(
        ("threshold", "wrong that pass", "95 %", "right that pass", "95 %"),
        [
            (
                f"{'→' if point == found.chosen else ' '} {point.threshold:.4f}",
                f"{point.false_pass:.1%}",
                f"{point.lower:.1%}–{point.upper:.1%}",
                f"{point.pass_right:.1%}",
                f"{point.right_lower:.1%}–{point.right_upper:.1%}",
            )
            for point in sorted(shown, key=lambda item: item.threshold)
        ],
        title=f"Thresholds on {found.score}",
    )
    labelled = found if isinstance(found, LabelledTuning) else None
    groups = f", by {labelled.groups} different texts of evidence" if labelled else ""
    typer.echo(
        f"{found.right} right and {found.wrong} wrong answers{groups}; a right one scores above a "
        f"wrong one with probability {found.auc:.2f}."
    )
    if found.chosen is None:
        typer.echo(f"No threshold keeps false passes at {found.wanted:.0%}.")
        return
    best = found.chosen
    typer.echo(
        f"At {best.threshold:.4f}, {best.false_pass:.1%} [{best.lower:.1%}, {best.upper:.1%}] of "
        f"wrong answers pass and {best.pass_right:.1%} [{best.right_lower:.1%}, "
        f"{best.right_upper:.1%}] of right ones (95 % confidence)."
    )
    if labelled:
        if (against := labelled.contradiction) is not None:
            typer.echo(
                f"Of the answers that do not pass, the threshold {against.threshold:.4f} calls "
                f"{against.found:.1%} of the contradicted ones and {against.wrong:.1%} of the "
                "others contradicted."
            )
        _show_counts(labelled.before, labelled.after)
        if not labelled.helps:
            typer.echo("It does no better on such rows; keep the current one.")
    typer.echo(f"\n{found.toml}" if found.toml else "", nl=False)


def _show_counts(before: Counts, after: Counts) -> None:
    from guardrail.commands.render import print_table

    rows = {
        "right that pass": ("right_passed", "right"),
        "wrong that pass": ("wrong_passed", "wrong"),
        "right called contradicted": ("right_called", "right"),
        "contradicted called so": ("named", "contradicted"),
    }
    print_table(
        ("", "current", "learned"),
        [
            *(
                (name, *(f"{getattr(it, part)} of {getattr(it, whole)}" for it in (before, after)))
                for name, (part, whole) in rows.items()
            ),
            ("balanced accuracy", f"{before.balanced:.3f}", f"{after.balanced:.3f}"),
        ],
        title="On rows that it was not learned from",
    )


def _show_second(found: SecondTuning) -> None:
    from guardrail.commands.render import print_table

    print_table(
        ("", "balanced accuracy", "AUC"),
        [
            (name, f"{quality.balanced:.3f}", f"{quality.auc:.3f}")
            for name, quality in (
                ("first judge alone", found.first),
                ("with second opinion", found.both),
            )
        ],
        title=f"{found.judge} as second judge",
    )
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
