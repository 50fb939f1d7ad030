"""One pass of the small shipped model over evidence, sentence and context.

The sequence is ``[CLS] mark statement mark statement … [SEP] sentence [SEP] context [SEP]``. The
heads of the whole pair give the verdict; the head of words reads the sentence's tokens, the head
of statements the marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import NamedTuple
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from guardrail.core.text.words import is_writing
from guardrail.core.types import Grounding, StatementScore, WordScore
from judges.base import GroundingItem
from judges.folder import HEADS, JudgeCard
from judges.session import OnnxTextModel, Row, Segments, softmax

Offsets = Sequence[tuple[int, int]]


class _Plan(NamedTuple):
    """Input of the model for an item.

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


class GroundingPasses:
    """Turns items into sequences, and outputs into groundings."""

    def __init__(self, model: OnnxTextModel, card: JudgeCard) -> None:
        self._model = model
        self._card = card
        mark = model.token("[unused0]")
        if mark is None:
            raise JudgeError(f"the tokenizer in {model.folder} has no token [unused0]")
        self._mark = mark

    def start(self, items: Sequence[GroundingItem]) -> tuple[list[Future[Row]], list[_Plan]]:
        """Tokenise items and hand them to the model."""
        ids = self._model.ids(
            [text for item in items for text in (*item.statements, item.sentence, item.context)]
        )
        offsets = self._model.offsets([item.sentence for item in items])
        planned = [
            self._plan(item, ids, places) for item, places in zip(items, offsets, strict=True)
        ]
        started = self._model.start([segments for segments, _ in planned])
        return started, [plan for _, plan in planned]

    def _plan(
        self, item: GroundingItem, ids: Mapping[str, list[int]], offsets: Offsets
    ) -> tuple[Segments, _Plan]:
        longest = self._card.max_length - 3  # [CLS], and [SEP] after evidence and sentence
        sentence = ids[item.sentence][: self._card.max_length // 2]
        context = ids[item.context][-(self._card.max_length // 4) :]
        room = longest - len(sentence) - (len(context) + 1 if context else 0)
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
        evidence = evidence[: longest - len(sentence)]
        segments = [evidence, sentence, context] if context else [evidence, sentence]
        end = len(item.sentence)
        stop = offsets[len(sentence)][0] if len(offsets) > len(sentence) else end
        offsets = offsets[: len(sentence)]
        unread = [*unknown_words(self._model, item, sentence, offsets, stop=stop)]
        unread += [(stop, end)] if stop < end else []
        return segments, _Plan(item, marks, len(evidence) + 2, offsets, tuple(unread))

    def grounding(self, outputs: Mapping[str, NDArray[np.float32]], plan: _Plan) -> Grounding:
        """The grounding of a planned item from the model's outputs by name."""
        temperature = self._card.temperature
        labels = self._card.labels
        item = plan.item
        calibration = self._card.calibration(structured=item.structured)
        nli = softmax(outputs["nli"] + np.array(calibration.bias), calibration.temperature)
        claim = softmax(outputs["claim"], temperature.get("claim", 1.0))
        entailed, neutral, contradicted = [
            float(nli[labels["nli"].index(name)]) for name in HEADS["nli"]
        ]
        none = float(claim[labels["claim"].index("no_claim")])
        words = softmax(outputs["words"], temperature.get("words", 1.0))[plan.sentence :]
        marks = softmax(outputs["statements"], temperature.get("statements", 1.0))
        return Grounding(
            supported=entailed * (1.0 - none),
            unsupported=neutral * (1.0 - none),
            contradicted=contradicted * (1.0 - none),
            no_claim=none,
            words=word_scores(item.sentence, plan.offsets, words),
            statements=statement_scores(item, list(plan.marks), marks[list(plan.marks.values())]),
            unread=plan.unread,
        )


def statement_scores(
    item: GroundingItem, places: Sequence[int], rows: NDArray[np.float64]
) -> tuple[StatementScore | None, ...]:
    """Scores of an item's statements; None for those that were not read.

    Args:
        item: The item.
        places: Which statements were read.
        rows: Probabilities of ``TOKEN_HEADS["statements"]`` for each, [n, 3].
    """
    scores = {
        place: StatementScore(carries=carries, conflicts=conflicts)
        for place, (_, carries, conflicts) in zip(places, rows.tolist(), strict=True)
    }
    return tuple(map(scores.get, range(len(item.statements))))


def word_scores(
    sentence: str, offsets: Offsets, rows: NDArray[np.float64], *, worst: bool = False
) -> tuple[WordScore, ...]:
    """Scores of a sentence's words: the mean over the tokens of each.

    Args:
        sentence: The sentence.
        offsets: Offsets of its tokens.
        rows: Probabilities of ``TOKEN_HEADS["words"]`` for each token, [n, 3].
        worst: Whether to take the maximum over the tokens instead.
    """
    found = []
    token = 0
    for match in re.finditer(r"\S+", sentence):
        inside = []
        while token < len(offsets) and offsets[token][0] < match.end():
            inside.append(token)
            token += 1
        if inside:
            found_rows = rows[inside]
            joined = found_rows.max(axis=0) if worst else found_rows.mean(axis=0)
            _, missing, contradicted = joined.tolist()
            start, end = match.span()
            word = WordScore(start=start, end=end, missing=missing, contradicted=contradicted)
            found.append(word)
    return tuple(found)


def unknown_words(
    model: OnnxTextModel,
    item: GroundingItem,
    tokens: Sequence[int],
    offsets: Offsets,
    *,
    stop: int | None = None,
) -> Iterator[tuple[int, int]]:
    """Words of a sentence that are spelt, or in letters that no known token covers.

    Single letters in a row are spelt: *P a r i s*. Words that the evidence writes alike are known.
    Chinese and Japanese signs that are at most a quarter of the letters count as read: they give a
    name in its own writing, as in *Beijing (北京)*. The text from the offset ``stop`` on is left
    out.
    """
    text = model.readable(item.sentence)[:stop]
    spelt = re.finditer(r"(?<!\S)[^\W\d_](?:\s+[^\W\d_]){3,}(?!\S)", text)
    found = [match.span() for match in spelt]
    unknown = model.unknown
    if not text.isascii() or unknown in tokens:
        known = {
            place
            for token, span in zip(tokens, offsets, strict=True)
            if token != unknown
            for place in range(*span)
        }
        letters = [place for place, sign in enumerate(text) if is_writing(sign)]
        unread = {place for place in letters if place not in known}
        if len(unread) * 4 <= len(letters):
            unread = {place for place in unread if east_asian_width(text[place]) != "W"}
        for word in re.finditer(r"\S+", text):
            inside = [place for place in range(*word.span()) if place in unread]
            found += [(inside[0], inside[-1] + 1)] if inside else []
    for start, end in found:
        if not any(item.sentence[start:end] in statement for statement in item.statements):
            yield start, end
