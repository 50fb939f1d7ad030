"""The shipped sentence encoder: embeddings, question intents, discourse, passage relevance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from guardrail.core.errors import JudgeError
from judges.batching import spans
from judges.folder import Card, OnnxFolder
from judges.service import MicroBatcher
from judges.session import WEIGHTS, open_session, softmax

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

SHIPPED_ENCODER = WEIGHTS / "encoder"
"""Folder of the encoder that comes with the package."""

Outputs = Mapping[str, NDArray[np.float64]]
"""Every output of the model for one text, by name."""


class EncoderCard(Card):
    """The description in ``encoder.json``."""

    name: str = "encoder"
    version: str = "0"
    max_length: int = Field(default=256, ge=16)
    labels: dict[str, tuple[str, ...]] = Field(default_factory=dict)


def create_encoder(folder: Path | str | None = None) -> OnnxEncoder:
    """Make the sentence encoder of a folder, the shipped one by default; nothing is loaded yet."""
    return OnnxEncoder(folder)


class OnnxEncoder(OnnxFolder[EncoderCard]):
    """A sentence encoder with heads, as ONNX on the CPU.

    One model embeds texts, ranks passages, judges coherence and classifies intents. A text longer
    than its context is encoded in overlapping windows, whose outputs are averaged by length. One
    pass computes all outputs of a text; threads share passes and a cache.

    Every method raises ``JudgeError`` if the model cannot be loaded, lacks the head or has no
    finite output.

    Args:
        folder: Holds ``model.onnx``, ``tokenizer.json``, ``encoder.json`` and, for coherence,
            ``discourse.onnx``; the shipped encoder by default.
    """

    _what = "encoder"

    def __init__(self, folder: Path | str | None = None) -> None:
        place = SHIPPED_ENCODER if folder is None else Path(folder)
        super().__init__(place, EncoderCard)
        self._batches: MicroBatcher[str, Outputs] = MicroBatcher(
            self._computed,
            key=lambda: self._what,
            cache_size=2_048,  # outputs of 6 kB each: several batches of answers
        )

    def read_ahead(self, texts: Sequence[str]) -> None:
        """Encode n texts in one batch and cache their outputs."""
        self._batches.call(texts)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts; shape [n, d], rows of unit length."""
        means = self._means(texts, "embedding")
        lengths = np.linalg.norm(means, axis=-1, keepdims=True)
        units: NDArray[np.float32] = (means / np.maximum(lengths, 1e-12)).astype(np.float32)
        return units

    def intents(self, questions: Sequence[str]) -> list[dict[str, float]]:
        """Probability of each intent, by name, for n questions (SCK, Structure)."""
        return self._intents(questions, "intent")

    def answer_intents(self, answers: Sequence[str]) -> list[dict[str, float]]:
        """Probability of each intent that n answers were written for (SCK, Structure).

        Answers are aligned with questions in feature space first.
        """
        return self._intents(answers, "answer_intent")

    def coherence(self, texts: Sequence[Sequence[str]]) -> list[float]:
        """Coherence in [0, 1] of n texts, each a sequence of sentences (CONNER eq. 4).

        Neighbours and the order of all pairs are scored; the edges of the text count as
        neighbours. At most 64 sentences are read. A text without sentences is coherent: 1.
        """
        read = [list(text)[:64] for text in texts]
        states = self._means([sentence for text in read for sentence in text], "sentence_state")
        temperature = self._temperature("discourse")
        scores, place = [], 0
        for text in read:
            own = states[place : place + len(text)]
            place += len(text)
            logit = self._text_logit(own) / temperature if text else np.inf
            scores.append(float(1 / (1 + np.exp(-logit))))
        return scores

    def relevance(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Relevance in [0, 1] of n (query, passage) pairs (CONNER eq. 2).

        The cosine of the two embeddings, negative ones as 0.
        """
        vectors = self.embed([text for pair in pairs for text in pair])
        cosines = (vectors[0::2] * vectors[1::2]).sum(-1, dtype=np.float64)
        scores: list[float] = np.clip(cosines, 0.0, 1.0).tolist()
        return scores

    @cached_property
    def _discourse(self) -> InferenceSession:
        return open_session(self._folder / "discourse.onnx")

    def _text_logit(self, states: NDArray[np.float64]) -> float:
        """Log-odds that sentences with these states [s, d] make a text in this order."""
        feed = {"states": states.astype(np.float32)}
        logit = float(self._discourse.run(["logit"], feed)[0][0])
        if not np.isfinite(logit):
            raise JudgeError(f"{self._folder / 'discourse.onnx'} gave a number that is not finite")
        return logit

    def _intents(self, texts: Sequence[str], head: str) -> list[dict[str, float]]:
        labels = self.card.labels.get("intent")
        if not labels:
            raise JudgeError(f"the encoder in {self._folder} has no intent head")
        if not texts:
            return []
        logits = self._means(texts, head)
        if logits.shape[1] != len(labels):
            raise JudgeError(f"encoder.json in {self._folder} gives wrong labels for intents")
        rows = softmax(logits, self._temperature(head, self._temperature("intent")))
        return [dict(zip(labels, row.tolist(), strict=True)) for row in rows]

    def _temperature(self, head: str, default: float = 1.0) -> float:
        return self.card.temperature.get(head, default)

    def _means(self, texts: Sequence[str], output: str) -> NDArray[np.float64]:
        """One output of n texts, averaged over windows by their length, [n, k]."""
        self.warm_up()
        if output not in self._model.outputs:
            raise JudgeError(f"the encoder in {self._folder} has no output {output!r}")
        if not texts:
            return np.zeros((0, 0))
        return np.stack([found[output] for found in self._batches.call(texts)])

    def _computed(self, texts: Sequence[str]) -> list[Outputs]:
        room = self.card.max_length - 2  # [CLS] and [SEP]
        windows = [
            (i, ids[start:end])
            for i, ids in enumerate(self._model.tokenize(texts))
            for start, end in spans(len(ids), room)
        ]
        owners = [i for i, _ in windows]
        weights = np.array([len(ids) + 2.0 for _, ids in windows])
        totals = np.bincount(owners, weights, minlength=len(texts))
        means = {}
        started = self._model.start([[ids] for _, ids in windows])
        for name, values in self._model.whole(started).items():
            sums = np.zeros((len(texts), values.shape[1]))
            np.add.at(sums, owners, values.astype(np.float64) * weights[:, None])
            means[name] = sums / totals[:, None]
        return [{name: rows[i].copy() for name, rows in means.items()} for i in range(len(texts))]
