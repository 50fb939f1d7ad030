"""The entity tagger of the linker, and how much of a text it reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from guardrail.core.text.tagging import load_english

if TYPE_CHECKING:
    from spacy.language import Language

__all__ = ["MAX_TAGGED", "load_tagger", "taggable"]

MAX_TAGGED: Final = 100_000
"""Longest stretch of one text that is tagged, in characters, some 3 s on one core; what follows
is still read by the label index of the graph."""

# spaCy's tokenizer takes time quadratic in a stretch without white space; no name is this long.
_LONG_RUN: Final = re.compile(r"\S{200,}")

_NOT_NEEDED: Final = ("tagger", "parser", "attribute_ruler", "lemmatizer")


def load_tagger() -> Language:
    """Load the first installed pipeline with its entity recogniser only.

    Raises:
        ConfigError: If no pipeline is installed.
    """
    return load_english(*_NOT_NEEDED)


def taggable(text: str) -> str:
    """The first ``MAX_TAGGED`` characters of a text, stretches without white space blanked out."""
    return _LONG_RUN.sub(lambda run: " " * len(run.group()), text[:MAX_TAGGED])
