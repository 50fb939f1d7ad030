"""How the English pipeline is loaded and run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from spacy.language import Language
from threadpoolctl import ThreadpoolController

from kg.tagger import load_english, run_pipeline


def blas_threads() -> list[int]:
    return [
        int(library["num_threads"])
        for library in ThreadpoolController().select(user_api="blas").info()
    ]


class Pipeline:
    """Notes how many threads BLAS may use while it runs."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.seen: list[int] = []

    def pipe(self, texts: Any, disable: Any) -> list[Any]:
        self.seen = blas_threads()
        if self.error:
            raise self.error
        return list(texts)


def test_blas_has_one_thread_while_the_pipeline_runs_and_its_own_after() -> None:
    before = blas_threads()
    pipeline = Pipeline()

    assert run_pipeline(cast(Language, pipeline), ["a", "b"]) == ["a", "b"]

    assert set(pipeline.seen) == {1}
    assert blas_threads() == before


def test_blas_gets_its_threads_back_after_a_failure() -> None:
    before = blas_threads()

    with pytest.raises(ValueError, match="broken"):
        run_pipeline(cast(Language, Pipeline(ValueError("broken"))), ["a"])

    assert blas_threads() == before


def test_threads_that_load_at_once_get_one_pipeline() -> None:
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(lambda _: load_english("lemmatizer", "parser"), range(8)))

    assert len({id(nlp) for nlp in loaded}) == 1
    assert loaded[0].pipe_names == ["tok2vec", "tagger", "attribute_ruler", "ner"]
