"""A typed value of a sentence exchanged for the one that the evidence tells, in its own writing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from guardrail.core.text.clock_times import ClockTime
from guardrail.core.text.contacts import Contact
from guardrail.core.text.dates import Date
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.quantities import Quantity
from guardrail.core.text.values import Agreement, TypedValue, Version, compare, find_values
from guardrail.core.text.words import content_stems, fold
from guardrail.correction.dates import dates_like, times_like, versions_like
from guardrail.correction.edits import Edit, replaced
from guardrail.correction.numbers import quantities_like
from guardrail.correction.wording import with_article

if TYPE_CHECKING:
    from guardrail.core.types import Finding
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.premises import Premises

__all__ = ["exchanged", "lone_value", "of_finding"]

NO_MEASURES = frozenset({"date", "percent", "time of day", "version"})
"""Kinds of values that a bare number of the evidence does not tell."""

LEAST_SHARED = 2
"""Fewest words that a sentence must share with the sentence of prose that tells its value."""

ON_A_DAY = re.compile(r"(?:\b(?P<on>[Oo])n\s)?(?:\bthe\s)?$")
"""What stands before a day, and not before a month or year."""


def of_finding(claim: Claim, finding: Finding, evidence: Premises) -> Edit | None:
    """The exchange of a value that differs from that of an aligned statement.

    Args:
        claim: The sentence.
        finding: What ``typed_values`` found against it.
        evidence: What it is held against.
    """
    offset = claim.stretch.start
    told = next((item for item in claim.values if item.start == finding.start - offset), None)
    if told is None or not finding.statements or finding.instead is None:
        return None
    number = finding.statements[0]
    if evidence.indexed.statements[number].fact is None:
        return _of_prose(claim, told, evidence)
    for held in evidence.indexed.statements[number].values:
        if held.text == finding.instead and compare(told, held) is Agreement.CONFLICT:
            return exchanged(claim.text, told, held, number)
    return None


def lone_value(claim: Claim, evidence: Premises, number: int) -> Edit | None:
    """The exchange of the one value of a sentence that nothing carries, for a statement's only one.

    Args:
        claim: The sentence.
        evidence: What it is held against.
        number: The statement that the judge names against it.
    """
    held = evidence.indexed.statements[number].values
    known = [value for _, statement in evidence.chosen for value in statement.values]
    left = [
        told
        for told in claim.values
        if not any(start <= told.start and told.end <= end for start, end in claim.mentions)
        and not any(compare(told, other) is Agreement.SAME for other in known)
    ]
    if len(held) != 1 or len(left) != 1:
        return None
    told = left[0]
    if evidence.indexed.statements[number].fact is None:
        return _of_prose(claim, told, evidence)
    return exchanged(claim.text, told, held[0], number) if _alike(told, held[0]) else None


def _alike(told: TypedValue, held: TypedValue) -> bool:
    """Whether two values may be of one thing: a bare number may be a measure, but no share."""
    kinds = {told.kind, held.kind}
    return len(kinds) == 1 or ("number" in kinds and kinds.isdisjoint(NO_MEASURES))


def _of_prose(claim: Claim, told: TypedValue, evidence: Premises) -> Edit | None:
    """The exchange of a value for that of the statement that shares most words with the sentence.

    Sentences of prose name no property: *within 7 working days* may be of another thing than
    *within 60 days*. The statement must share half of the sentence's words, and more of them than
    any other with a value that could stand there; of them, not counting the subject's name, none
    may share more: *it lies at 1,450 m*, two sentences behind that name.
    """
    words = claim.stems - content_stems(told.text)
    own = words - content_stems(" ".join(evidence.subjects))
    found = []
    for number, statement in evidence.chosen:
        held = [value for value in statement.values if _could_stand(told, value)]
        if held:
            found.append((len(words & statement.stems), len(own & statement.stems), number, held))
    found.sort(key=lambda item: -item[0])
    if not found or (len(found) > 1 and found[1][0] == found[0][0]):
        return None
    shared, alone, number, held = found[0]
    if 2 * shared < len(words) or shared < LEAST_SHARED or len(held) > 1:
        return None
    if any(other > alone for _, other, _, _ in found):
        return None
    return exchanged(claim.text, told, held[0], number)


def _could_stand(told: TypedValue, held: TypedValue) -> bool:
    """Whether a held value differs from a told one of its kind, and is a rate of the same."""
    mine, theirs = told.value, held.value
    if isinstance(mine, Quantity) and isinstance(theirs, Quantity) and mine.per != theirs.per:
        return False
    return told.kind == held.kind and compare(told, held) is Agreement.CONFLICT


def exchanged(text: str, told: TypedValue, held: TypedValue, number: int) -> Edit | None:
    """The edit that writes a held value in the place of a told one; None where none is sure.

    The sentence must then tell what is held: this is read from the sentence as it would be.

    Args:
        text: The sentence.
        told: Its value.
        held: That of the evidence.
        number: The statement that holds it.
    """
    written = text[told.start : told.end]
    if _of_a_name(text, told) or _counts_anew(text, told, held):
        return None
    for new in _ways(written, told, held):
        start, words = with_article(text, told.start, new)
        if _loses_its_day(told, held):
            before = ON_A_DAY.search(text[:start])
            if before is not None and before.group():
                opening = {"O": "In ", "o": "in ", None: ""}[before["on"]]
                start, words = before.start(), f"{opening}{words}"
        edit = Edit(start, told.end, words, number)
        if edit.text != text[edit.start : edit.end] and _tells(text, edit, held):
            return edit
    return None


def _of_a_name(text: str, told: TypedValue) -> bool:
    """Whether a bare number or year stands right behind a capitalised word: *Gubbio 1910*."""
    before = re.search(r"(?<!\w)(\w++)\s$", text[: told.start])
    bare = told.text.isdigit() and told.kind in ("number", "date")
    stop = lexicon_set("function_words", "stop_words")
    return bare and before is not None and before[1][0].isupper() and fold(before[1]) not in stop


def _counts_anew(text: str, told: TypedValue, held: TypedValue) -> bool:
    """Whether what is counted goes from one to several or back: *one gear*, for six of them."""
    mine, theirs = told.value, held.value
    if not isinstance(mine, Quantity) or not isinstance(theirs, Quantity) or mine.unit is not None:
        return False
    return (mine.high == 1) is not (theirs.high == 1) and text[told.end :][1:2].isalpha()


def _loses_its_day(told: TypedValue, held: TypedValue) -> bool:
    """Whether a day is exchanged for a month or a year, which has another preposition."""
    mine, theirs = told.value, held.value
    if not isinstance(mine, Date) or not isinstance(theirs, Date):
        return False
    return mine.day is not None and theirs.real.day is None


def _ways(written: str, told: TypedValue, held: TypedValue) -> Iterator[str]:
    mine, theirs = told.value, held.value
    if isinstance(mine, Quantity) and isinstance(theirs, Quantity):
        yield from quantities_like(written, mine, theirs, held.text)
    elif isinstance(mine, Date) and isinstance(theirs, Date):
        yield from dates_like(written, mine, theirs)
    elif isinstance(mine, ClockTime) and isinstance(theirs, ClockTime):
        yield from times_like(written, theirs, held.text)
    elif isinstance(mine, Version) and isinstance(theirs, Version):
        yield from versions_like(written, held.text)
    elif isinstance(mine, Contact) and isinstance(theirs, Contact):
        yield held.text


def _tells(text: str, edit: Edit, held: TypedValue) -> bool:
    """Whether a sentence tells a held value where it is edited."""
    end = edit.start + len(edit.text)
    return any(
        value.start < end and edit.start < value.end and compare(value, held) is Agreement.SAME
        for value in find_values(replaced(text, [edit]))
    )
