"""Copied sentences: a sentence of the answer that the evidence contains word for word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.text.dates import timeless
from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.names import find_names
from guardrail.core.text.values import Agreement, TypedValue, compare, find_values
from guardrail.core.text.words import Token, content_stems, copy_key, fold, outside, plain, tokenise
from guardrail.core.types import Effect, Finding
from guardrail.verdict.checks.base import Context, applies, finding
from guardrail.verdict.claims import named_runs

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.checks.base import Premises
    from guardrail.verdict.claims import Claim


OPENING = 4
"""A pronoun among the first words may be the subject."""

HEAD = 2
"""Content words at the start of a sentence that say what it is about."""


class Copied:
    """Finds sentences, list items and facts of the evidence that an answer repeats.

    A copy settles the verdict. So does the difference of a sentence that differs from a statement
    in one value or in a negation only. A clause of a longer sentence is no copy: it may stand under
    a condition, a negation, a comparison or an attribution there.
    """

    name = "copied"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find the statement that the sentence copies, or differs from in one place only."""
        if claim.is_turned:
            return ()
        statements = evidence.indexed.statements
        span = (0, len(claim.text))
        said = claim.text[_reply_in(claim.text) :]
        copies = tuple([
            number
            for number in evidence.indexed.copies.get(copy_key(said), ())
            if _same_subject(claim, evidence, number)
        ])  # fmt: skip
        if copies:
            because = f"copied from {statements[copies[0]].text}"
            return (finding(self.name, Effect.CARRIES, claim, span, because, copies, decides=True),)
        found = [
            (number, difference)
            for number, statement in evidence.chosen
            if statement.triple is None and statement.words and not statement.quoted
            if (difference := _difference(claim, statement)) is not None
            if _same_subject(claim, evidence, number)
        ]
        found += list(_timed(claim, evidence))
        same = tuple(number for number, item in found if item.effect is Effect.CARRIES)
        if same:
            because = f"same as {statements[same[0]].text}"
            return (finding(self.name, Effect.CARRIES, claim, span, because, same, decides=True),)
        against = [item for item in found if item[1].effect is Effect.CONTRADICTS]
        if not found:
            return ()
        number, (effect, span, instead) = (against or found)[0]
        because, held = f"differs from {statements[number].text}", (number,) if against else ()
        return (
            finding(self.name, effect, claim, span, because, held, instead=instead, decides=True),
        )


def _same_subject(claim: Claim, evidence: Premises, number: int) -> bool:
    """Whether a copy speaks of what its original speaks of."""
    statement = evidence.indexed.statements[number]
    if statement.above:
        return content_stems(statement.above) <= content_stems(claim.before)
    pointers = lexicon_set("function_words", "third_persons")
    if statement.triple is not None or all(
        token.folded not in pointers for token in claim.tokens[:OPENING]
    ):
        return True
    before = plain(claim.before) or plain(claim.question)
    if not before:
        return True
    last = before.rstrip(".!? ").rpartition(". ")[2] if claim.before else before
    around = plain(" ".join(evidence.indexed.before(number)))
    if names := named_runs(last, tokenise(last)):
        name = " ".join(token.folded for token in tokenise(last[slice(*names[0])]))
        known = " ".join(token.folded for token in tokenise(around))
        return re.search(rf"(?<!\w){re.escape(name)}(?! ?\d)(?!\w)", known) is not None
    head = [token.stem for token in tokenise(last) if token.stem in content_stems(last)][:HEAD]
    return not head or not content_stems(around).isdisjoint(head)


def _reply_in(text: str) -> int:
    """Where a sentence begins behind a *No* that only answers: *No, it closes at 5*."""
    reply = r"\W*(?:(?:sorry|unfortunately),? )?(?:no|nope)\b\W*[,:;.–—-]\s*"
    match = re.match(reply, text, re.IGNORECASE)
    return match.end() if match else 0


class _Difference(NamedTuple):
    """The only difference of a sentence from a statement; offsets are the sentence's own."""

    effect: Effect
    span: tuple[int, int]
    instead: str | None = None


class _Unit(NamedTuple):
    """A word or value of a sentence; ``key`` is empty for a value."""

    key: str
    start: int
    end: int
    value: TypedValue | None = None


def _difference(claim: Claim, statement: Statement) -> _Difference | None:
    """How a sentence differs from a statement that has otherwise the same words; None if more."""
    words, theirs = claim.stems, content_stems(plain(statement.words))
    if 2 * len(words & theirs) < 0.6 * (len(words) + len(theirs)):  # too few in common
        return None
    reply = _reply_in(claim.plain)
    tokens = [token for token in claim.tokens if token.start >= reply]
    mine = _units(claim.plain, tokens, claim.values)
    text = plain(statement.words)
    held = _units(text, tuple(tokenise(text)), find_values(text))
    if [unit.key for unit in mine] == [unit.key for unit in held]:
        return _of_values(claim, [(a, b) for a, b in zip(mine, held, strict=True) if a.value])
    if sorted(unit.key for unit in mine) == sorted(unit.key for unit in held):
        return _exchanged(claim, mine, held)
    bare = [[unit.key for unit in units if not _denies(unit)] for units in (mine, held)]
    denials = [[unit for unit in units if _denies(unit)] for units in (mine, held)]
    if bare[0] == bare[1] and len(denials[0]) != len(denials[1]):
        values = [unit for unit in mine if unit.value], [unit for unit in held if unit.value]
        pairs = list(zip_longest(*values))
        if any(_agree(a, b) is not Agreement.SAME for a, b in pairs):
            return None
        marks = denials[0] or mine
        return _Difference(Effect.CONTRADICTS, (marks[0].start, marks[-1].end))
    return None


def _timed(claim: Claim, evidence: Premises) -> Iterator[tuple[int, _Difference]]:
    """Statements with a span of time that are otherwise what the sentence says of one time."""
    spans = [
        (number, statement)
        for number, statement in evidence.chosen
        if statement.triple is None and not statement.quoted and statement.validity is not None
    ]
    if not spans:
        return
    text, stative = claim.plain, lexicon_set("grammar", "stative")
    dates = [value for value in claim.values if value.kind == "date"]
    rest = [unit for unit in _units(text, claim.tokens, claim.values) if unit.value not in dates]
    opening = next(iter(find_names(text)), (0, 0))
    name = text[slice(*opening)]
    for number, statement in spans:
        words = timeless(plain(statement.words))
        held = _units(words, tokenise(words), find_values(words))
        mine = rest
        pointers = lexicon_set("function_words", "third_persons")
        before = " ".join(evidence.indexed.before(number))
        if held and held[0].key in pointers and name and name in before:
            held, mine = held[1:], [unit for unit in rest if unit.start >= opening[1]]
        keys = [
            [unit.key for unit in units if unit.value or unit.key not in stative]
            for units in (mine, held)
        ]
        if keys[0] and keys[0] == keys[1]:
            pairs = [(a, b) for a, b in zip(mine, held, strict=False) if a.value and b.value]
            if all(_agree(a, b) is Agreement.SAME for a, b in pairs):
                effect = Effect.CARRIES if applies(claim, statement) else Effect.MISSING
                yield number, _Difference(effect, (0, len(claim.text)))


def _exchanged(claim: Claim, mine: Sequence[_Unit], held: Sequence[_Unit]) -> _Difference | None:
    """The same words in another order: of a comparison the names have changed sides."""
    names = find_names(claim.plain)
    moved = [a for a, b in zip(mine, held, strict=True) if a.key != b.key]
    if not moved or not all(any(s <= a.start < e for s, e in names) for a in moved if not a.value):
        return None
    compares = any(unit.key in lexicon_set("grammar", "comparing") for unit in mine)
    effect = Effect.CONTRADICTS if compares else Effect.MISSING
    return _Difference(effect, (moved[0].start, moved[-1].end))


def _of_values(claim: Claim, pairs: Sequence[tuple[_Unit, _Unit]]) -> _Difference:
    span = (0, len(claim.text))
    others = [(a, b) for a, b in pairs if _agree(a, b) is not Agreement.SAME]
    if not others:
        return _Difference(Effect.CARRIES, span)
    mine, held = others[0]
    dated = mine.value is not None and mine.value.kind == "date" and len(pairs) > 1
    if len(others) == 1 and _agree(mine, held) is Agreement.CONFLICT and not dated:
        assert held.value is not None
        return _Difference(Effect.CONTRADICTS, (mine.start, mine.end), held.value.text)
    return _Difference(Effect.MISSING, (mine.start, mine.end))


def _agree(mine: _Unit, held: _Unit) -> Agreement:
    assert mine.value is not None
    assert held.value is not None
    return compare(mine.value, held.value)


def _units(text: str, tokens: Sequence[Token], values: Sequence[TypedValue]) -> list[_Unit]:
    """The words and values of a sentence in order, without articles and forms of *do*.

    The words of a bound, such as *at least* before a number, belong to its value.
    """
    light = lexicon_set("grammar", "dummies")
    units = [_Unit("", value.start, value.end, value) for value in values]
    spans = [(value.start, value.end) for value in values]
    starts, bounds = {value.start for value in values}, _words_of_bounds()
    for token in reversed(tokens):
        follows = text[token.end : token.end + 1].isspace() and token.end + 1 in starts
        if follows and token.folded in bounds:
            spans.append((token.start, token.end))
            starts.add(token.start)
    for token in outside(tokens, spans):
        units += [
            _Unit(word, token.start, token.end) for word in _words(token) if word not in light
        ]
    return sorted(units, key=lambda unit: (unit.start, unit.end))


@cache
def _words_of_bounds() -> frozenset[str]:
    numbers = lexicon("numbers")
    kinds = ("above", "below", "at_least", "at_most")
    return frozenset(word for kind in kinds for phrase in numbers[kind] for word in phrase.split())


def _words(token: Token) -> Iterator[str]:
    """The stem of a word; of *isn't* and *cannot* the verb and *not*."""
    if token.folded == "cannot" or token.folded.endswith("n't"):
        verb = token.folded.removesuffix("not").removesuffix("n't")
        yield lexicon("grammar")["shortened"].get(verb, verb)
        yield "not"
    else:
        yield token.stem


def _denies(unit: _Unit) -> bool:
    return unit.value is None and fold(unit.key) in lexicon_set("function_words", "negations")
