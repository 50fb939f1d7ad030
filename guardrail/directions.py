"""Which way round a tie between two persons is told: *the son of V* and *had a son, V*.

One noun words both ends of a family tie, so that the words beside a name have to tell whether it
is the parent's or the child's. The same holds for teachers and students, and for who held an
office before and after.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from guardrail.naming import PARTICLES, SentenceTokens, Span
from guardrail.text.values import Token, word_set
from guardrail.vocabulary import STOP_WORDS, property_words

__all__ = ["end_of", "told_otherwise"]

NEAR = 60
"""Most characters between a name and the noun that tells its end of a tie."""


class _Tie(NamedTuple):
    """A tie with two ends, by the nouns and verbs for each.

    Attributes:
        first: Nouns for who comes first: parent, teacher.
        second: Nouns for who comes second: child, student.
        first_values: Properties whose value comes first.
        second_values: Properties whose value comes second.
        to_first: Words that stand right before who comes first: *born to*, *studied under*.
        to_second: Words that stand right before who comes second: *taught*.
        of_first: Words of who comes first that stand right behind the name, before *him* or *her*.
        of_second: The same for who comes second.
    """

    first: frozenset[str]
    second: frozenset[str]
    first_values: frozenset[str]
    second_values: frozenset[str]
    to_first: re.Pattern[str]
    to_second: re.Pattern[str]
    of_first: re.Pattern[str]
    of_second: re.Pattern[str]


KINSMAN = r"(?: (?:his|her|their) (?:\w+ )?\w+)?$"
"""What may stand between a verb and a name: *succeeded his elder brother Bahram*."""

OBJECT = r" (?:him|her|them)\b"
ALREADY = r"^(?:had |has |have |also |later |then |once |first |privately )*"

TIES = (
    _Tie(
        word_set("father mother parent parents dad mom"),
        word_set("son sons daughter daughters child children heir heiress"),
        frozenset({"father", "mother", "parent", "parents"}),
        frozenset({"child", "children"}),
        re.compile(r"\b(?:born (?:in wedlock )?to(?: the)?|fathered by)$"),
        re.compile(r"\b(?:fathered|gave birth to)$"),
        re.compile(ALREADY + "(?:fathered|bore|gave birth to)" + OBJECT),
        re.compile(ALREADY + "(?:was|were) (?:born|fathered)(?: to| by)" + OBJECT),
    ),
    _Tie(
        word_set("teacher teachers tutor mentor advisor adviser supervisor"),
        word_set("student students pupil pupils apprentice disciple"),
        frozenset({"student of", "doctoral advisor", "doctoral supervisor", "teacher"}),
        frozenset({"student", "doctoral student"}),
        re.compile(
            r"\b(?:studied|trained|apprenticed|taught|learned|supervised) (?:under|with|by)$"
        ),
        re.compile(r"\b(?:taught|supervised|mentored|tutored)" + KINSMAN),
        re.compile(ALREADY + "(?:taught|supervised|mentored|tutored|trained)" + OBJECT),
        re.compile(ALREADY + "(?:studied|trained|learned) (?:under|with|from)" + OBJECT),
    ),
    _Tie(
        word_set("predecessor predecessors"),
        word_set("successor successors"),
        frozenset({"succeeds", "follows", "replaces", "predecessor", "preceded by"}),
        frozenset({"succeeded by", "followed by", "replaced by", "successor"}),
        re.compile(
            r"\b(?:succeeds?|succeeded|succeeding|replace[ds]?|replacing|follow(?:s|ed|ing)|"
            r"preceded by|took over from|taking over from)" + KINSMAN
        ),
        re.compile(
            r"\b(?:(?:succeeded|replaced|followed) (?:(?:as|in|on|to) (?:\w+ ){1,2})?by|"
            r"precede[ds]?|preceding)" + KINSMAN
        ),
        re.compile(ALREADY + "preceded" + OBJECT),
        re.compile(ALREADY + "(?:succeeded|followed|replaced)" + OBJECT),
    ),
)

BETWEEN = STOP_WORDS | word_set(
    "eldest youngest oldest older elder younger only biological adopted adoptive illegitimate "
    "legitimate natural first second third fourth fifth sixth became"
)
"""Words that may stand between a name and the noun in apposition to it, or said of it."""

HAVING = word_set("had has have having with")

COPULAS = word_set("is was are were")

OWNERS = word_set("his her their")

OF = word_set("of to")
"""What joins a noun to whose it is: *daughter of S*, *tutor to S*."""


def told_otherwise(
    text: str,
    sentence: SentenceTokens,
    label: str,
    value_spans: Sequence[Span],
    subject_spans: Sequence[Span],
) -> bool:
    """Whether a sentence tells a tie the other way round than a triple holds it.

    Args:
        text: The whole answer.
        sentence: One of its sentences.
        label: The triple's property.
        value_spans: Where its value stands.
        subject_spans: Where its subject stands.

    Returns:
        True where the words beside each place of the value, or of the subject, give it the other
        end of the tie. False where they do not tell, and for properties that are no such tie. The
        subject's end says nothing where both ends are told: who was a student of one may have been
        the teacher of another.
    """
    words = property_words(label)
    told = {token.folded for token in sentence.tokens}
    for tie in TIES:
        first = words in tie.first_values
        if first or words in tie.second_values:
            values = [_comes_first(text, sentence, span, tie) for span in value_spans]
            subjects = [_comes_first(text, sentence, span, tie) for span in subject_spans]
            both = bool(told & tie.first and told & tie.second)
            return _all(values, not first) or (not both and _all(subjects, first))
    return False


def end_of(label: str, noun: str) -> str | None:
    """Whether a noun is for a tie's *value* or its *subject*: a father, or his son.

    Args:
        label: The property.
        noun: The noun, folded.

    Returns:
        ``value``, ``subject``, or None for another noun or property.
    """
    words = property_words(label)
    for tie in TIES:
        for values, own, other in (
            (tie.first_values, tie.first, tie.second),
            (tie.second_values, tie.second, tie.first),
        ):
            if words in values and noun in own | other:
                return "value" if noun in own else "subject"
    return None


def _all(ends: Sequence[bool | None], end: bool) -> bool:
    return bool(ends) and all(one is end for one in ends)


def _comes_first(text: str, sentence: SentenceTokens, name: Span, tie: _Tie) -> bool | None:
    """Whether the words beside a name make it the first end of a tie; None where none tell."""
    before = [token for token in sentence.tokens if token.end <= name[0]]
    after = [token for token in sentence.tokens if token.start >= name[1]]
    lead = " ".join(token.folded for token in before[-6:])
    tail = " ".join(token.folded for token in after[:6])
    for first, lead_words, tail_words in (
        (False, tie.to_second, tie.of_second),
        (True, tie.to_first, tie.of_first),
    ):
        if lead_words.search(lead) or tail_words.search(tail):
            return first
    nouns = tie.first | tie.second
    behind = next((n for n, token in enumerate(after) if token.folded in nouns), None)
    if behind is not None and behind <= 2 and text[name[1] : name[1] + 2] in ("'s", "’s"):
        return after[behind].folded not in tie.first
    ahead = next((n for n in reversed(range(len(before))) if before[n].folded in nouns), None)
    if ahead is not None and name[0] - before[ahead].end > NEAR:
        ahead = None
    follows = [] if ahead is None else [token.folded for token in before[ahead + 1 :]]
    if follows[:1] == ["and"] and follows[2:3] and follows[2] in OF:
        follows = follows[2:]  # *the son and pupil of V*
    if ahead is not None and follows and follows[0] in OF:
        noun_first = before[ahead].folded in tie.first
        between = follows[1:]
        if COPULAS.isdisjoint(between):
            return not noun_first
        # *The father of S was V*: the noun is V's.
        return noun_first if between[-1] in COPULAS else None
    if behind is not None and after[behind].start - name[1] <= NEAR:
        said = _said_behind(before, after, behind, tie)
        if said is not None:
            return said
    return None if ahead is None else before[ahead].folded in tie.first


def _said_behind(
    before: Sequence[Token], after: Sequence[Token], noun: int, tie: _Tie
) -> bool | None:
    """What *V, the son of S* and *V had a son* make of V; None for anything else."""
    said = after[noun].folded in tie.first
    between = after[:noun]
    others = [token for token in between if token.folded not in BETWEEN]
    if any(token.folded in HAVING for token in between):
        # Whoever else had the child may stand between; before V, nothing that governs it.
        others += [token for token in before if token.folded not in BETWEEN]
        names = all(_of_name(token) for token in others)
        return (not said) if names else None
    follows = after[noun + 1 : noun + 2]
    owned = noun > 0 and after[noun - 1].folded in OWNERS  # *V was her father*
    told = owned or (follows and follows[0].folded == "of")
    return said if told and not others else None


def _of_name(token: Token) -> bool:
    return token.text[:1].isupper() or token.text[:1].isdigit() or token.folded in PARTICLES
