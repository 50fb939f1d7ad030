"""What a judge that reads evidence once is given, and what its heads say of a sentence.

A window of evidence is ``[CLS] mark statement mark statement … [SEP]``, a sentence
``[CLS] sentence [SEP] context [SEP]``, read upon its windows. The heads of the sentence give the
verdict; the head of words reads its word pieces, the head of statements compares it with marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from guardrail.core.text.canonical import canonical
from guardrail.core.types import Grounding, StatementScore, WordScore
from judges.base import GroundingItem
from judges.heads import HEADS, STATEMENT_MARK, Calibration, JudgeCard
from judges.reading import Answers, Asked, ReadingModel, Window
from judges.session import softmax

__all__ = [
    "LONGEST_CONTEXT",
    "LONGEST_EVIDENCE",
    "LONGEST_SENTENCE",
    "LONGEST_WINDOW",
    "ReadingPasses",
]

LONGEST_WINDOW = 256
"""Word pieces of a window, special ones included: as many as in training."""

LONGEST_SENTENCE = 170
"""Word pieces of a sentence; windows, sentence and context share 512 positions."""

LONGEST_CONTEXT = 80
"""Word pieces of the context, whose end is kept."""

LONGEST_EVIDENCE = 1_024
"""Word pieces of all windows that a sentence is read upon."""

_WORD = re.compile(r"\S+")

Offsets = list[tuple[int, int]]


class _Plan(NamedTuple):
    """What is read of an item.

    Attributes:
        item: The item.
        read: Places of the statements whose marks are compared, in their order.
        offsets: Where the sentence's word pieces stand in it.
    """

    item: GroundingItem
    read: tuple[int, ...]
    offsets: Offsets


class Started(NamedTuple):
    """Items on their way through the model."""

    answers: Answers
    plans: list[_Plan]


class ReadingPasses:
    """Turns items into windows and sentences, and outputs into groundings.

    Args:
        model: A model with the heads of ``grounding_heads``.
        card: Its description.
    """

    def __init__(self, model: ReadingModel, card: JudgeCard) -> None:
        self._model = model
        self._card = card
        mark = model.token(STATEMENT_MARK)
        if mark is None:
            raise JudgeError(f"the tokenizer in {model.folder} has no token {STATEMENT_MARK}")
        self._mark = mark

    def start(self, items: Sequence[GroundingItem]) -> Started:
        """Tokenise items, values in canonical form, and hand them to the model."""
        texts = dict.fromkeys(
            text for item in items for text in (*item.statements, item.sentence, item.context)
        )
        read = self._model.tokenize([canonical(text).text for text in texts])
        ids = dict(zip(texts, read, strict=True))
        forms = [canonical(item.sentence) for item in items]
        offsets = [
            [form.original(start, end) for start, end in places]
            for form, places in zip(
                forms, self._model.offsets([form.text for form in forms]), strict=True
            )
        ]
        planned = [
            self._plan(item, ids, places) for item, places in zip(items, offsets, strict=True)
        ]
        return Started(
            self._model.ask([asked for asked, _ in planned]), [plan for _, plan in planned]
        )

    def finish(self, started: Started) -> Iterator[Grounding]:
        """Groundings of what was started, in order.

        Raises:
            JudgeError: The model failed or gave numbers that are not finite.
        """
        for outputs, plan in zip(started.answers.rows(), started.plans, strict=True):
            yield self._grounding(outputs, plan)

    def _plan(
        self, item: GroundingItem, ids: dict[str, list[int]], offsets: Offsets
    ) -> tuple[Asked, _Plan]:
        start, end = self._model.ends
        sentence = ids[item.sentence][:LONGEST_SENTENCE]
        context = [*ids[item.context][-LONGEST_CONTEXT:], end] if ids[item.context] else []
        windows = self._windows(item, ids)
        kept = _most_important(windows, item.priority)
        asked = Asked(
            (start, *sentence, end, *context), len(context), tuple(windows[i][0] for i in kept)
        )
        read = tuple(place for i in kept for place in windows[i][1])
        return asked, _Plan(item, read, offsets[: len(sentence)])

    def _windows(
        self, item: GroundingItem, ids: dict[str, list[int]]
    ) -> list[tuple[Window, list[int]]]:
        """Windows of an item's evidence, each with the places of its statements."""
        start, end = self._model.ends
        room = LONGEST_WINDOW - 2
        made: list[tuple[Window, list[int]]] = []
        pieces: list[int] = []
        marks: list[int] = []
        places: list[int] = []

        def close() -> None:
            made.append((Window((start, *pieces, end), tuple(marks)), list(places)))
            pieces.clear()
            marks.clear()
            places.clear()

        for place, text in enumerate(item.statements):
            own = [self._mark, *ids[text][: room - 1]]
            other = bool(places and item.windows and item.windows[place] != item.windows[place - 1])
            if places and (other or len(pieces) + len(own) > room):
                close()
            marks.append(1 + len(pieces))
            pieces += own
            places.append(place)
        close()
        return made

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
        statements = softmax(outputs["statements"], temperature.get("statements", 1.0))
        scores: list[StatementScore | None] = [None] * len(plan.item.statements)
        for place, row in zip(plan.read, statements.tolist(), strict=True):
            scores[place] = StatementScore(carries=row[1], conflicts=row[2])
        return Grounding(
            supported=entailed * (1.0 - none),
            unsupported=neutral * (1.0 - none),
            contradicted=contradicted * (1.0 - none),
            no_claim=none,
            words=tuple(_words(words, plan)),
            statements=tuple(scores),
        )


def _most_important(
    windows: Sequence[tuple[Window, list[int]]], priority: Sequence[int]
) -> list[int]:
    """Numbers of the windows that are read, in their order: those that fit, best first."""
    rank = {place: number for number, place in enumerate(priority)}
    order = sorted(
        range(len(windows)),
        key=lambda i: (min((rank.get(p, len(rank)) for p in windows[i][1]), default=0), i),
    )
    kept: list[int] = []
    room = LONGEST_EVIDENCE
    for number in order:
        size = len(windows[number][0].ids)
        if size <= room or not kept:
            kept.append(number)
            room -= size
    return sorted(kept)


def _words(rows: NDArray[np.float64], plan: _Plan) -> Iterator[WordScore]:
    """Scores of the sentence's words: the mean over the word pieces of each."""
    token = 0
    for match in _WORD.finditer(plan.item.sentence):
        while token < len(plan.offsets) and plan.offsets[token][1] <= match.start():
            token += 1
        inside = [
            1 + place
            for place in range(token, len(plan.offsets))
            if plan.offsets[place][0] < match.end()
        ]
        if inside:
            _, missing, contradicted = rows[inside].mean(axis=0).tolist()
            yield WordScore(
                start=match.start(), end=match.end(), missing=missing, contradicted=contradicted
            )
