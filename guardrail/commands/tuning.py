"""``guardrail tune``: thresholds from labelled answers or feedback, written into the settings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guardrail.commands.lines import prepare_target, telling
from guardrail.commands.options import AsJson, Config, JudgeName, arg, build_config, opt
from guardrail.commands.render import print_table
from guardrail.core.errors import ConfigError, InputError, file_errors
from guardrail.core.fields import read_toml

if TYPE_CHECKING:
    from guardrail.config import GuardrailConfig
    from guardrail.tuning.second import SecondTuning
    from guardrail.tuning.thresholds import Tuning

NOT_WRITTEN = "guardrail: nothing is written; --write --config FILE writes it"
Setting = str | float | Sequence[float]


def tune(
    path: Annotated[Path | None, arg("A score log with feedback.", "LOG", dir_okay=False)] = None,
    labelled: Annotated[
        Path | None, opt("", "A file of labelled answers instead of a log.", "CSV", dir_okay=False)
    ] = None,
    score: Annotated[str, opt("", "The score of a log to find a threshold for.")] = ("overall"),
    false_pass: Annotated[
        float | None,
        opt("", "Share of wrong answers that may pass. Default for a log: 0.05.", min=0.0, max=1.0),
    ] = None,
    config: Config = None,
    judge: JudgeName = None,
    second: Annotated[
        str | None,
        opt(
            "",
            "Measure with --labelled whether this second judge improves on the first.",
            "chat:MODEL",
        ),
    ] = None,
    write: Annotated[bool, opt("--write", "Write the result into the file of --config.")] = False,
    as_json: AsJson = False,
) -> None:
    """Choose thresholds with which at most the share --false-pass of the wrong answers passes.

    With --labelled: the strictness of verdicts. Without --false-pass, the one with the best
    balanced accuracy, and only if it does better than the current one on rows that it was not
    learned from (five-fold cross-validation). The first line of the CSV names its columns: question
    (optional), answer or sentence, evidence or passages (optional if the settings name evidence
    files), label. Evidence is a text, or a JSON list of texts and of [subject, property, value]; a
    label is supported, unsupported or contradicted (or true and false, yes and no, 1 and 0). At
    least ten supported answers and ten others are needed; a hundred of each give intervals of about
    ten points. The answers are judged with the settings.

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
    if second is not None and labelled is None:
        raise InputError("--second needs --labelled CSV: answers that people judged")
    if write:
        if config is None:
            raise ConfigError("--write needs a file to write to: --config FILE")
        prepare_target(config)
    target = config if write else None
    found: Tuning
    if path is not None:
        from guardrail.log.records import open_log
        from guardrail.tuning.thresholds import tune_feedback

        share = 0.05 if false_pass is None else false_pass
        with open_log(path, read_only=True) as log:
            found = tune_feedback(log, score=score, false_pass=share)
    else:
        assert labelled is not None
        settings = build_config(config if config and config.exists() else None, judge=judge)
        if second is not None:
            _second(labelled, settings, second, target, as_json=as_json)
            return
        found = _by_labels(labelled, settings, false_pass)
    if as_json:
        typer.echo(found.model_dump_json())
    else:
        _show(found)
    if target is not None:
        _write(target, found)
    elif found.settings and not as_json:
        typer.echo(NOT_WRITTEN, err=True)


def write_settings(path: Path, sections: Mapping[str, Mapping[str, Setting]]) -> None:
    """Set values in sections of a settings file, all or none; the rest of it stays as it is.

    The file is created if missing. A section such as ``policy.thresholds`` replaces a plain value
    of that name, such as ``strictness = "strict"``.

    Args:
        path: The file.
        sections: Values by name, by section.

    Raises:
        ConfigError: The file cannot be read or written, is not TOML, or contains these settings in
            a form that this cannot change; it is then left unchanged.
    """
    with file_errors("write", path, ConfigError):
        content = path.read_bytes() if path.exists() else b""
        wanted = read_toml(content, path)
        after, advice = content.decode().replace("\r\n", "\n"), []
        for section, values in sections.items():
            lines = _lines(values)
            table = wanted
            for name in section.split("."):
                inner = table.get(name)
                table[name] = table = inner if isinstance(inner, dict) else {}
            table.update(read_toml("\n".join(lines.values()), path))
            after = _changed(after, section, lines)
            advice.append(f"into [{section}]: {', '.join(lines.values())}")
        try:
            written = read_toml(after, path)
        except ConfigError:
            written = {}
        if written != wanted:
            raise ConfigError(f"cannot change {path}; write {'; '.join(advice)}")
        path.write_text(after, encoding="utf-8")


def _lines(values: Mapping[str, Setting]) -> dict[str, str]:
    """Settings as lines of TOML; numbers with four decimals."""

    def toml(value: Setting) -> str:
        if isinstance(value, str):
            return json.dumps(value, ensure_ascii=False)
        if isinstance(value, Sequence):
            return f"[{', '.join(map(toml, value))}]"
        return f"{value:.4f}"

    quoted = {name: f'"{name}"' if "." in name else name for name in values}
    return {name: f"{quoted[name]} = {toml(value)}" for name, value in values.items()}


def _changed(text: str, section: str, lines: Mapping[str, str]) -> str:
    any_header = re.compile(r"^\s*\[", re.MULTILINE)
    header = re.search(rf"^\[{re.escape(section)}\][^\n]*\n?", text, re.MULTILINE)
    if header is None:
        first = any_header.search(text)
        end = first.start() if first else len(text)
        plain = re.compile(rf"^{re.escape(section)}\s*=[^\n]*\n?", re.MULTILINE)
        text = (plain.sub("", text[:end]) + text[end:]).rstrip()
        return "\n".join([*([text, ""] if text else []), f"[{section}]", *lines.values(), ""])
    following = any_header.search(text, header.end())
    end = following.start() if following else len(text)
    body = text[header.end() : end]
    for name, line in lines.items():
        setting = re.compile(rf'^\s*"?{re.escape(name)}"?\s*=[^\n#]*?(?=\s*(?:#|$))', re.MULTILINE)
        body, found = setting.subn(line, body, count=1)
        if not found:
            body = f"{line}\n{body}"
    return f"{text[: header.end()].rstrip()}\n{body}{text[end:]}"


def _by_labels(path: Path, settings: GuardrailConfig, false_pass: float | None) -> Tuning:
    from guardrail.engine.parts import Parts
    from guardrail.evaluation.rows import read_labelled
    from guardrail.tuning.thresholds import tune_labelled

    parts = Parts(settings, {}, ())
    files = parts.own_evidence
    rows = read_labelled(path, files.evidence if files else None)
    if parts.grounding is None:
        raise ConfigError("thresholds are those of a judge, and the settings name none")
    with telling() as tell:
        return tune_labelled(
            rows,
            parts.remembering_grounder(growing=False),
            false_pass=false_pass,
            before=(settings.policy.strictness or settings.strictness).thresholds,
            progress=lambda done, total: tell("tune", done, total),
        )


def _second(
    path: Path, settings: GuardrailConfig, name: str, target: Path | None, *, as_json: bool
) -> None:
    from guardrail.engine.parts import Parts
    from guardrail.evaluation.rows import read_labelled
    from guardrail.tuning.second import tune_second
    from judges.chat import ChatJudge
    from judges.settings import Calibration

    if not name.startswith("chat:"):
        raise ConfigError(f"--second takes a chat model, as in chat:MODEL, not {name!r}")
    parts = Parts(settings.model_copy(update={"second_judge": None}), {}, ())
    files = parts.own_evidence
    rows = read_labelled(path, files.evidence if files else None)
    chat = settings.chat.model_copy(update={"calibration": Calibration()})
    second = ChatJudge(name.removeprefix("chat:"), settings=chat, detail=False)
    with telling() as tell:
        found = tune_second(
            rows,
            parts,
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
        reason = f"{name} does not improve on the first judge"
        if found.lower > 0.0 and found.groups < found.least_groups:
            needed = f"at least {found.least_groups} different texts of evidence are needed"
            reason = f"{needed}, and these are {found.groups}"
        left = "remove second_judge from the settings" if settings.second_judge else ""
        typer.echo(f"{reason}; {left or 'it is not switched on'}.")
        raise typer.Exit(1)
    if target is None:
        typer.echo(NOT_WRITTEN, err=True)
        return
    calibration = dict(found.calibration)
    write_settings(target, {"second_judge": {"judge": name}, "chat.calibration": calibration})
    typer.echo(f"guardrail: written to {target}", err=True)


def _write(path: Path, found: Tuning) -> None:
    from guardrail.config import GuardrailConfig

    if found.chosen is None:
        raise ConfigError(f"{path} is unchanged: no threshold keeps false passes down")
    if not found.settings:
        typer.echo(f"guardrail: {path} is unchanged", err=True)
        return
    own = path.exists() and GuardrailConfig.from_toml(path, environ={}).policy.strictness
    if found.section == "strictness" and own:
        raise ConfigError(f"{path}: its policy sets a strictness, which would win; remove that")
    write_settings(path, {found.section: found.settings})
    typer.echo(f"guardrail: written to {path}", err=True)


def _show(found: Tuning) -> None:
    step = max(1, len(found.curve) // 12)  # a dozen rows, and the chosen one
    shown = {*found.curve[::step], *([found.chosen] if found.chosen else [])}
    rows = []
    for point in sorted(shown, key=lambda item: item.threshold):
        mark = "→" if point == found.chosen else " "
        rows.append((f"{mark} {point.threshold:.4f}", point.wrong.percent, point.right.percent))
    heads = ("threshold", "wrong that pass", "right that pass")
    print_table(heads, rows, title=f"Thresholds on {found.score}")
    groups = f", by {found.groups} different texts of evidence" if found.groups else ""
    typer.echo(
        f"{found.right} right and {found.wrong} wrong answers{groups}; a right one scores above a "
        f"wrong one with probability {found.auc:.2f}."
    )
    if found.chosen is None:
        typer.echo(f"No threshold keeps false passes at {found.wanted:.0%}.")
        return
    typer.echo(
        f"At {found.chosen.threshold:.4f}, {found.chosen.wrong.percent} of wrong answers pass and "
        f"{found.chosen.right.percent} of right ones (95 % confidence)."
    )
    if found.before is not None:
        typer.echo(
            f"Balanced accuracy on rows that it was not learned from: {found.after:.3f}, with the "
            f"current thresholds {found.before:.3f}."
        )
    if found.settings:
        typer.echo("\n".join(("", f"[{found.section}]", *_lines(found.settings).values())))
    else:
        typer.echo("It does no better on such rows; keep the current one.")


def _show_second(found: SecondTuning) -> None:
    named = {"first judge alone": found.first, "with second opinion": found.both}
    rows = [(name, f"{it.balanced:.3f}", f"{it.auc:.3f}") for name, it in named.items()]
    print_table(("", "balanced accuracy", "AUC"), rows, title=f"{found.judge} as second judge")
    typer.echo(
        f"{found.rows} answers by {found.groups} different texts of evidence; {found.judge} "
        f"was asked about {found.asked}, and its answer counted on {found.answered}.\n"
        f"Gain in balanced accuracy {found.gain:+.3f}; at least {found.lower:+.3f} with 90 % "
        "confidence."
    )
    for why, count in found.missing.items():
        typer.echo(f"Not counted on {count}: {why}.")
    if found.usage:
        typer.echo(", ".join(f"{count} {what}" for what, count in found.usage.items()))
