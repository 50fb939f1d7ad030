"""Measures the written encoder files, as users run them: one text a pass, 8-bit weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from training.encoder_data import INTENTS, IntentRow
from training.encoder_model import load_tokenizer

__all__ = ["Calibration", "calibrate", "classification", "fit_temperature", "measure"]

Floats = NDArray[np.float32]

TEMPERATURES = np.geomspace(0.05, 20, 200)
"""Grid on which temperatures are sought."""


class Calibration(NamedTuple):
    """Coherence = sigmoid((logit - offset) / temperature)."""

    temperature: float
    offset: float


class _Model:
    """The written files behind the two calls that the metrics need."""

    def __init__(self, folder: Path, max_length: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._tokenizer = load_tokenizer(max_length, folder / "tokenizer.json")
        self._states: dict[str, Floats] = {}
        self._sessions = {
            name: onnxruntime.InferenceSession(
                folder / f"{name}.onnx", options, providers=["CPUExecutionProvider"]
            )
            for name in ("model", "discourse")
        }

    def run(self, output: str, texts: Sequence[str]) -> Floats:
        """One output for n texts."""
        rows = []
        for text in texts:
            ids = np.array([self._tokenizer.encode(text).ids], np.int64)
            inputs = {
                "input_ids": ids,
                "attention_mask": np.ones_like(ids),
                "token_type_ids": np.zeros_like(ids),
            }
            rows.append(self._sessions["model"].run([output], inputs)[0][0])
        return np.array(rows, np.float32)

    def _state(self, sentence: str) -> Floats:
        """State of a sentence; the shuffled texts ask for the same ones again."""
        if sentence not in self._states:
            self._states[sentence] = self.run("sentence_state", [sentence])[0]
        return self._states[sentence]

    def coherence_logits(self, texts: Sequence[Sequence[str]]) -> Floats:
        """Logit of each text."""
        logits = []
        for text in texts:
            states = np.array([self._state(sentence) for sentence in text], np.float32)
            logits.append(self._sessions["discourse"].run(["logit"], {"states": states})[0][0])
        return np.array(logits, np.float32)


def fit_temperature(logits: Floats, labels: NDArray[np.int64]) -> float:
    """The temperature on a grid that gives rows [n, c] the least cross entropy."""
    losses = []
    for temperature in TEMPERATURES:
        scaled = logits / temperature
        scaled = scaled - scaled.max(-1, keepdims=True)
        logs = scaled - np.log(np.exp(scaled).sum(-1, keepdims=True))
        losses.append(-logs[np.arange(len(labels)), labels].mean())
    return round(float(TEMPERATURES[int(np.argmin(losses))]), 3)


def calibrate(
    folder: Path,
    texts: Sequence[Sequence[str]],
    shuffled: Sequence[Sequence[str]],
    max_length: int,
) -> Calibration:
    """Find offset and temperature that tell texts from their shuffled twins.

    The offset lies midway between the two means; the temperature minimises cross entropy.
    """
    model = _Model(folder, max_length)
    right, wrong = model.coherence_logits(texts), model.coherence_logits(shuffled)
    offset = float(right.mean() + wrong.mean()) / 2
    margins = np.concatenate([right - offset, wrong - offset])
    labels = np.array([0] * len(right) + [1] * len(wrong))
    temperature = fit_temperature(np.stack([margins / 2, -margins / 2], axis=1), labels)
    return Calibration(temperature, offset)


def classification(labels: Sequence[int], predicted: Sequence[int]) -> dict[str, float]:
    """Accuracy, macro-F1 over all classes, and F1 of each class, 0 where it is never right."""
    truth, given = np.array(labels), np.array(predicted)
    scores = {}
    for index, name in enumerate(INTENTS):
        hits = int(((truth == index) & (given == index)).sum())
        named = int((truth == index).sum()) + int((given == index).sum())
        scores[f"intent_f1_{name}"] = 2 * hits / named if named else 0.0
    macro = sum(scores.values()) / len(scores)
    accuracy = float((truth == given).mean())
    return {"intent_accuracy": accuracy, "intent_macro_f1": macro, **scores}


def measure(
    folder: Path,
    questions: Sequence[IntentRow],
    texts: Sequence[Sequence[str]],
    shuffled: Sequence[Sequence[str]],
    max_length: int,
    trunk: Any,
) -> dict[str, float]:
    """Measure the written files.

    Args:
        folder: Folder of the artefact.
        questions: Validation questions.
        texts: Held-out texts.
        shuffled: The same in another order.
        max_length: Tokens a text is cut to.
        trunk: The original model, for the distance of embeddings.
    """
    model = _Model(folder, max_length)
    logits = model.run("intent", [row.question for row in questions])
    metrics = classification([row.intent for row in questions], logits.argmax(1).tolist())
    right, wrong = model.coherence_logits(texts), model.coherence_logits(shuffled)
    metrics["discourse_order_right"] = float((right > wrong).mean())
    metrics["discourse_accuracy"] = float(((right > 0).mean() + (wrong <= 0).mean()) / 2)
    sample = [" ".join(text) for text in texts[:150]] + [row.question for row in questions[:150]]
    original = _embed(trunk, sample, max_length)
    cosine = (model.run("embedding", sample) * original).sum(1)
    metrics["embedding_cosine_mean"] = float(cosine.mean())
    metrics["embedding_cosine_min"] = float(cosine.min())
    return metrics


@torch.no_grad()
def _embed(trunk: Any, texts: Sequence[str], max_length: int) -> Floats:
    """Embeddings of the original model, in 32-bit floats."""
    tokenizer = load_tokenizer(max_length)
    rows = []
    for text in texts:
        ids = torch.tensor([tokenizer.encode(text).ids])
        mean = trunk(input_ids=ids).last_hidden_state[0].mean(0)
        rows.append((mean / mean.norm()).numpy())
    return np.array(rows, np.float32)
