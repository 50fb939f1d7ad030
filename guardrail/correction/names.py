"""A name exchanged for the one that an aligned statement tells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from guardrail.correction.edits import Edit
from guardrail.correction.wording import with_article
from guardrail.text.lexicon import lexicon
from guardrail.text.names import nation_words, part_of_name_in
from guardrail.text.words import fold, plain, tokenise
from guardrail.verdict.checks.exact import NAMED, named_share
from guardrail.verdict.subjects import mentions_of

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.premises import Premises

__all__ = ["of_name"]

SURE = 0.5
"""Least probability at which the judge's word on a word or statement counts."""

QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")
"""What tells namesakes apart in labels; prose goes without."""

LONGEST = 60
"""Most characters of a value that is a name."""

Span = tuple[int, int]


class _Held(NamedTuple):
    """A statement whose value the sentence does not tell, and how well it aligns."""

    score: float
    number: int
    value: str


def of_name(claim: Claim, evidence: Premises) -> Edit | None:
    """The exchange of the one name of a contradicted sentence that nothing carries.

    It is exchanged for the value of the statement that the judge puts against the sentence, or
    whose property the sentence names; where two are as near, for neither.

    Args:
        claim: The sentence.
        evidence: What it is held against.
    """
    wrong = _uncarried(claim, evidence)
    held = sorted(_untold(claim, evidence), key=lambda item: -item.score)
    if len(wrong) != 1 or not held:
        return None
    if len(held) > 1 and held[1].score >= held[0].score and held[1].value != held[0].value:
        return None
    return _exchanged(claim, wrong[0], held[0])


def _uncarried(claim: Claim, evidence: Premises) -> list[Span]:
    """The names of a sentence that are no subject of the evidence and no value of theirs.

    Names that a comma joins are one: *Glen Ridge, New Jersey*. Of several those count whose words
    the judge finds contradicted.
    """
    text = plain(claim.text)
    carried = _carried(claim, evidence)
    names = [
        span
        for span in claim.names
        if not any(start < span[1] and span[0] < end for start, end in carried)
        and not any(value.start < span[1] and span[0] < value.end for value in claim.values)
    ]
    joined: list[Span] = []
    for span in names:
        if joined and text[joined[-1][1] : span[0]] == ", ":
            joined[-1] = (joined[-1][0], span[1])
        else:
            joined.append(span)
    if len(joined) < 2 or evidence.grounding is None:
        return joined
    words = [word for word in evidence.grounding.words if word.contradicted >= SURE]
    return [
        span
        for span in joined
        if any(word.start < span[1] and span[0] < word.end for word in words)
    ]


def _carried(claim: Claim, evidence: Premises) -> list[Span]:
    """Where the sentence names subjects of the evidence, and values of those it speaks of."""
    text = plain(claim.text)
    found = mentions_of(claim, evidence.indexed.statements)
    for label in evidence.subjects:
        found += part_of_name_in(claim.tokens, label)
    for _, statement in evidence.chosen:
        if evidence.speaks_of(statement):
            found += statement.stands_in(text, claim.tokens, claim.values)
    return found


def _untold(claim: Claim, evidence: Premises) -> Iterator[_Held]:
    """Statements of what the sentence speaks of whose value is a name that it does not tell."""
    text = plain(claim.text)
    for number, statement in evidence.chosen:
        fact = statement.fact
        if fact is None or not evidence.speaks_of(statement) or not _is_name(statement):
            continue
        value = QUALIFIER.sub("", fact.value).strip()
        if statement.stands_in(text, claim.tokens, claim.values) or fold(value) in fold(text):
            continue
        against = evidence.conflicts(number)
        share = named_share(claim, fact.property)
        if against >= SURE or share >= NAMED:
            yield _Held(against + share, number, value)


def _is_name(statement: Statement) -> bool:
    """Whether a statement's value is a name: short, with a capital, and no typed value."""
    value = statement.value_text.strip()
    return (
        len(value) <= LONGEST
        and value[:1].isupper()
        and not statement.values
        and statement.yes is None
    )


def _exchanged(claim: Claim, span: Span, held: _Held) -> Edit | None:
    text = claim.text
    start, end = span
    words = _as_people(text[start:end], held.value)
    words, end = _without_tail(text, words, end)
    if text[:start].lower().endswith("the ") and words.lower().startswith("the "):
        words = words[4:]
    if not words or words == text[start:end]:
        return None
    start, words = with_article(text, start, words)
    return Edit(start, end, words, held.number)


def _without_tail(text: str, words: str, end: int) -> tuple[str, int]:
    """A value without its last words where they stand behind the name: *English language*."""
    own = tokenise(words)
    behind = tokenise(text[end:])
    for size in range(min(len(own) - 1, len(behind)), 0, -1):
        tail = [token.folded for token in own[-size:]]
        if tail == [token.folded for token in behind[:size]] and text[end : end + 1] == " ":
            return words[: own[-size].start].rstrip(), end
    return words, end


def _as_people(told: str, value: str) -> str:
    """A country as its people where the sentence tells a people: *Italian*, for Italy."""
    if fold(told) not in nation_words() or fold(told) not in _peoples():
        return value
    people = _people_of().get(fold(value))
    return people[0].upper() + people[1:] if people else value


@cache
def _peoples() -> frozenset[str]:
    return frozenset(people for row in lexicon("nations")["nations"] for people in row["peoples"])


@cache
def _people_of() -> dict[str, str]:
    rows: Sequence[dict[str, list[str]]] = lexicon("nations")["nations"]
    return {name: row["peoples"][0] for row in rows for name in row["names"] if row["peoples"]}
