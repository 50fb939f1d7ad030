"""A second judge for the sentences that the first one is not sure of.

What it says stands in place of the first one's probabilities. Where it gives no answer in time the
first one's stand, and why is told; nothing is asked again.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from guardrail.core.cancellation import time_left
from guardrail.core.errors import DeadlineExceededError, GuardrailError
from guardrail.core.types import Grounding, Problem, SecondOpinion, Sentence, VerdictThresholds
from guardrail.core.types.weighing import Weighed, Weighing
from judges.base import GroundingItem, GroundingJudge, NLIJudge, traits_of
from judges.grounding import as_grounding
from judges.microbatcher import MicroBatcher

__all__ = ["REMEMBERED", "Doubt", "Opinion", "SecondJudge", "SecondOpinions", "nearest"]

KEPT = 0.2
"""Share of an answer's time that is kept for what follows: scores, corrections, the decision."""

FORGOTTEN_S = 60.0
"""Seconds in which what had no answer is not asked again: longer than one answer's passes."""

REMEMBERED = 4_096
"""Default number of verdicts to remember; some 20 MB. Corrected answers are judged again."""

CLOSING_S = 1.0
"""Seconds that closing waits for a batch in work; a judge that hangs is left behind."""


class Doubt(NamedTuple):
    """A sentence on which the first judge has spoken.

    Attributes:
        answer: Number of the answer it is a sentence of.
        item: What the judge was asked.
        grounding: What it said.
        weighed: The probabilities that came of it; None where it found no claim.
        thresholds: Those that the verdict was given by.
    """

    answer: int
    item: GroundingItem
    grounding: Grounding
    weighed: Weighed | None
    thresholds: VerdictThresholds

    @property
    def distance(self) -> float | None:
        """How far the probabilities are from another verdict; None where there is no claim."""
        return None if self.weighed is None else self.thresholds.distance(*self.weighed)


class Opinion(NamedTuple):
    """What came of asking about a sentence.

    Attributes:
        told: For the sentence's record.
        grounding: What takes the place of the first judge's word; None where there is no answer.
    """

    told: SecondOpinion
    grounding: Grounding | None


def nearest(distances: Sequence[float | None], *, band: float, most: int) -> list[int]:
    """Places of the sentences to ask about again, the least sure first.

    Args:
        distances: Of each sentence; None where it is not to be asked about.
        band: Greatest distance.
        most: Most sentences.
    """
    near = [
        (distance, place)
        for place, distance in enumerate(distances)
        if distance is not None and distance <= band
    ]
    return [place for _, place in sorted(near)[: max(0, most)]]


def unheard(sentences: Iterable[Sentence]) -> tuple[Problem, ...]:
    """What is told of an answer on which the second judge was asked in vain."""
    missing = Counter(
        (second.judge, second.missing)
        for sentence in sentences
        if (second := sentence.second_opinion) is not None and second.missing is not None
    )
    return tuple(
        Problem(
            part="second_judge",
            message=f"{judge} gave no second opinion on {count} sentences, of which the first "
            f"judge's verdict stands: {why}",
        )
        for (judge, why), count in missing.items()
    )


class SecondJudge:
    """One judge in the service of many answers: it is waited for only so long.

    Args:
        judge: Does the work; nothing of it is loaded yet.
        named: Its name in the settings, for a judge that cannot tell its own.
        cache_size: Verdicts to remember.
    """

    def __init__(self, judge: NLIJudge, named: str, *, cache_size: int = REMEMBERED) -> None:
        self._judge = judge
        self._named = named
        self._batcher: MicroBatcher[GroundingItem, Grounding] = MicroBatcher(
            lambda items: self.grounding.ground(items), key=lambda: named, cache_size=cache_size
        )
        self._failed: dict[GroundingItem, tuple[float, str]] = {}

    @property
    def name(self) -> str:
        """Name and version, for the score log."""
        try:
            return self._judge.name
        except GuardrailError:  # what cannot be loaded is told where it is asked
            return self._named

    @cached_property
    def weighing(self) -> Weighing:
        """How much its probabilities and the findings of checks weigh in a verdict."""
        return getattr(self._judge, "weighing", None) or Weighing()

    @cached_property
    def grounding(self) -> GroundingJudge:
        """The judge itself where it grounds, else by one pair a sentence.

        Words and statements cost a judge of pairs many more of them, and the first judge told them.
        """
        return as_grounding(self._judge, verdict_alone=True)

    def warm_up(self) -> None:
        """Load the model; later calls do nothing."""
        self._judge.warm_up()

    def close(self) -> None:
        """Release the judge; of one that hangs the thread is left to end with the process."""
        self._batcher.close(timeout_s=CLOSING_S)
        close = getattr(self._judge, "close", None)
        if callable(close):
            close()

    def ground(self, items: Sequence[GroundingItem], seconds: float) -> list[Grounding | str]:
        """Judge n sentences within some seconds, or say of each why there is no answer."""
        now = time.monotonic()
        self._failed = {key: at for key, at in self._failed.items() if now - at[0] < FORGOTTEN_S}
        found: dict[GroundingItem, Grounding | str] = {
            item: self._failed[item][1] for item in items if item in self._failed
        }
        new = [item for item in dict.fromkeys(items) if item not in found]
        try:
            if new:
                answers = self._batcher.call(new, timeout_s=max(0.0, seconds))
                found.update(zip(new, answers, strict=True))
        except DeadlineExceededError:
            found.update(dict.fromkeys(new, f"it gave no answer in {max(0.0, seconds):.1f} s"))
        except Exception as error:  # it may be foreign code; the first judge's verdict stands
            found.update(dict.fromkeys(new, str(error) or type(error).__name__))
        told = {item: (now, why) for item in new if isinstance(why := found[item], str)}
        self._failed = {**self._failed, **told}
        return [found[item] for item in items]

    def upon(self, first: Grounding, second: Grounding) -> Grounding:
        """What the second judge says, with what it does not tell as the first one told it.

        That may be words, statements, and which part of what is not supported is contradicted.
        """
        told = {
            name: getattr(first, name)
            for name in ("words", "statements")
            if not getattr(second, name)
        }
        if not traits_of(self.grounding).tells_contradiction:
            rest = first.unsupported + first.contradicted
            share = first.contradicted / rest if rest else 0.0
            lacking = second.unsupported + second.contradicted
            told |= {"contradicted": share * lacking, "unsupported": (1.0 - share) * lacking}
        return second.model_copy(update=told)


class SecondOpinions:
    """Chooses the sentences of each answer that are asked about again, and asks.

    Args:
        judge: The second judge.
        band: Greatest distance from another verdict at which a sentence is asked about.
        share: Greatest share of an answer's sentences, rounded up.
        timeout_s: Seconds to wait for one answer; for several together their number times that.
        growing: Whether all sentences are of one answer that is looked at again and again. Then
            what was decided of a sentence stands, and the share counts those seen so far.
    """

    def __init__(
        self,
        judge: SecondJudge,
        *,
        band: float,
        share: float,
        timeout_s: float,
        growing: bool = False,
    ) -> None:
        self._judge = judge
        self._band = band
        self._share = share
        self._timeout = timeout_s
        self._growing = growing
        self._decided: dict[GroundingItem, Grounding | str | None] = {}

    @property
    def name(self) -> str:
        """Name and version of the judge."""
        return self._judge.name

    @property
    def weighing(self) -> Weighing:
        """How much the judge's probabilities and the findings of checks weigh in a verdict."""
        return self._judge.weighing

    def on(self, doubts: Sequence[Doubt]) -> list[Opinion | None]:
        """Ask about the least sure of n sentences in one batch; None for those not asked about."""
        decided = self._decided if self._growing else {}
        new = [place for place, doubt in enumerate(doubts) if doubt.item not in decided]
        chosen = self._chosen(doubts, new)
        found = [decided.get(doubt.item) for doubt in doubts]
        if chosen:
            answers = len({doubts[place].answer for place in chosen})
            seconds = min(self._timeout * answers, (1.0 - KEPT) * time_left())
            said = self._judge.ground([doubts[place].item for place in chosen], seconds)
            for place, second in zip(chosen, said, strict=True):
                found[place] = second
        if self._growing:
            decided.update((doubts[place].item, found[place]) for place in new)
        return [
            None
            if said is None or doubt.weighed is None
            else self._opinion(doubt.grounding, *doubt.weighed, said)
            for doubt, said in zip(doubts, found, strict=True)
        ]

    def _opinion(
        self, first: Grounding, support: float, contradiction: float, said: Grounding | str
    ) -> Opinion:
        missing = said if isinstance(said, str) else None
        told = SecondOpinion(
            judge=self.name, support=support, contradiction=contradiction, missing=missing
        )
        if isinstance(said, str):
            return Opinion(told, None)
        return Opinion(told, self._judge.upon(first, said))

    def _chosen(self, doubts: Sequence[Doubt], new: Sequence[int]) -> list[int]:
        """Places of those of the new sentences that are asked about."""
        answers: dict[int, list[int]] = {}
        for place in new:
            answers.setdefault(doubts[place].answer, []).append(place)
        seen = len(self._decided)
        spent = sum(said is not None for said in self._decided.values())
        chosen: list[int] = []
        for places in answers.values():
            # Rounded before it is rounded up: 0.1 * 30 is a little more than 3.
            most = math.ceil(round(self._share * (seen + len(places)), 6)) - spent
            distances = [doubts[place].distance for place in places]
            chosen += [places[n] for n in nearest(distances, band=self._band, most=most)]
        return chosen
