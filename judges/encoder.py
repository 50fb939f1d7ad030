"""The shipped sentence encoder: embeddings, question intents, discourse, passage relevance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from guardrail.errors import JudgeError
from judges.batching import distinct
from judges.folder import Card, OnnxFolder
from judges.session import Segments, open_session, softmax
from judges.windows import spans

__all__ = ["SHIPPED_ENCODER", "EncoderCard", "OnnxEncoder", "create_encoder"]

SHIPPED_ENCODER = Path(__file__).parent / "weights" / "encoder"
"""Folder of the encoder that comes with the package."""

FRAME = 2
"""[CLS] and [SEP] of a text."""

MAX_SENTENCES = 64
"""Sentences of a text whose coherence is judged; all pairs of them are compared."""


class EncoderCard(Card):
    """What ``encoder.json`` says of a model."""

    name: str = "encoder"
    version: str = "0"
    max_length: int = Field(default=256, ge=16)
    labels: dict[str, tuple[str, ...]] = Field(default_factory=dict)


def create_encoder(folder: Path | str | None = None, *, threads: int | None = None) -> OnnxEncoder:
    """Make the sentence encoder; nothing is loaded yet.

    Args:
        folder: Folder of its files; the shipped encoder by default.
        threads: Texts computed at the same time; all cores by default.
    """
    return OnnxEncoder(folder, threads=threads)


class OnnxEncoder(OnnxFolder[EncoderCard]):
    """A sentence encoder with heads, as ONNX on the CPU.

    One loaded model serves as ``SentenceEncoder``, ``IntentClassifier``, ``DiscourseModel`` and
    ``RelevanceModel``. A text longer than the model reads is encoded in overlapping windows,
    whose outputs are averaged by length.

    Args:
        folder: Holds ``model.onnx``, ``tokenizer.json``, ``encoder.json`` and, for coherence,
            ``discourse.onnx``; the shipped encoder by default.
        threads: Texts computed at the same time; all cores by default.
    """

    _what = "encoder"

    def __init__(self, folder: Path | str | None = None, *, threads: int | None = None) -> None:
        place = SHIPPED_ENCODER if folder is None else Path(folder)
        super().__init__(place, EncoderCard, threads=threads)
        self._discourse: Any = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts; shape [n, d], rows of unit length.

        Raises:
            JudgeError: The model cannot be loaded or gave no usable output.
        """
        means = self._means(texts, "embedding")
        lengths = np.linalg.norm(means, axis=-1, keepdims=True)
        units: NDArray[np.float32] = (means / np.maximum(lengths, 1e-12)).astype(np.float32)
        return units

    def intents(self, questions: Sequence[str]) -> list[dict[str, float]]:
        """Probability of each intent, by name, for n questions (SCK, Structure).

        Raises:
            JudgeError: The model cannot be loaded or has no such head.
        """
        return self._intents(questions, "intent")

    def answer_intents(self, answers: Sequence[str]) -> list[dict[str, float]]:
        """Probability of each intent that n answers look written for (SCK, Structure).

        The embeddings of answers are aligned with those of questions first.

        Raises:
            JudgeError: The model cannot be loaded or has no such head.
        """
        return self._intents(answers, "answer_intent")

    def coherence(self, texts: Sequence[Sequence[str]]) -> list[float]:
        """Coherence in [0, 1] of n texts, each a sequence of sentences (CONNER eq. 4).

        Neighbours and the order of all pairs are judged; start and end of the text count as
        neighbours. Of a text of more than 64 sentences the first 64 are read. In a text without
        sentences nothing is out of order: 1.

        Raises:
            JudgeError: The model cannot be loaded or has no such head.
        """
        read = [list(text)[:MAX_SENTENCES] for text in texts]
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

        Raises:
            JudgeError: The model cannot be loaded or gave no usable output.
        """
        wanted, inverse = distinct([(query, passage) for query, passage in pairs])
        vectors = self.embed([text for pair in wanted for text in pair])
        cosines = (vectors[0::2] * vectors[1::2]).sum(-1, dtype=np.float64)
        scores = np.clip(cosines, 0.0, 1.0).tolist()
        return [scores[i] for i in inverse]

    def _text_logit(self, states: NDArray[np.float64]) -> float:
        """Log-odds that sentences with these states [s, d] make a text in this order."""
        with self._lock:
            if self._discourse is None:
                self._discourse = open_session(self._folder / "discourse.onnx")
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
        wanted, inverse = distinct(texts)
        room = self.card.max_length - FRAME
        sequences: list[Segments] = []
        owners: list[int] = []
        for i, ids in enumerate(self._model.tokenize(wanted)):
            for start, end in spans(len(ids), room):
                sequences.append(Segments(ids[start:end]))
                owners.append(i)
        values = self._model.run(sequences)[output].astype(np.float64)
        weights = np.array([float(sequence.length) for sequence in sequences])
        sums = np.zeros((len(wanted), values.shape[1]))
        np.add.at(sums, owners, values * weights[:, None])
        totals = np.bincount(owners, weights, minlength=len(wanted))
        means: NDArray[np.float64] = (sums / totals[:, None])[inverse]
        return means
