"""A second judge for the sentences that the first one is unsure of.

Its verdict replaces the first one's. If it does not answer in time or within its budget, the first
verdict stands with the reason; there is no retry.

A chat model also follows instructions that are hidden in a sentence or in the evidence, and a small
one prefers a label whatever it reads. Its opinion counts only if it judges controls correctly by
the same evidence. To support a sentence, it must support neither its denial, nor a made-up one, nor
the sentence without evidence. To oppose it, it must support a statement copied from the evidence;
to contradict it, it must not contradict the made-up one. Otherwise the first verdict stands.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

from guardrail.core.errors import DeadlineExceededError, GuardrailError, JudgeError
from guardrail.core.types import (
    Grounding,
    SecondOpinion,
    Usage,
    Used,
    Verdict,
    VerdictThresholds,
)
from guardrail.core.types.judging import Weighed, Weighing
from guardrail.core.workers import time_left, within
from judges.base import GroundingItem, GroundingJudge, NLIJudge, traits_of
from judges.grounding import as_grounding
from judges.service import MicroBatcher
from judges.settings import SPENT, Account, Cost, SecondJudgeSettings, Spending

CACHED = 4_096
"""Default number of cached verdicts; some 20 MB. Corrected answers are judged again."""

LABELS = ("supported", "unsupported", "contradicted")

MADE_UP = "The blue lighthouse at Hallam Point was registered under number 48213 in 1907."
"""A sentence that no evidence supports or contradicts."""


@runtime_checkable
class AnswersEach(Protocol):
    """A judge that may answer some of n sentences and fail on others, within the time left."""

    def answers(
        self, items: Sequence[GroundingItem], accounts: Sequence[Account] = ()
    ) -> list[Grounding | JudgeError]:
        """Judge n sentences; an error for each without an answer.

        Args:
            items: The sentences.
            accounts: Who pays for each, [n]; the first call on a sentence is paid for.
        """
        ...

    def estimate(self, item: GroundingItem) -> Cost:
        """Estimated cost of one call on a sentence."""
        ...


class Doubt(NamedTuple):
    """A sentence with the first judge's verdict.

    Attributes:
        answer: Number of its answer.
        account: Pays for the calls of that answer; None for one of its own.
        item: Input of the first judge.
        grounding: Output of the first judge.
        weighed: The probabilities of the verdict; None where there is no claim.
        thresholds: Thresholds of the verdict.
    """

    answer: int
    account: Account | None
    item: GroundingItem
    grounding: Grounding
    weighed: Weighed | None
    thresholds: VerdictThresholds

    @property
    def distance(self) -> float | None:
        """Distance of the probabilities from another verdict; None if there is no claim."""
        return None if self.weighed is None else self.thresholds.distance(*self.weighed)


class Control(NamedTuple):
    """A sentence whose label is known, judged before an opinion counts.

    Attributes:
        item: The sentence and its evidence.
        label: A label.
        expected: Whether the sentence must get it, or must not.
        failure: Why the opinion does not count otherwise.
    """

    item: GroundingItem
    label: str
    expected: bool
    failure: str

    def fails(self, reply: Grounding) -> bool:
        """True if the judge is wrong; a copied question or heading may claim nothing."""
        given = max(LABELS, key=lambda label: float(getattr(reply, label)))
        if self.expected:
            return given != self.label and reply.no_claim < 0.5
        return given == self.label


class Opinion(NamedTuple):
    """The second opinion on a sentence.

    Attributes:
        record: Record for the answer.
        grounding: Replaces the first judge's; None without an answer.
    """

    record: SecondOpinion
    grounding: Grounding | None


def nearest(distances: Sequence[float | None], *, band: float, most: int) -> list[int]:
    """Indices of the sentences for the second judge, the least sure first.

    Args:
        distances: Distance of each sentence from another verdict; None to leave it out.
        band: Maximum distance.
        most: Maximum number of sentences.
    """
    near = [
        (distance, place)
        for place, distance in enumerate(distances)
        if distance is not None and distance <= band
    ]
    return [place for _, place in sorted(near)[: max(0, most)]]


class SecondJudge:
    """The second judge, shared by many answers, with a time limit for each call.

    Args:
        judge: The judge; loaded on first use.
        named: Its name in the settings, used if it cannot be loaded.
        cache_size: Number of cached verdicts, for a judge without a cache of its own.
    """

    def __init__(self, judge: NLIJudge, named: str, *, cache_size: int = CACHED) -> None:
        self._judge = judge
        self._named = named
        self._batcher: MicroBatcher[GroundingItem, Grounding] = MicroBatcher(
            lambda items: self.grounding.ground(items), key=lambda: named, cache_size=cache_size
        )

    @property
    def name(self) -> str:
        """Name and version, for the score log."""
        try:
            return self._judge.name
        except GuardrailError:  # reported by the first call
            return self._named

    @cached_property
    def weighing(self) -> Weighing | None:
        """Weights of its probabilities and of the checks in a verdict; None for the first judge's.

        A chat model's probabilities are combined with the first judge's.
        """
        if self._follows_instructions:
            return None
        return getattr(self._judge, "weighing", None) or Weighing()

    @cached_property
    def grounding(self) -> GroundingJudge:
        """The judge itself if it grounds, else a wrapper that judges one pair per sentence.

        The scores of words and statements, which take more pairs, are the first judge's.
        """
        return as_grounding(self._judge, verdict_alone=True)

    def warm_up(self) -> None:
        """Load the model; later calls do nothing."""
        self._judge.warm_up()

    def close(self) -> None:
        """Release the judge; a thread that hangs ends with the process."""
        self._batcher.close(timeout_s=1.0)
        close = getattr(self._judge, "close", None)
        if callable(close):
            close()

    @property
    def _follows_instructions(self) -> bool:
        return getattr(self._judge, "follows_instructions", False)

    @property
    def evidence_chars(self) -> int:
        """Characters of evidence that it reads for one sentence."""
        return traits_of(self._judge).evidence_chars

    def in_use(self) -> Usage:
        """Its queue, and its usage so far."""
        inner = [self._judge.in_use()] if isinstance(self._judge, Used) else []
        return Usage.together([self._batcher.in_use(), *inner])

    def estimate(self, item: GroundingItem) -> Cost:
        """Estimated cost of a call on a sentence; a local judge uses no tokens."""
        judge = self._judge
        return judge.estimate(item) if isinstance(judge, AnswersEach) else Cost(1, 0)

    def ground(
        self, payers: Mapping[GroundingItem, Account], seconds: float
    ) -> dict[GroundingItem, Grounding | str]:
        """Judge sentences within a time limit; the reason for each without an answer.

        Args:
            payers: The account that pays for further calls, by sentence; what failed for it is
                not asked again.
            seconds: The limit.
        """
        found: dict[GroundingItem, Grounding | str] = {
            item: payer.failures[item] for item, payer in payers.items() if item in payer.failures
        }
        new = {item: payer for item, payer in payers.items() if item not in found}
        if new:
            found.update(zip(new, self._answers(new, max(0.0, seconds)), strict=True))
        for item, payer in new.items():
            if isinstance(why := found[item], str):
                payer.failures[item] = why
        return found

    def _answers(
        self, payers: Mapping[GroundingItem, Account], seconds: float
    ) -> list[Grounding | str]:
        items = [*payers]
        try:
            judge = self.grounding
            if not isinstance(judge, AnswersEach):
                return [*self._batcher.call(items, timeout_s=seconds)]
            with within(seconds):
                answers = judge.answers(items, [*payers.values()])
            return [str(one) if isinstance(one, JudgeError) else one for one in answers]
        except DeadlineExceededError:
            return [f"it gave no answer in {seconds:.1f} s"] * len(items)
        except Exception as error:  # code of another package; the first verdict stands
            return [str(error) or type(error).__name__] * len(items)

    def controls(self, doubt: Doubt, second: Grounding) -> list[Control]:
        """Sentences that it must judge correctly if its opinion on a sentence is to count."""
        if not self._follows_instructions or doubt.weighed is None:
            return []
        item, first, both = doubt.item, doubt.grounding, self.merged(doubt.grounding, second)
        made_up, *copies = self.shared_controls(item)
        if both.supported > first.supported:
            verdict = doubt.thresholds.verdict(*doubt.weighed)
            # Below half of the threshold no check makes a sentence pass; it may end a contradiction
            low = both.supported <= 0.5 * doubt.thresholds.support
            if verdict is Verdict.SUPPORTED or (low and verdict is Verdict.UNSUPPORTED):
                return []
            bare = item._replace(statements=(), priority=(), evidence=())
            denial = f"It is not true that {item.sentence[:1].lower()}{item.sentence[1:]}"
            return [
                Control(one, "supported", False, f"it supports {what}, too")
                for one, what in (
                    (bare, "the sentence without any evidence"),
                    (item._replace(sentence=denial), "the denial of the sentence"),
                    (made_up, "a made-up sentence by this evidence"),
                )
            ]
        found = []
        failure = "it does not support what the evidence says"
        found += [Control(copied, "supported", True, failure) for copied in copies]
        if both.contradicted > first.contradicted:
            failure = "by this evidence it contradicts a made-up sentence, too"
            found.append(Control(made_up, "contradicted", False, failure))
        return found

    def shared_controls(self, item: GroundingItem) -> list[GroundingItem]:
        """A made-up sentence and a copied one, the same for all sentences by the same evidence."""
        if not self._follows_instructions:
            return []
        known = item._replace(context="")
        if item.evidence:
            known = known._replace(statements=item.evidence, priority=(), windows=())
        return [known._replace(sentence=one) for one in (MADE_UP, *known.statements[:1])]

    def merged(self, first: Grounding, second: Grounding) -> Grounding:
        """The second judge's grounding, completed by the first judge's.

        Missing words, statements and the share of contradiction are taken from the first. The
        probabilities of a chat model are multiplied with the first judge's, so that an undecided
        model changes nothing, and it cannot decide that a sentence makes no claim.
        """
        if self._follows_instructions:
            second = _product(first, second)
        update = {
            name: getattr(first, name)
            for name in ("words", "statements")
            if not getattr(second, name)
        }
        if not traits_of(self.grounding).tells_contradiction:
            rest = first.unsupported + first.contradicted
            share = first.contradicted / rest if rest else 0.0
            lacking = second.unsupported + second.contradicted
            update |= {"contradicted": share * lacking, "unsupported": (1.0 - share) * lacking}
        return second.model_copy(update=update)


class OwnOpinion(SecondJudge):
    """Second judge whose own probabilities are the verdict's, to measure and calibrate them."""

    def controls(self, doubt: Doubt, second: Grounding) -> list[Control]:
        """None: every answer counts."""
        return []

    def merged(self, first: Grounding, second: Grounding) -> Grounding:
        """The second judge's grounding alone."""
        return second


class SecondOpinions:
    """Selects the sentences of each answer for the second judge, and has them judged.

    Args:
        judge: The second judge.
        bounds: Selection of sentences, time limit and budget.
        growing: Whether all sentences belong to one answer that is judged repeatedly while it
            grows. Decisions about a sentence are then final, and the share is that of all
            sentences so far.
    """

    def __init__(
        self, judge: SecondJudge, bounds: SecondJudgeSettings, *, growing: bool = False
    ) -> None:
        self.judge = judge
        self._bounds = bounds
        self._growing = growing
        self._decided: dict[GroundingItem, Grounding | str | None] = {}

    def on(self, doubts: Sequence[Doubt]) -> list[Opinion | None]:
        """Judge the least sure of n sentences in one batch; None for the others."""
        decided = self._decided if self._growing else {}
        new = [place for place, doubt in enumerate(doubts) if doubt.item not in decided]
        found = [decided.get(doubt.item) for doubt in doubts]
        for place, second in self._answers(doubts, self._chosen(doubts, new)).items():
            found[place] = second
        if self._growing:
            decided.update((doubts[place].item, found[place]) for place in new)
        return [
            None if second is None else self._opinion(doubt, second)
            for doubt, second in zip(doubts, found, strict=True)
        ]

    def _answers(
        self, doubts: Sequence[Doubt], chosen: Sequence[int]
    ) -> dict[int, Grounding | str]:
        """Answers or reasons for the chosen sentences, within the budget."""
        budget = self._bounds.per_answer
        accounts: dict[int, Account] = {}
        found: dict[int, Grounding | str] = {}
        payers: dict[GroundingItem, Account] = {}
        for place in chosen:
            doubt = doubts[place]
            account = accounts.setdefault(doubt.answer, doubt.account or self._bounds.account())
            costs = self._costs([doubt.item, *self.judge.shared_controls(doubt.item)])
            if account.pays(costs):
                payers.setdefault(doubt.item, account)
            elif budget.allows([*costs.values()]):
                found[place] = SPENT
            else:
                found[place] = (
                    f"the budget of an answer is too small: a sentence takes {len(costs)} calls, "
                    f"some {sum(cost.tokens for cost in costs.values()):,.0f} tokens"
                )
        # A fifth of the time is left for what follows: scores, corrections, the decision.
        paying = {*payers.values()}
        seconds = min(sum(account.seconds for account in paying), 0.8 * time_left())
        began = time.monotonic()
        replies = self.judge.ground(payers, seconds)
        controls: dict[int, list[Control]] = {}
        controlled: dict[GroundingItem, Account] = {}
        for place in [place for place in chosen if place not in found]:
            second = found[place] = replies[doubts[place].item]
            if isinstance(second, Grounding):
                own = self.judge.controls(doubts[place], second)
                items, account = [control.item for control in own], accounts[doubts[place].answer]
                if account.pays(self._costs(items)):
                    controls[place] = own
                    controlled = dict.fromkeys(items, account) | controlled
                else:
                    found[place] = SPENT
        replies = self.judge.ground(controlled, began + seconds - time.monotonic())
        for account in paying:
            account.seconds -= min(account.seconds, (time.monotonic() - began) / len(paying))
        for place, own in controls.items():
            for control in own:
                reply = replies[control.item]
                if isinstance(reply, str):
                    found[place] = f"its opinion could not be verified: {reply}"
                elif control.fails(reply):
                    found[place] = control.failure
        return found

    def _costs(self, items: Sequence[GroundingItem]) -> dict[object, Cost]:
        """Estimated cost of a call on each of n sentences; nothing where no budget is set."""
        if self._bounds.per_answer == Spending():
            return {}
        return {item: self.judge.estimate(item) for item in items}

    def _opinion(self, doubt: Doubt, second: Grounding | str) -> Opinion | None:
        if doubt.weighed is None:
            return None
        support, contradiction = doubt.weighed
        missing = second if isinstance(second, str) else None
        record = SecondOpinion(
            judge=self.judge.name, support=support, contradiction=contradiction, missing=missing
        )
        if isinstance(second, str):
            return Opinion(record, None)
        return Opinion(record, self.judge.merged(doubt.grounding, second))

    def _chosen(self, doubts: Sequence[Doubt], new: Sequence[int]) -> list[int]:
        """Indices of the new sentences that the second judge gets."""
        answers: dict[int, list[int]] = {}
        for place in new:
            answers.setdefault(doubts[place].answer, []).append(place)
        seen = len(self._decided)
        spent = sum(second is not None for second in self._decided.values())
        chosen: list[int] = []
        for places in answers.values():
            # Rounded before it is rounded up: 0.1 * 30 is a little more than 3.
            most = math.ceil(round(self._bounds.share * (seen + len(places)), 6)) - spent
            distances = [doubts[place].distance for place in places]
            chosen += [places[n] for n in nearest(distances, band=self._bounds.band, most=most)]
        return chosen


def _product(first: Grounding, second: Grounding) -> Grounding:
    """The second grounding, with probabilities proportional to the product of both."""
    least = 1e-4
    shares = [max(least, getattr(first, name)) * getattr(second, name) for name in LABELS]
    scale = (1.0 - first.no_claim) / max(least**2, sum(shares))
    update = {name: share * scale for name, share in zip(LABELS, shares, strict=True)}
    return second.model_copy(update=update | {"no_claim": first.no_claim})
