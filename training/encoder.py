"""Trains and writes the shipped sentence encoder.

    python -m training.encoder --data DIR --out DIR

runs the frozen trunk over the training texts (some minutes on one core; kept in ``--work`` for a
second run), fits the intent and the discourse head, writes the 8-bit ONNX files, and measures
those files on the validation rows.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from training.encoder_data import (
    INTENTS,
    IntentRow,
    Text,
    hold_out,
    load_intents,
    load_texts,
    shuffled,
)
from training.encoder_export import Encoder, export
from training.encoder_fit import (
    Floats,
    Recipe,
    SentenceTable,
    fit_discourse,
    fit_intent,
    statistics,
)
from training.encoder_metrics import calibrate, fit_temperature, measure
from training.encoder_model import (
    INTENT_FEATURES,
    DiscourseHead,
    extract,
    load_tokenizer,
    load_trunk,
    trunk_path,
)
from training.encoder_model_card import write_card
from training.requests import as_requests

__all__ = ["main"]

VERSION = "3"
MAX_LENGTH = 256
"""Tokens a text is cut to, as all-MiniLM-L6-v2 does."""

HELD_OUT_TEXTS = 0.08
"""Share of the text groups kept for validation of the discourse head."""

HELD_OUT_QUESTIONS = 0.1
"""Share of the training questions that set the temperature of the intent head."""

LONG_TEXTS = 1200
"""Whole texts that stand for answers when their features are aligned with questions'."""


class Held(NamedTuple):
    """Texts of at least four sentences that no training row shares a group with."""

    texts: list[tuple[str, ...]]
    shuffled: list[tuple[str, ...]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="training.encoder", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of intent/, nli/, …")
    parser.add_argument("--out", type=Path, required=True, help="folder of the artefact")
    parser.add_argument("--work", type=Path, help="folder that keeps trunk features between runs")
    parser.add_argument("--threads", type=int, default=1, help="processor threads of torch")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    train(options.data, options.out, work=options.work)


def train(data: Path, out: Path, *, work: Path | None = None) -> None:
    """Train both heads and write the artefact.

    Args:
        data: Folder with ``intent/``, ``nli/`` and ``attribution/``.
        out: Folder for ``model.onnx``, ``discourse.onnx``, ``tokenizer.json``, ``encoder.json``
            and ``README.md``.
        work: Folder for trunk features; None keeps them in memory only.
    """
    started = time.monotonic()
    recipe = Recipe()
    out.mkdir(parents=True, exist_ok=True)
    trunk = load_trunk()
    features = _Features(trunk, recipe.max_length, work)
    questions = load_intents(data / "intent" / "nfcats_train.jsonl.gz")
    questions += as_requests(questions)
    texts, kept = hold_out(load_texts(data), share=HELD_OUT_TEXTS, seed=recipe.seed)
    asked = features("questions", [row.question for row in questions])
    sentences = features("sentences", [line for text in texts for line in text.sentences])
    whole = random.Random(recipe.seed).sample(texts, min(LONG_TEXTS, len(texts)))
    answers = features("answers", [" ".join(text.sentences) for text in whole])

    temperature = _intent_temperature(asked, questions, recipe)
    intent = fit_intent(asked, [row.intent for row in questions], recipe)
    held = _held(kept, recipe.seed)
    discourse = _fit_discourse(texts, sentences, recipe)
    stretch, shift = _alignment(asked, questions, answers)

    shutil.copyfile(trunk_path() / "tokenizer.json", out / "tokenizer.json")
    parts = Encoder(trunk, intent, discourse, stretch, shift)
    files = (out / "model.onnx", out / "discourse.onnx")
    export(parts, *files)
    calibration = calibrate(out, held.texts, held.shuffled, MAX_LENGTH)
    export(parts._replace(offset=calibration.offset), *files)
    valid = load_intents(data / "intent" / "nfcats_valid.jsonl.gz")
    metrics = measure(out, valid, held.texts, held.shuffled, MAX_LENGTH, trunk)
    description = {
        "name": "all-MiniLM-L6-v2 + intent + discourse",
        "version": VERSION,
        "max_length": MAX_LENGTH,
        "labels": {"intent": list(INTENTS)},
        "temperature": {"intent": temperature, "discourse": calibration.temperature},
        "metrics": metrics,
    }
    (out / "encoder.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    write_card(out / "README.md", metrics, sizes=_sizes(out))
    for name, value in metrics.items():
        print(f"{name:40} {value:.4f}")
    print(f"{'seconds':40} {time.monotonic() - started:.0f}")


class _Features:
    """Trunk features of lists of texts, kept in a folder between runs where one is given."""

    def __init__(self, trunk: object, max_length: int, folder: Path | None) -> None:
        self._trunk = trunk
        self._tokenizer = load_tokenizer(max_length)
        self._folder = folder

    def __call__(self, name: str, texts: Sequence[str]) -> NDArray[np.float16]:
        file = self._folder / f"{name}-{len(texts)}.npy" if self._folder else None
        if file and file.exists():
            kept: NDArray[np.float16] = np.load(file)
            return kept
        started = time.monotonic()
        features = extract(self._trunk, self._tokenizer, texts)
        print(f"{name}: {len(texts)} texts, {time.monotonic() - started:.0f} s", flush=True)
        if file:
            file.parent.mkdir(parents=True, exist_ok=True)
            np.save(file, features)
        return features


def _intent_temperature(asked: Floats, rows: Sequence[IntentRow], recipe: Recipe) -> float:
    """Temperature of the intent head, from questions the head was not fitted on."""
    order = np.random.default_rng(recipe.seed).permutation(len(rows))
    held = order[: round(HELD_OUT_QUESTIONS * len(rows))]
    kept = order[len(held) :]
    labels = np.array([row.intent for row in rows])
    head = fit_intent(asked[kept], labels[kept].tolist(), recipe)
    with torch.no_grad():
        logits = head(torch.tensor(asked[held, :INTENT_FEATURES].astype(np.float32)))
    return fit_temperature(logits.numpy(), labels[held])


def _fit_discourse(texts: Sequence[Text], sentences: Floats, recipe: Recipe) -> DiscourseHead:
    lengths = np.array([len(text.sentences) for text in texts], np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    head = None
    for epoch, loss, fitted in fit_discourse(SentenceTable(sentences, starts, lengths), recipe):
        print(f"discourse epoch {epoch}: loss {loss:.3f}", flush=True)
        head = fitted
    assert head is not None
    return head


def _held(texts: Sequence[Text], seed: int) -> Held:
    """Held-out texts of four to twelve sentences, and each of them in another order."""
    rng = random.Random(seed)
    chosen = [text.sentences[:12] for text in texts if len(text.sentences) >= 4]
    return Held(
        chosen,
        [tuple(text[place] for place in shuffled(len(text), rng)) for text in chosen],
    )


def _alignment(
    asked: Floats, rows: Sequence[IntentRow], answers: Floats
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Stretch and shift that give answers the mean and spread of questions, per feature."""
    real = np.array([INTENTS[row.intent] != "not-a-question" for row in rows])
    mean, scale = statistics(asked[real][:, :INTENT_FEATURES])
    answer_mean, answer_scale = statistics(answers[:, :INTENT_FEATURES])
    stretch = scale / answer_scale
    return stretch, mean - answer_mean * stretch


def _sizes(out: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in sorted(out.glob("*.onnx"))}


if __name__ == "__main__":
    main()
