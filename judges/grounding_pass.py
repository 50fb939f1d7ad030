"""One pass of the shipped judge over evidence, sentence and context, and what its heads say.

The sequence is ``[CLS] mark statement mark statement … [SEP] sentence [SEP] context [SEP]``. The
heads of the whole pair give the verdict; the head of words reads the sentence's tokens, the head
of statements the marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from guardrail.core.text.words import is_writing
from guardrail.core.types import Grounding, StatementScore, WordScore
from judges.base import GroundingItem
from judges.calibration import Calibration
from judges.heads import HEADS, STATEMENT_MARK, TOKEN_HEADS, JudgeCard
from judges.session import OnnxTextModel, Running, Segments, softmax

__all__ = ["GROUNDING_HEADS", "GroundingPasses"]

GROUNDING_HEADS = frozenset({"nli", "claim", *TOKEN_HEADS})
"""Names of the outputs that a model needs."""

CONTEXT_SHARE = 4
"""The context takes at most one token in this many of the longest sequence; its end is kept."""

SPECIAL_TOKENS = 3
"""[CLS], and [SEP] after evidence and sentence."""

UNKNOWN = "[UNK]"
"""The token that stands for what is not in a vocabulary."""

NATIVE = 4
"""Chinese and Japanese signs that are not known tell a name in its own writing, where they are at
most one in this many of a sentence's letters: *Beijing (北京)*. They count as read."""

_WORD = re.compile(r"\S+")
_SPELT = re.compile(r"(?<!\S)[^\W\d_](?:\s+[^\W\d_]){3,}(?!\S)")
"""Single letters in a row, which no judge reads as words: *P a r i s*."""

Offsets = list[tuple[int, int]]


class _Plan(NamedTuple):
    """What is read of an item.

    Attributes:
        item: The item.
        marks: By statement, the place of its mark in the sequence; only those read.
        sentence: Place of the sentence's first token.
        offsets: Offsets of the sentence's tokens.
        unread: Spans of the sentence in writing that is not read.
    """

    item: GroundingItem
    marks: dict[int, int]
    sentence: int
    offsets: Offsets
    unread: tuple[tuple[int, int], ...]


class Started(NamedTuple):
    """Items on their way through the model."""

    running: Running
    plans: list[_Plan]


class GroundingPasses:
    """Turns items into sequences, and outputs into groundings."""

    def __init__(self, model: OnnxTextModel, card: JudgeCard) -> None:
        self._model = model
        self._card = card
        mark = model.token(STATEMENT_MARK)
        if mark is None:
            raise JudgeError(f"the tokenizer in {model.folder} has no token {STATEMENT_MARK}")
        self._mark = mark

    def start(self, items: Sequence[GroundingItem]) -> Started:
        """Tokenise items and hand them to the model."""
        texts = dict.fromkeys(
            text for item in items for text in (*item.statements, item.sentence, item.context)
        )
        ids = dict(zip(texts, self._model.tokenize(list(texts)), strict=True))
        offsets = self._model.offsets([item.sentence for item in items])
        planned = [
            self._plan(item, ids, places) for item, places in zip(items, offsets, strict=True)
        ]
        return Started(
            self._model.start([segments for segments, _ in planned]), [plan for _, plan in planned]
        )

    def finish(self, started: Started) -> Iterator[Grounding]:
        """Groundings of what was started, in order.

        Raises:
            JudgeError: The model failed or gave numbers that are not finite.
        """
        for outputs, plan in zip(started.running.rows(), started.plans, strict=True):
            yield self._grounding(outputs, plan)

    def _plan(
        self, item: GroundingItem, ids: dict[str, list[int]], offsets: Offsets
    ) -> tuple[Segments, _Plan]:
        longest = self._card.max_length
        sentence = ids[item.sentence][: longest // 2]
        context = ids[item.context][-(longest // CONTEXT_SHARE) :]
        room = longest - SPECIAL_TOKENS - len(sentence) - (len(context) + 1 if context else 0)
        read: list[int] = []
        for place in item.priority or range(len(item.statements)):
            cost = len(ids[item.statements[place]]) + 1
            if cost <= room or not read:
                read.append(place)
                room -= cost
        evidence: list[int] = []
        marks: dict[int, int] = {}
        for place in sorted(read):
            marks[place] = 1 + len(evidence)
            evidence += [self._mark, *ids[item.statements[place]]]
        evidence = evidence[: longest - SPECIAL_TOKENS - len(sentence)]
        segments = Segments(evidence, sentence, context or None)
        end = len(item.sentence)
        stop = offsets[len(sentence)][0] if len(offsets) > len(sentence) else end
        offsets = offsets[: len(sentence)]
        unread = [*unknown_words(self._model, item, sentence, offsets, stop=stop)]
        unread += [(stop, end)] if stop < end else []
        return segments, _Plan(item, marks, len(evidence) + 2, offsets, tuple(unread))

    def _grounding(self, outputs: dict[str, NDArray[np.float32]], plan: _Plan) -> Grounding:
        temperature = self._card.temperature
        labels = self._card.labels
        kind = "triples" if plan.item.structured else "passages"
        calibration = self._card.grounding.get(kind, Calibration())
        nli = softmax(outputs["nli"] + np.array(calibration.bias), calibration.temperature)
        claim = softmax(outputs["claim"], temperature.get("claim", 1.0))
        entailed, neutral, contradicted = (
            float(nli[labels["nli"].index(name)]) for name in HEADS["nli"]
        )
        none = float(claim[labels["claim"].index("no_claim")])
        words = softmax(outputs["words"], temperature.get("words", 1.0))
        marks = softmax(outputs["statements"], temperature.get("statements", 1.0))
        return Grounding(
            supported=entailed * (1.0 - none),
            unsupported=neutral * (1.0 - none),
            contradicted=contradicted * (1.0 - none),
            no_claim=none,
            words=tuple(self._words(words, plan)),
            statements=tuple(
                _statement(marks[plan.marks[place]]) if place in plan.marks else None
                for place in range(len(plan.item.statements))
            ),
            unread=plan.unread,
        )

    def _words(self, rows: NDArray[np.float64], plan: _Plan) -> Iterator[WordScore]:
        """Scores of the sentence's words: the mean over the tokens of each."""
        token = 0
        for match in _WORD.finditer(plan.item.sentence):
            inside = []
            while token < len(plan.offsets) and plan.offsets[token][0] < match.end():
                inside.append(plan.sentence + token)
                token += 1
            if inside:
                _, missing, contradicted = rows[inside].mean(axis=0).tolist()
                yield WordScore(
                    start=match.start(),
                    end=match.end(),
                    missing=missing,
                    contradicted=contradicted,
                )


def _statement(row: NDArray[np.float64]) -> StatementScore:
    _, carries, conflicts = row.tolist()
    return StatementScore(carries=carries, conflicts=conflicts)


def unknown_words(
    model: OnnxTextModel,
    item: GroundingItem,
    tokens: Sequence[int],
    offsets: Offsets,
    *,
    stop: int | None = None,
) -> Iterator[tuple[int, int]]:
    """Words of a sentence that are spelt, or in letters that no known token covers.

    Words that the evidence writes alike are known; see ``NATIVE`` for names. What stands from the
    offset ``stop`` on is left out.
    """
    unknown = model.token(UNKNOWN)
    text = model.readable(item.sentence)[:stop]
    found = [match.span() for match in _SPELT.finditer(text)]
    if not text.isascii() or unknown in tokens:
        known = {
            place
            for token, span in zip(tokens, offsets, strict=True)
            if token != unknown
            for place in range(*span)
        }
        letters = [place for place, sign in enumerate(text) if is_writing(sign)]
        unread = {place for place in letters if place not in known}
        if len(unread) * NATIVE <= len(letters):
            unread = {place for place in unread if east_asian_width(text[place]) != "W"}
        for word in _WORD.finditer(text):
            inside = [place for place in range(*word.span()) if place in unread]
            found += [(inside[0], inside[-1] + 1)] if inside else []
    for start, end in found:
        if not any(item.sentence[start:end] in statement for statement in item.statements):
            yield start, end
