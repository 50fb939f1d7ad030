"""Any NLI judge as a grounding judge: several pairs per sentence instead of one pass.

The verdict is that of all statements together on the sentence. A triple carries a part of the
sentence if the sentence entails it; a sentence of a passage does if it entails the sentence or a
part of it. Words are missing if the sentence is entailed without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from guardrail.core.errors import JudgeError
from guardrail.core.plugins import external_errors
from guardrail.core.types import Grounding, NLIScores, StatementScore, WordScore
from judges.base import GroundingItem, GroundingJudge, JudgeAround, NLIJudge, Pair, traits_of
from judges.lifting import sub_facts

TRIPLE = re.compile(r"^[^.!?]{1,160}?, [^:.!?]{1,80}: .*\.$", re.DOTALL)
"""A linearised triple: subject, property, value."""

WORD = re.compile(r"\w+(?:['’.,-]\w+)*")

NOTHING = Grounding(supported=0.0, unsupported=1.0, contradicted=0.0, no_claim=0.0)
"""Result without evidence, or without a sentence."""


class _Plan(NamedTuple):
    """Indices of the pairs of one item: for the sentence, and for each statement."""

    whole: int
    statements: dict[int, range]


def as_grounding(
    judge: NLIJudge | GroundingJudge, *, verdict_alone: bool = False
) -> GroundingJudge:
    """The judge itself if it grounds in one pass, else a wrapper that grounds by pairs.

    Args:
        judge: The judge.
        verdict_alone: Whether to leave out scores of words and statements, which take more pairs.

    Raises:
        JudgeError: The model cannot be loaded to see whether it grounds.
    """
    if isinstance(judge, GroundingJudge) and getattr(judge, "grounds", True):
        return judge
    return NLIGrounding(cast("NLIJudge", judge), verdict_alone=verdict_alone)


def grounded_by(judge: GroundingJudge, items: Sequence[GroundingItem]) -> list[Grounding]:
    """Ground n items with any judge, and check that its output is complete.

    Raises:
        JudgeError: It failed, or did not give one ``Grounding`` for each item.
    """
    with external_errors("the judge", JudgeError):
        found = list(judge.ground(items))
    others = [item for item in found if not isinstance(item, Grounding)]
    if len(found) != len(items) or others:
        raise JudgeError(
            f"the judge gave {len(found)} results for {len(items)} items; it must give one "
            "Grounding for each"
        )
    return found


class NLIGrounding(JudgeAround[NLIJudge]):
    """Grounds sentences with an NLI judge.

    Args:
        nli: The judge.
        verdict_alone: Whether to leave out which words lack support and what single statements
            carry, for which further pairs are judged.
    """

    def __init__(self, nli: NLIJudge, *, verdict_alone: bool = False) -> None:
        super().__init__(nli)
        self._verdict_alone = verdict_alone
        self._room = traits_of(nli).premise_chars

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Ground n sentences; see ``GroundingJudge``."""
        pairs: list[Pair] = []
        plans = [self._plan(item, pairs) for item in items]
        scores = self._inner.judge(pairs) if pairs else []
        found = [
            NOTHING if plan is None else _grounding(item, plan, scores)
            for item, plan in zip(items, plans, strict=True)
        ]
        return found if self._verdict_alone else self._with_words(items, found)

    def _plan(self, item: GroundingItem, pairs: list[Pair]) -> _Plan | None:
        """Add the pairs of an item; None if there is nothing to judge."""
        if not item.statements or not item.sentence.strip():
            return None
        whole = len(pairs)
        pairs.append(Pair(_premise_of(item, self._room), item.sentence))
        # At most eight statements are judged one by one, the most important first.
        order: Sequence[int] = item.priority or range(len(item.statements))
        statements: dict[int, range] = {}
        for number in () if self._verdict_alone else order[:8]:
            text = item.statements[number]
            first = len(pairs)
            if TRIPLE.match(text):
                pairs.append(Pair(item.sentence, text))
            else:
                parts = sub_facts(item.sentence)
                asked = (item.sentence, *(parts[:2] if len(parts) > 1 else ()))
                pairs += [Pair(text, part) for part in asked]
            statements[number] = range(first, len(pairs))
        return _Plan(whole, statements)

    def _with_words(
        self, items: Sequence[GroundingItem], found: Sequence[Grounding]
    ) -> list[Grounding]:
        """Score the words without which an unsupported sentence would be supported."""
        pairs: list[Pair] = []
        places: list[tuple[int, tuple[int, int]]] = []
        for number, (item, grounding) in enumerate(zip(items, found, strict=True)):
            if grounding.supported >= 0.5 or not item.statements:
                continue
            for start, end in _spans(item.sentence):
                rest = " ".join(f"{item.sentence[:start]} {item.sentence[end:]}".split())
                pairs.append(Pair(_premise_of(item, self._room), rest))
                places.append((number, (start, end)))
        results = self._inner.judge(pairs) if pairs else []
        gained: list[dict[tuple[int, int], float]] = [{} for _ in items]
        for (number, span), result in zip(places, results, strict=True):
            gained[number][span] = max(0.0, result.entailment - found[number].supported)
        return [
            grounding.model_copy(update={"words": _word_scores(item.sentence, gains, grounding)})
            if gains
            else grounding
            for item, gains, grounding in zip(items, gained, found, strict=True)
        ]


def _premise_of(item: GroundingItem, room: int) -> str:
    """The most important statements as one text, in their order.

    Neighbouring triples of one subject share a sentence.

    Args:
        item: The statements, and which are important.
        room: Most characters of the text; one statement is there at least.
    """
    chosen: set[int] = set()
    for number in item.priority or range(len(item.statements)):
        if not chosen or len(item.statements[number]) < room:
            chosen.add(number)
            room -= len(item.statements[number]) + 1
    parts: list[str] = []
    last = ""
    for text in (item.statements[number] for number in sorted(chosen)):
        subject = text.split(", ", 1)[0] if TRIPLE.match(text) else ""
        if subject and subject == last:
            parts[-1] = f"{parts[-1].rstrip('.')}, {text[len(subject) + 2 :]}"
        else:
            parts.append(text)
        last = subject
    return " ".join(parts)


def _grounding(item: GroundingItem, plan: _Plan, scores: Sequence[NLIScores]) -> Grounding:
    whole = scores[plan.whole]
    numbers = range(len(item.statements)) if plan.statements else ()
    statement_scores = tuple(
        StatementScore(
            carries=max(scores[place].entailment for place in plan.statements[number]),
            conflicts=max(scores[place].contradiction for place in plan.statements[number]),
        )
        if number in plan.statements
        else None
        for number in numbers
    )
    return Grounding(
        supported=whole.entailment,
        unsupported=whole.neutral,
        contradicted=whole.contradiction,
        no_claim=0.0,
        statements=statement_scores,
    )


def _spans(sentence: str) -> Iterator[tuple[int, int]]:
    """Spans of consecutive words of a sentence, the last ones first, without its first words."""
    words = list(WORD.finditer(sentence))
    size = max(1, -(-len(words) // 6))
    for first in range(len(words) - size, 0, -size):
        run = words[first : first + size]
        yield run[0].start(), run[-1].end()


def _word_scores(
    sentence: str, gains: dict[tuple[int, int], float], grounding: Grounding
) -> tuple[WordScore, ...]:
    against = grounding.contradicted > grounding.unsupported
    found: list[WordScore] = []
    for match in WORD.finditer(sentence):
        gain = max(
            (item for (a, b), item in gains.items() if a <= match.start() and match.end() <= b),
            default=0.0,
        )
        missing, contradicted = (0.0, gain) if against else (gain, 0.0)
        found.append(
            WordScore(
                start=match.start(), end=match.end(), missing=missing, contradicted=contradicted
            )
        )
    return tuple(found)
