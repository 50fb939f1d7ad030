"""Typed values: numbers, money, units, dates, times and versions, compared and not guessed.

A value speaks for a statement that it agrees with, where both tell of the same thing: the same
subject, the same property, row or words around them, and a unit that compares. It speaks against
the best such statement where it agrees with none of them; in prose the judge has to say so as well.
A value that agrees with other evidence alone or the question is left to the judge, and not one that
the answer stated before; what agrees with nothing is missing, unless it is computed from others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.text.dates import ClockTime, Date, names_weekday
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.quantities import Quantity
from guardrail.core.text.values import WEB, Agreement, TypedValue, compare, is_case, is_one
from guardrail.core.text.words import content_stems, plain, tokenise
from guardrail.core.types import Effect, Finding
from guardrail.core.workers import stop_if_given_up
from guardrail.verdict.checks.base import LIKELY, NAMED, Context, applies, finding, named_share
from guardrail.verdict.checks.computed import is_computed, is_result
from guardrail.verdict.checks.roles import (
    agrees,
    end_of,
    exchanged_values,
    is_between,
    is_other_end,
    lies_within,
    span_around,
)
from guardrail.verdict.claims import named_in

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.checks.base import Premises
    from guardrail.verdict.claims import Claim


NEAR = 60
"""Characters round a value in a passage whose words say what it is a value of."""

COMPARED = 100
"""Values of one sentence that are compared with all of the evidence's; the rest are missing."""

_Tells = Callable[[TypedValue], bool]


class _Rival(NamedTuple):
    """A value of the evidence that differs from a stated one, and their alignment."""

    score: float
    number: int
    known: TypedValue


class TypedValues:
    """Compares the values of a sentence with those of its evidence."""

    name = "typed_values"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find the values that statements carry, contradict, or that none tells."""
        days = bool(claim.values) and names_weekday(claim.text)
        found, of_parts = list[Finding](), list[Finding]()
        values = claim.values[:COMPARED]
        told_here = cache(lambda known: agrees(known, values))
        exchanged = exchanged_values(claim, evidence)
        for claimed in values:
            stop_if_given_up()
            if days and isinstance(claimed.value, ClockTime):
                continue  # hours of a weekday are for the judge
            span = claimed.start, claimed.end
            if (number := exchanged.get(claimed)) is not None:
                because = f"{claimed.text} is another's: {evidence.indexed.statements[number].text}"
                found.append(
                    finding(self.name, Effect.CONTRADICTS, claim, span, because, (number,))
                )
                continue
            about = _of_column(claimed, claim, evidence)
            if rival := _of_own_part(claimed, claim, evidence):
                of_parts.append(self._against(claimed, rival, claim, evidence))
                continue
            agreeing = _agreeing(claimed, claim, about)
            around, carried = ((), False) if agreeing else _inside(claimed, claim, about)
            if carrying := agreeing or (around if carried else ()):
                before = re.search(r"(?<!\w)(\w++)\s$", claim.text[: claimed.start])
                if claimed.kind == "number" and before and before[1][0].isupper():
                    continue  # *Fjell 3*: that the same thing is named tells nothing of it
                texts = "; ".join([evidence.indexed.statements[n].text for n in carrying])
                because = f"{claimed.text} {'agrees with' if agreeing else 'lies inside'} {texts}"
                found.append(finding(self.name, Effect.CARRIES, claim, span, because, carrying))
                continue
            asked = claim.asked_values
            if around:
                continue  # an example
            as_stated = agrees(claimed, asked) or agrees(claimed, _all_values(evidence))
            other = as_stated or is_computed(claimed, claim, evidence)
            told = told_here if about is evidence else (lambda _: False)
            rival = _rival(claimed, claim, about, told, sure=other)
            rival = rival or (_of_this_end(claimed, claim, about) if as_stated else None)
            stated = [*(value for value in values if value is not claimed), *asked]
            if rival is not None and is_result(claimed, product([rival.known], stated)):
                continue  # such as twice the price of one
            if rival is not None:
                found.append(self._against(claimed, rival, claim, evidence))
            elif text := _as_the_other_end(claimed, claim, about):
                because = f"{claimed.text} is the other end: {text}"
                found.append(finding(self.name, Effect.MISSING, claim, span, because))
            elif not other and not _idle(claimed, evidence):
                because = f"no evidence states {claimed.text}"
                found.append(finding(self.name, Effect.MISSING, claim, span, because))
        if left := claim.values[COMPARED:]:
            because = f"{len(left)} values of the sentence were not compared, beyond {COMPARED}"
            whole = left[0].start, left[-1].end
            found.append(finding(self.name, Effect.MISSING, claim, whole, because))
        return [*_without_carriers(found, evidence), *of_parts]

    def _against(
        self, claimed: TypedValue, rival: _Rival, claim: Claim, evidence: Premises
    ) -> Finding:
        statement = evidence.indexed.statements[rival.number]
        because = f"{claimed.text} is not {rival.known.text}: {statement.text}"
        said = self.name, Effect.CONTRADICTS, claim, (claimed.start, claimed.end), because
        return finding(*said, (rival.number,), instead=rival.known.text)


def _of_column(claimed: TypedValue, claim: Claim, evidence: Premises) -> Premises:
    """The evidence on the subject that heads a value's column in a table, if one does."""
    size, place = claim.text.count("|"), claim.text.count("|", 0, claimed.start)
    cells = claim.before.split("|")[place - size - 1 :: -size] if size and place < size else ()
    named = named_in(cells[-1], tokenise(cells[-1]), evidence.indexed) if cells else ()
    here = evidence.subjects.intersection(named)
    return replace(evidence, subjects=here) if here else evidence


def _without_carriers(found: Sequence[Finding], evidence: Premises) -> list[Finding]:
    """Findings without contradictions by a statement that carries all other values."""
    statements = evidence.indexed.statements
    carriers = {
        number
        for item in found
        if item.effect is Effect.CARRIES
        for number in item.statements
        if not (statements[number].fact and re.fullmatch(r"\S+T\S+", statements[number].value_text))
    }
    return [
        item
        for item in found
        if item.effect is not Effect.CONTRADICTS or not carriers.issuperset(item.statements)
    ]


def _agreeing(claimed: TypedValue, claim: Claim, evidence: Premises) -> tuple[int, ...]:
    """The aligned statements that hold a value, the best aligned ones."""
    scores: dict[int, float] = {}
    for number, statement in _aligning(evidence):
        for known in statement.values:
            if compare(claimed, known) is Agreement.SAME:
                if evidence.is_ambiguous(claim, statement) or not applies(claim, statement):
                    continue
                if statement.fact is None and (
                    _of_another_part(claimed, known, claim, statement)
                    or _ends(claimed, known, claim, statement) < 0
                ):
                    continue
                score = _alignment(claimed, known, claim, evidence, number)
                scores[number] = max(score, scores.get(number, 0.0))
    best = max(scores.values(), default=0.0)
    return tuple([number for number, score in scores.items() if score == best > 0.0])


def _of_another_part(
    claimed: TypedValue, known: TypedValue, claim: Claim, statement: Statement
) -> bool:
    """Whether a sentence has more words of the part of a statement that gives another value."""
    alike = [item for item in statement.values if item.kind == known.kind]
    if all(compare(claimed, item) is not Agreement.CONFLICT for item in alike):
        return False
    parts = parts_of(statement, alike)
    own = content_stems(next(text for text, values in parts if known in values))
    others = content_stems(" ".join(text for text, values in parts if known not in values))
    figures = content_stems(" ".join(item.text for item in alike))
    mine = claim.stems - figures
    return 0 < len((others - own) & mine) >= len((own - others) & mine)


def parts_of(
    statement: Statement, alike: Sequence[TypedValue]
) -> list[tuple[str, list[TypedValue]]]:
    """The parts of prose that give one of some values each, with all values in them."""
    text = plain(statement.text)
    starts = [0]
    for item, following in pairwise(sorted(alike, key=attrgetter("start"))):
        cut = re.search(r"\b(?:and|but|while|then|or)\b|[,;:]", text[item.end : following.start])
        starts.append(item.end + cut.start() if cut else following.start)
    return [
        (text[a:b], [value for value in statement.values if a <= value.start < b])
        for a, b in pairwise([*starts, len(text)])
    ]


def _of_own_part(claimed: TypedValue, claim: Claim, evidence: Premises) -> _Rival | None:
    """The value that evidence gives with another value of the sentence, where the sentence differs.

    *500 gems cost 9.99 euros*, where they cost 4.99 and 1,200 gems cost 9.99.
    """
    keys = [item for item in claim.values if _may_pick(item, claimed, claim)]
    for number, statement in _aligning(evidence) if keys else ():
        alike = [item for item in statement.values if item.kind == claimed.kind]
        if statement.fact is not None or len(alike) < 2 or not agrees(claimed, alike):
            continue
        figures = content_stems(" ".join(item.text for item in statement.values))
        parts = parts_of(statement, alike)
        meant: list[list[TypedValue]] = []
        for place, (text, values) in enumerate(parts):
            others = [part for n, part in enumerate(parts) if n != place]
            words = content_stems(text) - content_stems(" ".join(part for part, _ in others))
            told = [
                v for v in keys
                if [text for text, held in parts if any(is_one(v, h) for h in held)] == [text]
            ]  # fmt: skip
            if told or not (words - figures).isdisjoint(claim.stems):
                meant.append(values if any(v.end <= claimed.start for v in told) else [])
        if len(meant) == 1 and not agrees(claimed, meant[0]):
            rivals = [item for item in meant[0] if compare(claimed, item) is Agreement.CONFLICT]
            if len(rivals) == 1:
                return _Rival(1.0, number, rivals[0])
    return None


def _may_pick(item: TypedValue, claimed: TypedValue, claim: Claim) -> bool:
    """Whether a value may say which part of a sentence is meant: no date, and not *unlike 500*."""
    words = {token.folded for token in claim.tokens if token.end <= item.start}
    apart = words & lexicon_set("grammar", "setting_apart")
    return item.kind != claimed.kind and not isinstance(item.value, Date) and not apart


def _ends(claimed: TypedValue, known: TypedValue, claim: Claim, statement: Statement) -> int:
    """1 if two values stand as the same end of a span, -1 as different ends, 0 if not as ends."""
    theirs = end_of(tokenise(plain(statement.text)), known.start)
    return theirs and end_of(claim.tokens, claimed.start) * theirs


def _inside(claimed: TypedValue, claim: Claim, evidence: Premises) -> tuple[tuple[int, ...], bool]:
    """The facts of a range in which a value lies, and whether they carry more than an example."""
    statements, possible = evidence.indexed.statements, lexicon_set("grammar", "possible")
    own = [number for number, _ in evidence.indexed.facts_of(evidence.subjects)]
    prose = [number for number, statement in _aligning(evidence) if statement.fact is None]
    for number in (*own, *prose):
        fact = statements[number].fact
        named = fact is None or named_share(claim, fact.property) >= LIKELY
        span = span_around(claim, claimed.start, number, evidence)
        if span and is_between(claimed, *(statements[end].values[0] for end in span)):
            labels = [end.fact.property for n in span if (end := statements[n]).fact]
            return span, any(named_share(claim, label) >= LIKELY for label in labels)
        if named and lies_within(claim, claimed, statements[number]):
            words = {token.folded for token in claim.tokens}
            may = isinstance(claimed.value, ClockTime) or not words.isdisjoint(possible)
            denied = not words.isdisjoint(lexicon_set("function_words", "negations"))
            return (number,), fact is not None and may and not denied
    return (), False


def _as_the_other_end(claimed: TypedValue, claim: Claim, evidence: Premises) -> str:
    """The fact whose value a sentence gives for the other end, such as a minimum; or nothing."""
    for _, statement in _aligning(evidence):
        if statement.fact is not None and is_other_end(claim, claimed.start, statement):
            named = named_share(claim, statement.fact.property) >= 0.5
            if named and agrees(claimed, statement.values):
                return statement.text
    return ""


def _of_this_end(claimed: TypedValue, claim: Claim, evidence: Premises) -> _Rival | None:
    """The value that a passage has for an end of a range, if the sentence gives the other end's."""
    for number, statement in _aligning(evidence):
        if statement.fact is not None:
            continue
        at = {known: _ends(claimed, known, claim, statement) for known in statement.values}
        other = any(at[k] < 0 and compare(claimed, k) is Agreement.SAME for k in at)
        mine = [k for k in at if at[k] > 0 and compare(claimed, k) is Agreement.CONFLICT]
        if other and len(mine) == 1:
            return _Rival(1.0, number, mine[0])
    return None


def _aligning(evidence: Premises) -> list[tuple[int, Statement]]:
    """The statements whose values may align: facts, and prose that the judge is sure of."""
    return [
        (number, statement)
        for number, statement in evidence.chosen
        if evidence.speaks_of(statement)
        and (statement.fact is not None or _word(evidence, number) >= LIKELY)
    ]


def _word(evidence: Premises, number: int) -> float:
    """How sure the judge is that a statement carries or denies a part of the sentence."""
    return max(evidence.carries(number), evidence.conflicts(number))


def _idle(claimed: TypedValue, evidence: Premises) -> bool:
    """Whether a value may tell nothing by itself: *one day*, a link, a case of a rule."""
    value = claimed.value
    one = isinstance(value, Quantity) and value.words and value.low == 1
    return one or claimed.kind == WEB or any(is_case(claimed, v) for v in _all_values(evidence))


def _all_values(evidence: Premises) -> Iterable[TypedValue]:
    return (value for values in evidence.indexed.values.values() for value in values)


def _rival(
    claimed: TypedValue, claim: Claim, evidence: Premises, stated: _Tells, *, sure: bool
) -> _Rival | None:
    """The value that the best aligned statement gives instead; None where none is sure."""
    rivals: list[_Rival] = []
    if sure and len(evidence.subjects) != 1:
        return None
    having = [s for s in evidence.indexed.statements if sure and agrees(claimed, s.values)]
    for number, statement in _aligning(evidence):
        fact, borrowed = statement.fact, _is_borrowed(statement, having)
        if sure and not borrowed and (not fact or named_share(claim, fact.property) < NAMED):
            continue
        if span_around(claim, claimed.start, number, evidence):
            continue
        for known in statement.values:
            verdict = compare(claimed, known)
            if verdict is Agreement.SAME or stated(known):
                continue
            score = _alignment(claimed, known, claim, evidence, number) or float(borrowed)
            if score <= 0.0:
                continue
            if verdict is Agreement.CONFLICT:
                rivals.append(_Rival(score, number, known))
            elif known.kind == claimed.kind and not _other_rate(claimed, known):
                return None  # a range or bound leaves room
    best = max((item.score for item in rivals), default=0.0)
    level = [item for item in rivals if item.score == best]
    same = all(compare(item.known, level[0].known) is Agreement.SAME for item in level[1:])
    return level[0] if level and same else None


def _is_borrowed(own: Statement, having: Sequence[Statement]) -> bool:
    """Whether only the same fact about what is called alike has a value: *Fjell 3*, *Fjell 3 E*."""
    alike = [item for item in having if item.fact and own.subject in item.subject]
    labels = {item.fact.property if item.fact else "" for item in (own, *alike)}
    return 0 < len(alike) == len(having) and own not in having and len(labels) == 1


def _other_rate(claimed: TypedValue, known: TypedValue) -> bool:
    """Whether two values are rates of different things: *per month*, *per accession*."""
    mine, theirs = claimed.value, known.value
    rates = isinstance(mine, Quantity) and isinstance(theirs, Quantity)
    return rates and bool(mine.per and theirs.per) and mine.per != theirs.per  # type: ignore[union-attr]


def _alignment(
    claimed: TypedValue, known: TypedValue, claim: Claim, evidence: Premises, number: int
) -> float:
    """Confidence that two values are about the same thing; 0 if they are not."""
    statement, word = evidence.indexed.statements[number], _word(evidence, number)
    if statement.fact is not None:
        if is_other_end(claim, claimed.start, statement):
            return 0.0
        share = named_share(claim, statement.fact.property)
        likely = evidence.conflicts(number) >= LIKELY and claimed.kind == known.kind
        elsewhere = likely and any(  # a property is named in full, without its own value
            item.fact and named_share(claim, item.fact.property) == 1.0 and not claim.where(item)
            for _, item in evidence.indexed.facts_of(evidence.subjects)
        )
        if share >= 0.5 or (likely and not elsewhere):
            return share + word + 0.01
        return 0.0
    mine = _near(claim.plain, claimed) - content_stems(claimed.text)
    theirs = _near(plain(statement.text), known)
    hits = len(mine & theirs)
    if hits and word >= LIKELY:
        return hits / max(1, len(mine)) + word
    return 0.0


def _near(text: str, value: TypedValue) -> frozenset[str]:
    before = text[max(0, value.start - NEAR) : value.start]
    return content_stems(f"{before} {text[value.end : value.end + NEAR]}")
