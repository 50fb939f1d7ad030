"""The shipped encoder gives a text the same outputs whoever asks, and computes them once."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from guardrail.core.errors import JudgeError
from judges.encoder import OutputMemory, Outputs, create_encoder

TEXTS = ("Who was Ada Lovelace?", "Ada Lovelace, English mathematician", "Why is the sky blue?")


def outputs(value: float) -> Outputs:
    return {"embedding": np.array([value])}


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


def test_what_one_thread_computes_another_waits_for() -> None:
    memory = OutputMemory(size=8)
    assert memory.claim(["a", "b", "a"]) == ({}, {}, ["a", "b"])
    known, awaited, wanted = memory.claim(["b", "c"])
    assert (known, list(awaited), wanted) == ({}, ["b"], ["c"])
    memory.keep({"a": outputs(1.0), "b": outputs(2.0)})
    assert awaited["b"].result(timeout=1) == outputs(2.0)
    assert memory.claim(["a"]) == ({"a": outputs(1.0)}, {}, [])


def test_a_failure_is_told_to_those_who_wait_and_the_text_can_be_tried_again() -> None:
    memory = OutputMemory(size=8)
    memory.claim(["a"])
    _, awaited, _ = memory.claim(["a"])
    memory.give_up(["a"], JudgeError("no model"))
    with pytest.raises(JudgeError, match="no model"):
        awaited["a"].result(timeout=1)
    assert memory.claim(["a"])[2] == ["a"]


def test_the_texts_asked_for_last_and_no_long_ones_are_kept() -> None:
    memory = OutputMemory(size=2)
    long = "long " * 1000
    memory.claim(["a", "b", long])
    memory.keep({"a": outputs(1.0), "b": outputs(2.0), long: outputs(3.0)})
    memory.claim(["a", "c"])
    memory.keep({"c": outputs(4.0)})
    known, _, wanted = memory.claim(["a", "b", "c", long])
    assert list(known) == ["a", "c"]
    assert wanted == ["b", long]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_wait_for_its_parents_threads() -> None:
    memory = OutputMemory(size=8)
    memory.claim(["a"])
    child = os.fork()
    if not child:
        os._exit(0 if memory.claim(["a"])[2] == ["a"] else 1)
    assert os.waitpid(child, 0)[1] == 0
