"""Token sequences of a judge that encodes evidence once: windows of evidence, and claims.

Training and serving build them here. A window holds the triples of one entity or neighbouring
sentences of one passage; its positions start at 0. A claim block holds the question, the previous
sentences and the sentence; its positions start at ``OFFSET``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["BLOCK", "OFFSET", "WINDOW", "Claim", "claim_of", "claims_of", "windows_of"]

WINDOW, BLOCK, OFFSET = 200, 110, 256
"""Most tokens of a window and of a claim block; position of the first token of a block."""

QUESTION, PREVIOUS = 24, 36
"""Tokens of the context that are kept at its start (the question) and its end."""

SENTENCE = BLOCK - 5
"""Most tokens of a sentence in one block; a longer sentence is judged in parts."""

IDS = tuple[int, ...]


class Claim(NamedTuple):
    """A claim block.

    Attributes:
        ids: Token ids.
        start: Index of the first token of the sentence; the tokens from there on are pooled.
        length: Tokens of the sentence, the end token after it not counted.
    """

    ids: IDS
    start: int
    length: int


def windows_of(
    parts: Sequence[Sequence[int]], *, start: int, end: int, closed: bool
) -> list[tuple[IDS, tuple[tuple[int, int], ...]]]:
    """Pack statements into windows of at most ``WINDOW`` tokens.

    Args:
        parts: Token ids of the statements of one entity or passage; longer ones are cut.
        start: Id of the token that starts a window.
        end: Id of the token that ends it.
        closed: Whether ``end`` also follows each statement, as for triples and NLI premises.

    Returns:
        Ids of each window, and the span (start, end) of each of its statements.
    """
    made: list[tuple[IDS, tuple[tuple[int, int], ...]]] = []
    ids: list[int] = [start]
    spans: list[tuple[int, int]] = []
    for part in parts:
        piece = ([*part, end] if closed else list(part))[: WINDOW - 2]
        if spans and len(ids) + len(piece) > WINDOW:
            made.append(((*ids, end), tuple(spans)))
            ids, spans = [start], []
        spans.append((len(ids), len(ids) + len(piece)))
        ids += piece
    return [*made, ((*ids, end), tuple(spans))]


def claim_of(context: Sequence[int], sentence: Sequence[int], *, end: int) -> Claim:
    """The block of one sentence, or of a part of a long one.

    Args:
        context: Token ids of the question and the previous sentences.
        sentence: Token ids of the sentence, ``SENTENCE`` at most.
        end: Id of the token that separates the parts.
    """
    before = list(context)
    if len(before) > QUESTION + PREVIOUS:
        before = [*before[:QUESTION], *before[-PREVIOUS:]]
    room = BLOCK - 3 - len(sentence)
    before = before[max(0, len(before) - room) :]
    ids = (end, *before, end, *sentence, end)
    return Claim(ids, len(before) + 2, len(sentence))


def claims_of(context: Sequence[int], sentence: Sequence[int], *, end: int) -> list[Claim]:
    """The blocks of a sentence: one, or several of equal length where it is longer than a block."""
    count = max(1, -(-len(sentence) // SENTENCE))
    size = -(-len(sentence) // count)
    parts = [sentence[at : at + size] for at in range(0, max(1, len(sentence)), max(1, size))]
    return [claim_of(context, part, end=end) for part in parts]
