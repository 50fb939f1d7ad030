"""Words as data: every list of English words lies in a JSON file of this folder, with its purpose.

A file is an object; ``about`` says what it is for and where it comes from.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def lexicon(name: str) -> dict[str, Any]:
    """The content of one file of words.

    Args:
        name: The file's name without its ending: ``numbers``, ``units``, ``nations``, …
    """
    text = files("guardrail.core.text.lexicon").joinpath(f"{name}.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


@cache
def lexicon_set(name: str, key: str) -> frozenset[str]:
    """One list of a file, as a set."""
    return frozenset(lexicon(name)[key])
