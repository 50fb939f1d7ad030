"""A name exchanged for the one that an aligned statement tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.text.names import label_in, part_of_name_in
from guardrail.core.text.properties import cues
from guardrail.core.text.tagging import parse
from guardrail.core.text.words import content_stems, fold, plain, property_words, tokenise
from guardrail.correction.edits import Edit, replaced
from guardrail.correction.lists import names_listed
from guardrail.correction.nations import is_nation, may_be_one, nation_like
from guardrail.correction.wording import PART_OF_NOUN, with_article
from guardrail.verdict.checks.alignment import NAMED, named_share

if TYPE_CHECKING:
    from guardrail.core.types import Triple
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.premises import Premises

__all__ = ["of_name"]

SURE = 0.5
"""Least probability at which the judge's word on a word or statement counts."""

QUALIFIER = re.compile(r"(?<!\s)\s*\([^()]*\)\s*$")
"""What tells namesakes apart in labels; prose goes without."""

SPELLING = 0.85
"""Names as alike as this are two spellings of one."""

LONGEST = 60
"""Most characters of a value that is a name."""

JOINTS = (", ", " of ", " of the ", " &amp; ")
"""What joins two names that nothing carries into one."""

INITIALS = re.compile(r"(?<![\w.])(?:[A-Z]\. ?)+$")
"""What opens the name behind it: the *S.* of *S. William Green*."""

GOES_ON = re.compile(r" of (?:the )?[A-Z]")
GOES_BEFORE = re.compile(r"\b[A-Z][\w'’-]* of (?:the )?$")

Span = tuple[int, int]


class _Held(NamedTuple):
    """A statement whose value the sentence does not tell, and how well it aligns."""

    score: float
    number: int
    property: str
    value: str
    named: float
    conflict: float


def of_name(
    claim: Claim, evidence: Premises, against: int | None, elsewhere: str = ""
) -> Edit | None:
    """The exchange of the one name of a contradicted sentence that nothing carries.

    It is exchanged for the value of the statement that the judge puts against the sentence, or
    whose property the sentence names. Where two are as near, or the property has several values,
    the sentence may mean another: nothing is exchanged.

    Args:
        claim: The sentence.
        evidence: What it is held against.
        against: Number of the statement that the judge puts against it; None where it names none.
        elsewhere: The rest of the answer: a value that it tells already is not meant here.
    """
    held = sorted(_untold(claim, evidence, against, elsewhere), key=lambda item: -item.score)
    wrong = _uncarried(claim, evidence)
    if not wrong and held and held[0].named >= NAMED:
        # A name that the evidence has of another property alone, while this one is named.
        wrong = _uncarried(claim, evidence, named=True)
    if len(wrong) != 1 or not held:
        return None
    first, told = held[0], claim.text[slice(*wrong[0])]
    if any(
        other.value != first.value
        and (other.score >= first.score or min(other.named / NAMED, other.conflict / SURE) >= 1.0)
        for other in held[1:]
    ):
        return None
    if is_nation(told) is not is_nation(first.value):
        return None  # no country stands where a dish does
    if _is_one_of_several(claim, first, evidence):
        return None
    return _exchanged(claim, wrong[0], first)


def _uncarried(claim: Claim, evidence: Premises, *, named: bool = False) -> list[Span]:
    """The names of a sentence that are no subject of the evidence, no value, and no property.

    Names that a comma joins are one: *Glen Ridge, New Jersey*. Of several those count whose words
    the judge finds contradicted.

    Args:
        claim: The sentence.
        evidence: What it is held against.
        named: Whether only values of properties carry a name that the sentence names.
    """
    text = plain(claim.text)
    carried = _carried(claim, evidence, named=named)
    properties = frozenset[str]().union(
        *(
            content_stems(property_words(item.fact.property))
            for _, item in evidence.chosen
            if item.fact
        )
    )
    names = [
        span
        for span in claim.names
        if not any(start < span[1] and span[0] < end for start, end in carried)
        and content_stems(text[slice(*span)]).isdisjoint(properties)
        and not any(value.start < span[1] and span[0] < value.end for value in claim.values)
    ]
    joined: list[Span] = []
    for span in names:
        if joined and text[joined[-1][1] : span[0]] in JOINTS:
            joined[-1] = (joined[-1][0], span[1])
        else:
            joined.append(span)
    joined = [(_with_initials(text, start), end) for start, end in joined]
    # What is left is a piece where a name goes on: *Bank* of *Bank of Scotland*.
    joined = [
        (start, end)
        for start, end in joined
        if not GOES_ON.match(text[end:]) and not GOES_BEFORE.search(text[:start])
    ]
    if len(joined) < 2 or evidence.grounding is None:
        return joined
    words = [word for word in evidence.grounding.words if word.contradicted >= SURE]
    return [
        span
        for span in joined
        if any(word.start < span[1] and span[0] < word.end for word in words)
    ]


def _carried(claim: Claim, evidence: Premises, *, named: bool) -> list[Span]:
    """Where the sentence names subjects of the evidence, and values of those it speaks of."""
    found = [*claim.mentions]
    for label in evidence.subjects:
        found += part_of_name_in(claim.tokens, label)
    for _, statement in evidence.chosen:
        fact = statement.fact
        of_another = named and fact is not None and named_share(claim, fact.property) < NAMED
        if evidence.speaks_of(statement) and not of_another:
            found += _told(claim, statement)
            found += _told_otherwise(claim, statement)
    return found


def _with_initials(text: str, start: int) -> int:
    """Where a name begins whose initials are no words of it yet."""
    initials = INITIALS.search(text[:start])
    return initials.start() if initials else start


def _told(claim: Claim, statement: Statement) -> list[Span]:
    """Where a sentence tells a statement's value, but not by a piece of another name.

    The *Café* of *Café Brazil* tells no *Café Sicilia*.
    """
    spans = statement.stands_in(plain(claim.text), claim.tokens, claim.values)
    value = fold(statement.value_text)
    return [
        (start, end)
        for start, end in spans
        if not any(
            first <= start and end <= last and fold(claim.text[first:last]) not in value
            for first, last in claim.names
            if (first, last) != (start, end) and fold(claim.text[start:end]) != value
        )
    ]


def _told_otherwise(claim: Claim, statement: Statement) -> Iterator[Span]:
    """Where a sentence tells one of the names that a value lists, or a nation that it may be."""
    if statement.fact is None:
        return
    text = plain(claim.text)
    for name in names_listed(statement.fact.value):
        yield from label_in(text, claim.tokens, name)
    for start, end in claim.names:
        if may_be_one(text[start:end], statement.fact.value):
            yield start, end


def _untold(
    claim: Claim, evidence: Premises, against: int | None, elsewhere: str
) -> Iterator[_Held]:
    """Statements of what the sentence speaks of whose value is a name that nothing tells yet."""
    text = plain(claim.text)
    told = fold(f"{text} {plain(elsewhere)}")
    for number, statement in evidence.chosen:
        fact = statement.fact
        if fact is None or not evidence.speaks_of(statement) or not _is_name(statement):
            continue
        value = QUALIFIER.sub("", fact.value).strip()
        if _told(claim, statement) or fold(value) in told:
            continue
        if _has_several_values(fact, evidence):
            continue
        conflict = evidence.conflicts(number)
        share = named_share(claim, fact.property)
        if conflict >= SURE or share >= NAMED or number == against:
            yield _Held(conflict + share, number, fact.property, value, share, conflict)


def _has_several_values(fact: Triple, evidence: Premises) -> bool:
    """Whether subjects of the sentence have another value of a fact's property."""
    return any(
        other.fact is not None
        and other.fact.property == fact.property
        and other.fact.value != fact.value
        and evidence.speaks_of(other)
        for other in evidence.indexed.statements
    )


def _is_one_of_several(claim: Claim, held: _Held, evidence: Premises) -> bool:
    """Whether another value lists a held one and others: *Singapore and Indonesia*.

    To write it alone would tell a part of that. It is meant where the sentence names its property,
    and not that of the list.
    """
    lists = [
        statement.fact.property
        for _, statement in evidence.chosen
        if statement.fact is not None
        and evidence.speaks_of(statement)
        and any(
            label_in(name, tokenise(name), held.value)
            for name in names_listed(statement.fact.value)
        )
    ]
    named = [item for item in lists if named_share(claim, item) >= NAMED]
    return bool(named if held.named >= NAMED else lists)


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
    like = nation_like(text[start:end], held.value)
    if like is None:
        return None
    words, end = _without_tail(text, like, _end_of_phrase(text, start, end, held))
    if text[:start].lower().endswith("the ") and words.lower().startswith("the "):
        words = words[4:]
    told = [text[start:end], *(token.text for token in claim.tokens)]
    if not words or any(_alike(item, words) for item in told):
        return None
    if not content_stems(words).isdisjoint(content_stems(f"{text[:start]} {text[end:]}")):
        return None  # a part of it is told already
    start, words = with_article(text, start, words)
    edit = Edit(start, end, words, held.number)
    kinds = {_kind(text, start, end), _kind(replaced(text, [edit]), start, start + len(words))}
    return None if kinds == {"PERSON", "NORP"} else edit


def _end_of_phrase(text: str, start: int, end: int, held: _Held) -> int:
    """Where a name ends whose last words are written small: the *sauce* of *Brown sauce*.

    A noun that the statement has as well goes on (the *language* of *English language*), and so
    does what a country or a people is said of (*Italian food*).
    """
    if is_nation(text[start:end]):
        return end
    [doc] = parse([text])
    name = doc.char_span(start, end, alignment_mode="expand")
    if name is None or name.root.dep_ not in PART_OF_NOUN:
        return end
    noun = name.root.head
    behind = doc[name.end : noun.i + 1]
    stated = cues(held.property) | content_stems(held.value)
    if (
        not behind
        or any(token.dep_ not in PART_OF_NOUN or not token.text.isalpha() for token in behind[:-1])
        or not stated.isdisjoint(content_stems(behind.text))
    ):
        return end
    return noun.idx + len(noun)


def _alike(name: str, other: str) -> bool:
    """Whether two names are two spellings of one."""
    return SequenceMatcher(a=fold(name), b=fold(other), autojunk=False).ratio() >= SPELLING


def _kind(text: str, start: int, end: int) -> str:
    """What the tagger takes a name for; empty where it finds none."""
    [doc] = parse([text])
    return next(
        (ent.label_ for ent in doc.ents if ent.start_char < end and start < ent.end_char), ""
    )


def _without_tail(text: str, words: str, end: int) -> tuple[str, int]:
    """A value without its last words where they stand behind the name: *English language*."""
    own = tokenise(words)
    behind = tokenise(text[end:])
    for size in range(min(len(own) - 1, len(behind)), 0, -1):
        tail = [token.folded for token in own[-size:]]
        if tail == [token.folded for token in behind[:size]] and text[end : end + 1] == " ":
            return words[: own[-size].start].rstrip(), end
    return words, end
