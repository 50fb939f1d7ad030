"""Training rows of the sentence encoder: questions with intents, and texts in and out of order.

Only files under licences that allow commercial use are read. The CONNER texts are for
evaluation and are never opened here.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = [
    "INTENTS",
    "IntentRow",
    "Text",
    "hold_out",
    "load_intents",
    "load_texts",
    "shuffled",
    "split_sentences",
]

INTENTS = (
    "instruction",
    "reason",
    "evidence-based",
    "comparison",
    "experience",
    "debate",
    "factoid",
    "not-a-question",
)
"""The seven intents of SCK 2.2 in the order of its Table 3, then the class of non-questions."""

MIN_WORDS = 4
"""Words a line needs to count as a sentence of running text."""

_BOUNDARY = re.compile(r"(?<=[.!?])[\"”’')]?\s+(?=[A-Z\"“`(‘'])")
_SENTENCE_END = re.compile(r"[.!?][\"”’')]*$")


class IntentRow(NamedTuple):
    """A question and the index of its intent in ``INTENTS``."""

    question: str
    intent: int


class Text(NamedTuple):
    """A text of several sentences; texts of one group never stand on both sides of a split."""

    group: str
    sentences: tuple[str, ...]


def load_intents(path: Path) -> list[IntentRow]:
    """Read NF-CATS rows (question, category).

    Args:
        path: A gzipped JSON lines file.

    Raises:
        ValueError: A category is none of ``INTENTS``.
    """
    return [
        IntentRow(row["question"], INTENTS.index(row["category"].lower())) for row in _rows(path)
    ]


def load_texts(data: Path) -> list[Text]:
    """Read texts of at least two sentences, without doubles.

    FEVER premises (CC BY-SA), FActScore biographies (MIT), the evidence of Factcheck-GPT
    (Apache-2.0) and of WiCE (ODC-BY, CC BY-SA).

    Args:
        data: The folder that holds ``nli/`` and ``attribution/``.
    """
    texts = []
    for row in _rows(data / "nli" / "fever.jsonl.gz"):
        premise = row["premise"].replace("-LRB-", "(").replace("-RRB-", ")")
        texts.append(Text(premise[:40], split_sentences(premise)))
    for row in _rows(data / "attribution" / "factscore_bios.jsonl.gz"):
        texts.append(Text(row["topic"], split_sentences(row["output"])))
    for row in _rows(data / "attribution" / "factcheck_stance.jsonl.gz"):
        texts.append(Text(row["claim"], split_sentences(row["evidence"])))
    for row in _rows(data / "attribution" / "wice_claim_dev.jsonl.gz"):
        group = " ".join(row["evidence"][:2])
        texts.extend(Text(group, run) for run in _prose_runs(row["evidence"]))
    unique = {text.sentences: text for text in texts if len(text.sentences) >= 2}
    return list(unique.values())


def split_sentences(text: str) -> tuple[str, ...]:
    """Split running text at sentence ends; a fragment is joined to the sentence before it."""
    sentences: list[str] = []
    for piece in _BOUNDARY.split(" ".join(text.split())):
        if sentences and len(piece.split()) < MIN_WORDS:
            sentences[-1] += " " + piece
        elif piece:
            sentences.append(piece)
    return tuple(sentences)


def hold_out(texts: Sequence[Text], *, share: float, seed: int) -> tuple[list[Text], list[Text]]:
    """Split texts by group into a training and a held-out part.

    Args:
        texts: The texts.
        share: Share of the groups that is held out, in (0, 1).
        seed: Seed of the choice.
    """
    groups = sorted({text.group for text in texts})
    random.Random(seed).shuffle(groups)
    held = set(groups[: round(share * len(groups))])
    return (
        [text for text in texts if text.group not in held],
        [text for text in texts if text.group in held],
    )


def shuffled(count: int, rng: random.Random) -> list[int]:
    """An order of ``count`` positions that is not the order they came in; at least two."""
    order = list(range(count))
    while order == sorted(order):
        rng.shuffle(order)
    return order


def _prose_runs(lines: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The stretches of a crawled page that are full sentences, without menus and headings."""
    run: list[str] = []
    for line in [*lines, ""]:
        if len(line.split()) >= MIN_WORDS and line[0].isupper() and _SENTENCE_END.search(line):
            run.append(line)
        else:
            if len(run) >= 2:
                yield tuple(run)
            run = []


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
