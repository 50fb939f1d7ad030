"""How the English pipeline is loaded and run."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from spacy.language import Language

from guardrail import cli
from guardrail.core.text import tagging
from guardrail.core.text.tagging import load_english, run_pipeline
from tests.clock import PATIENCE_S

PRODUCT = """
from guardrail.core.text.tagging import load_english
print(load_english("parser", "lemmatizer").get_pipe("ner").model.ops.use_blis)
"""


class Pipeline:
    """Counts how many callers run it at the same time."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0

    def pipe(self, texts: Any) -> list[Any]:
        self.running += 1
        self.most = max(self.most, self.running)
        time.sleep(0.02)
        self.running -= 1
        return list(texts)


def test_one_caller_at_a_time_runs_a_pipeline() -> None:
    pipeline = Pipeline()
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda n: run_pipeline(cast(Language, pipeline), [str(n)]), range(4)))
    assert done == [["0"], ["1"], ["2"], ["3"]]
    assert pipeline.most == 1


def test_threads_that_load_at_once_get_one_pipeline() -> None:
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(lambda _: load_english("lemmatizer", "parser"), range(8)))
    assert len({id(nlp) for nlp in loaded}) == 1
    assert loaded[0].pipe_names == ["tok2vec", "tagger", "attribute_ruler", "ner"]


@pytest.mark.parametrize(
    ("threads", "blis"),
    [
        ("1", "False"),
        pytest.param(
            "2",
            "True",
            marks=pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core has one thread"),
        ),
    ],
)
def test_numpy_multiplies_only_where_it_has_one_thread(threads: str, blis: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PRODUCT],
        env=os.environ | {"OPENBLAS_NUM_THREADS": threads},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == blis


@pytest.mark.parametrize("told", [None, "4"])
def test_the_program_has_numpy_on_one_thread_unless_told(
    told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr(cli, "app", lambda: seen.append(os.environ["OPENBLAS_NUM_THREADS"]))
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if told is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", told)
    cli.main()
    assert seen == [told or "1"]
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_forked_while_another_thread_parses_can_parse() -> None:
    nlp = load_english("lemmatizer", "parser")
    with tagging._loading, tagging._running:
        child = multiprocessing.get_context("fork").Process(
            target=lambda: run_pipeline(nlp, ["She was born in Rome."])
        )
        child.start()
        child.join(PATIENCE_S)
    hung = child.is_alive()
    child.kill()
    assert not hung
    assert child.exitcode == 0


def test_a_pipeline_that_has_read_many_new_words_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = ("lemmatizer", "parser", "ner")
    old = load_english(*parts)
    monkeypatch.setattr(tagging, "MOST_STRINGS", len(old.vocab.strings) + 20)
    assert load_english(*parts) is old
    (doc,) = run_pipeline(old, [" ".join(f"zq{number}x" for number in range(100))])
    new = load_english(*parts)
    assert new is not old
    assert load_english(*parts) is new
    assert doc[99].text == "zq99x"
    gone = weakref.ref(old)
    del old, doc
    gc.collect()
    assert gone() is None
