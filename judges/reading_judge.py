"""A judge that reads evidence once; and the judge of a folder, whichever way it reads."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import cast

import numpy as np

from guardrail.core.errors import JudgeError
from guardrail.core.text.canonical import canonical
from judges.base import Pair
from judges.batching import distinct
from judges.onnx import CHUNK, OnnxJudge, Row
from judges.reading import Answers, Asked, ReadingModel, Window
from judges.reading_pass import LONGEST_CONTEXT, LONGEST_SENTENCE, LONGEST_WINDOW, ReadingPasses
from judges.windows import spans

__all__ = ["ReadingJudge", "open_judge"]


class ReadingJudge(OnnxJudge):
    """A judge whose evidence is read once, in windows that are kept.

    A hypothesis is read upon all windows of its premise, and gets the result of its weakest part
    where it needs several. ``python -m training`` makes such judges.

    Args:
        folder: Holds ``model.onnx``, ``tokenizer.json`` and ``judge.json``.
        threads: Pairs computed at the same time; all cores by default.
    """

    _model_kind = ReadingModel
    _passes = ReadingPasses

    def _probabilities(
        self, head: str, pairs: Sequence[Pair], also: Sequence[str] = ()
    ) -> list[Row | None]:
        """Calibrated probabilities of one head, and of others of the same hypothesis.

        Of a hypothesis in several parts the one with the least support speaks, as a text holds
        only where all of it does. Pairs with a blank text give None.
        """
        self.warm_up()
        rows: list[Row | None] = [None] * len(pairs)
        for first in range(0, len(pairs), CHUNK):
            answers, owners = self._asked(pairs[first : first + CHUNK])
            outputs = list(answers.rows())
            if not owners:
                continue
            stacked = {name: np.stack([row[name] for row in outputs]) for name in (head, *also)
                       if name in outputs[0]}  # fmt: skip
            main = self._calibrated(head, stacked)
            others = {
                name: self._calibrated(name, stacked)
                for name in also
                if name in stacked and name in self.card.labels
            }
            for pair, group in groupby(range(len(owners)), key=owners.__getitem__):
                places = list(group)
                best = min(places, key=lambda place: float(main[place, 0]))
                there = {name: values[best] for name, values in others.items()}
                rows[first + pair] = Row(main[best], there, len(places))
        return rows

    def _asked(self, pairs: Sequence[Pair]) -> tuple[Answers, list[int]]:
        """Tokenise pairs and hand them to the model.

        Returns:
            The running model, and the pair that each of its sentences is a part of.
        """
        texts, places = distinct([text for pair in pairs for text in pair])
        ids = self._model.tokenize([canonical(text).text for text in texts])
        model = cast(ReadingModel, self._model)
        start, end = model.ends
        asked: list[Asked] = []
        owners: list[int] = []
        for i, pair in enumerate(pairs):
            if not pair.premise.strip() or not pair.hypothesis.strip():
                continue
            premise, hypothesis = ids[places[2 * i]], ids[places[2 * i + 1]]
            windows = tuple(
                Window((start, *premise[low:high], end))
                for low, high in spans(len(premise), LONGEST_WINDOW - 2)
            )
            for low, high in spans(len(hypothesis), LONGEST_SENTENCE + LONGEST_CONTEXT):
                asked.append(Asked((start, *hypothesis[low:high], end), 0, windows))
                owners.append(i)
        return model.ask(asked), owners


def open_judge(folder: Path | str | None = None, *, threads: int | None = None) -> OnnxJudge:
    """The judge of a folder, whichever way it reads; the shipped one by default.

    Nothing but its description is read. One that cannot be read is told when the judge is used.
    """
    judge = OnnxJudge(folder, threads=threads)
    with suppress(JudgeError):
        if folder is not None and judge.card.reads_once:
            return ReadingJudge(folder, threads=threads)
    return judge
