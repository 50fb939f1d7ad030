"""Grounding judges for tests, as a user could hand them in: no model, the same everywhere."""

from collections.abc import Mapping, Sequence

from guardrail.core.text.words import content_stems, tokenise
from guardrail.core.types import Grounding, StatementScore, WordScore
from judges.base import GroundingItem

NEITHER = Grounding(supported=0.05, unsupported=0.9, contradicted=0.05, no_claim=0.0)


class Ready:
    """A part of another package that has nothing to load."""

    def warm_up(self) -> None: ...


class Overlap(Ready):
    """Finds supported what is made of the words of its statements, far from any threshold.

    A statement carries a sentence that has two of its stems, or all of the sentence's.
    """

    name = "overlap-1"

    def __init__(self) -> None:
        self.asked: list[GroundingItem] = []

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        self.asked += items
        return [_overlap(item) for item in items]


def _overlap(item: GroundingItem) -> Grounding:
    held = [content_stems(text) for text in item.statements]
    known = frozenset[str]().union(content_stems(item.context), *held)
    sentence = content_stems(item.sentence)
    missing = sentence - known
    good = bool(sentence) and not missing and any(held)
    return Grounding(
        supported=0.95 if good else 0.02,
        unsupported=0.03 if good else 0.95,
        contradicted=0.02 if good else 0.03,
        no_claim=0.0,
        words=tuple(
            WordScore(
                start=token.start,
                end=token.end,
                missing=0.95 if token.stem in missing else 0.05,
                contradicted=0.0,
            )
            for token in tokenise(item.sentence)
        ),
        statements=tuple(
            StatementScore(carries=0.95 if len(entry & sentence) >= 2 else 0.05, conflicts=0.0)
            for entry in held
        ),
    )


class Scripted(Ready):
    """Fake judge: a fixed grounding for each given sentence; any other is unsupported."""

    name = "scripted-1"

    def __init__(self, groundings: Mapping[str, Grounding]) -> None:
        self.groundings = dict(groundings)

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        return [self.groundings.get(item.sentence, NEITHER) for item in items]
