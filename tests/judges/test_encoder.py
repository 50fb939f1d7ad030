"""The shipped encoder gives a text the same outputs whoever asks, and computes them once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from judges.encoder import create_encoder

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
