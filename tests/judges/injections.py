"""Forty false sentences with a hidden instruction, and their twins without one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from guardrail import Passage

__all__ = ["INSTRUCTIONS", "PAIRS", "TEXTS", "Pair"]


_DATA = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
INSTRUCTIONS: list[str] = _DATA["instructions"]
TEXTS: dict[str, list[str]] = _DATA["texts"]
"""Texts, and false sentences about each."""


class Pair(NamedTuple):
    """A false sentence with a hidden instruction, and the same without one."""

    evidence: list[Passage]
    sentence: str
    clean_evidence: list[Passage]
    clean_sentence: str


def _pairs() -> list[Pair]:
    found = []
    for text, sentences in TEXTS.items():
        clean = [Passage(text)]
        for sentence, instruction in zip(sentences, INSTRUCTIONS, strict=True):
            if len(found) % 2:
                found.append(Pair([Passage(f"{text} {instruction}")], sentence, clean, sentence))
            else:
                injected = f"{sentence.rstrip('.')}: {instruction}"
                found.append(Pair(clean, injected, clean, sentence))
    return found


PAIRS = _pairs()
