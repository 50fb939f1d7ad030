"""The shipped encoder gives a text the same outputs whoever asks, and computes them once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from judges.encoder import OnnxEncoder, create_encoder

TEXTS = ("Who was Ada Lovelace?", "Ada Lovelace, English mathematician", "Why is the sky blue?")


def test_a_remembered_text_has_the_outputs_it_had_among_others_and_alone() -> None:
    encoder = create_encoder()
    encoder.read_ahead(TEXTS)
    together = encoder.embed(TEXTS)
    alone = np.concatenate([create_encoder().embed([text]) for text in TEXTS])
    assert np.array_equal(together, alone)
    assert encoder.intents(TEXTS[:1]) == create_encoder().intents(TEXTS[:1])


def test_threads_that_ask_for_the_same_texts_get_the_same() -> None:
    encoder = create_encoder()
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(encoder.embed, [TEXTS, TEXTS[::-1]] * 6))
    assert all(np.array_equal(item, found[0]) for item in found[::2])
    assert all(np.array_equal(item[::-1], found[0]) for item in found[1::2])


class ByHand(OnnxEncoder):
    """The equations with given outputs in place of the models' own."""

    vectors = {"q": (0.6, 0.8), "p": (0.8, 0.6), "far": (-0.8, 0.6), "against": (-0.6, -0.8)}  # noqa: RUF012

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)

    def _means(self, texts: Sequence[str], output: str) -> NDArray[np.float64]:
        return np.ones((len(texts), 1))

    def _text_logit(self, states: NDArray[np.float64]) -> float:
        return {1: 0.0, 2: float(np.log(9)), 3: float(-np.log(9))}[len(states)]

    def _temperature(self, head: str, default: float = 1.0) -> float:
        return 2.0


def test_relevance_is_the_cosine_and_never_negative() -> None:
    """CONNER eq. 2: 0.6 * 0.8 + 0.8 * 0.6 = 0.96; 0.8 * 0.6 - 0.6 * 0.8 = 0; -1 counts as 0."""
    found = ByHand().relevance([("q", "p"), ("q", "far"), ("q", "against"), ("q", "p")])
    assert found == pytest.approx([0.96, 0.0, 0.0, 0.96], abs=1e-6)


def test_coherence_is_the_probability_of_the_discourse_model() -> None:
    """CONNER eq. 4, temperature 2: log-odds 0, ln 9 / 2 = ln 3 and -ln 3; no sentence at all."""
    found = ByHand().coherence([["s"], ["s"] * 2, ["s"] * 3, []])
    assert found == pytest.approx([0.5, 0.75, 0.25, 1.0], abs=1e-6)
