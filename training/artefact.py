"""Writes the judge's folder: model in eight bits, tokenizer, ``judge.json``, model card."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from benchmarks.data import held_out
from judges.heads import HEADS, TOKEN_HEADS, Calibration, JudgeCard
from judges.sums import write_sums
from training.batches import LONGEST
from training.calibrate import fit_temperature
from training.card import write_card
from training.evaluate import Measured, breakdown, logits, measure, table
from training.grounding import (
    cross_fitted,
    fit_calibrations,
    ground,
    kinds_table,
    measure_grounding,
    measured_table,
    uncalibrated,
)
from training.judge_export import write_cross_encoder
from training.model import CrossEncoder
from training.rows import NO_LABEL, Row
from training.statements import Statement

__all__ = ["calibration_rows", "write_judge", "write_model"]

NAME = "minilm-l6-judge"
CALIBRATION_SHARE = 0.3
"""Share of validation premises that temperatures are fitted on; error is measured on the rest."""
LEAST_ROWS = 50
"""Rows that a temperature is fitted on at least; fewer say more of chance than of the judge."""


def write_model(model: CrossEncoder, path: Path, *, quantise: bool = True) -> None:
    """Write a judge's network as one ONNX file, in eight bits or in 32."""
    write_cross_encoder(
        {k: v.detach().float().cpu().numpy() for k, v in model.state_dict().items()},
        path,
        heads=list(HEADS),
        token_heads=list(TOKEN_HEADS),
        attention_heads=model.config.attention_heads,
        epsilon=model.config.layer_norm_eps,
        quantise=quantise,
    )


def write_judge(
    model: CrossEncoder,
    folder: Path,
    *,
    tokenizer: Path,
    validation: Sequence[Row],
    statements: Sequence[Statement] = (),
    version: str,
    temperature: Mapping[str, float] | None = None,
    history: str = "",
) -> list[Measured]:
    """Export, calibrate and measure the judge.

    Args:
        model: The trained judge.
        folder: Where the artefact goes; made when missing.
        tokenizer: The ``tokenizer.json`` the judge was trained with.
        validation: Rows that were not trained on.
        statements: Statements that were not trained on; verdicts are calibrated on them.
        version: Version of the weights.
        temperature: By head, for heads that too few rows of ``validation`` can tell.
        history: What the model card adds on how the judge came about.

    Returns:
        What was measured.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_model(model, folder / "model.onnx")
    _write_tokenizer(tokenizer, folder / "tokenizer.json")
    longest = min(LONGEST, model.config.positions)
    _write_card_file(folder, version, longest)
    scores = logits(folder, validation)
    temperature = {**dict.fromkeys(HEADS, 1.0), **(temperature or {})}
    temperature |= _temperatures(scores, validation)
    measured = measure(scores, validation, temperature, unseen=calibration_rows(validation))
    verdicts, calibrations = _verdicts(folder, statements)
    _write_card_file(folder, version, longest, temperature, calibrations, measured)
    write_sums(folder)
    write_card(
        folder / "README.md",
        version,
        verdicts,
        table(measured),
        breakdown(scores, validation),
        history=history,
    )
    return measured


def calibration_rows(rows: Sequence[Row]) -> list[bool]:
    """Tell for each validation row whether temperatures are fitted on it."""
    return [held_out(row.premise, CALIBRATION_SHARE, salt="calibration") for row in rows]


def _temperatures(
    scores: Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]], rows: Sequence[Row]
) -> dict[str, float]:
    """One temperature a head that enough rows tell; every source counts alike."""
    fitted = calibration_rows(rows)
    result = {}
    for head in HEADS:
        labels = [
            _label(row, head) if fit else NO_LABEL for row, fit in zip(rows, fitted, strict=True)
        ]
        chosen = [i for i, label in enumerate(labels) if label != NO_LABEL]
        if len(chosen) < LEAST_ROWS or len({labels[i] for i in chosen}) < 2:
            continue
        sources = [rows[i].source for i in chosen]
        weights = np.array([1.0 / sources.count(source) for source in sources])
        picked = np.array([labels[i] for i in chosen])
        result[head] = round(fit_temperature(scores[head][chosen], picked, weights), 4)
    return result


def _label(row: Row, head: str) -> int:
    if head == "attribution":
        return row.attribution[0] if len(row.attribution) == 1 else NO_LABEL
    label: int = getattr(row, head)
    return max(label, NO_LABEL)


def _write_tokenizer(source: Path, target: Path) -> None:
    tokenizer = Tokenizer.from_file(str(source))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.save(str(target), pretty=False)


def _verdicts(folder: Path, statements: Sequence[Statement]) -> tuple[str, dict[str, Calibration]]:
    """What the card says of verdicts, each half of the sets calibrated on the other; and what is
    fitted on all of them.
    """
    if not statements:
        return "", {}
    bare = ground(uncalibrated(folder), statements)
    crossed = cross_fitted(bare, statements)
    measured = measured_table(measure_grounding(crossed, statements))
    return f"{measured}\n\n{kinds_table(crossed, statements)}", fit_calibrations(bare, statements)


def _write_card_file(
    folder: Path,
    version: str,
    longest: int,
    temperature: Mapping[str, float] | None = None,
    grounding: Mapping[str, Calibration] | None = None,
    measured: Sequence[Measured] = (),
) -> None:
    metrics = {
        f"{item.head}/{item.source}": {
            "rows": item.rows,
            "accuracy": round(item.accuracy, 4),
            "macro_f1": round(item.macro_f1, 4),
            "ece": round(item.ece, 4),
        }
        for item in measured
    }
    card = {
        "name": NAME,
        "version": version,
        "max_length": longest,
        "labels": {**HEADS, **TOKEN_HEADS},
        "temperature": temperature or {},
        "grounding": {kind: item.model_dump() for kind, item in (grounding or {}).items()},
        "metrics": metrics,
    }
    JudgeCard.model_validate(card)
    (folder / "judge.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
