"""What a sentence tells against the evidence: values denied, and values other than those held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from guardrail.degrees import attribute_of
from guardrail.directions import end_of
from guardrail.holding import COMPARING
from guardrail.matching import Match
from guardrail.naming import SentenceTokens, Span
from guardrail.nations import nation
from guardrail.phrases import Phrase, PhraseKind
from guardrail.support import Thresholds, attached_dates, is_name, touches
from guardrail.text.values import (
    MONTHS,
    Agreement,
    Date,
    agreement,
    parse_date,
    stem,
    tokenise,
    word_set,
)
from guardrail.truths import denies_property, truth_value
from guardrail.types import NLIScores, Triple
from guardrail.vocabulary import cues, describes_entity, is_functional, is_tie, property_words

__all__ = ["Conflict", "conflicts"]

PLACE_PREPOSITIONS = word_set("in at near on from outside was is")
"""Words before a place that a sentence tells."""

CAUSE_PREPOSITIONS = word_set("of from by to")
"""Words before a cause of death that a sentence tells."""

SITES = word_set(
    "abbey academy airport arena avenue barracks bridge building camp castle cathedral cemetery "
    "center centre chapel chateau château church clinic college convent court estate farm fortress "
    "garden gardens hall hill home hospice hospital hotel house infirmary lane lodge manor mansion "
    "monastery palace park place plantation prison ranch residence road sanatorium school square "
    "stadium station street studio terrace tower university villa ward"
)
"""Words for buildings, streets and grounds in the names of places."""

ROUGHLY = COMPARING - {"from"} | word_set("c ca")
"""Words before a date that is not told as the very one."""

ROUGH_YEARS = 10
"""Years by which a date told roughly may be off: prose rounds them to tens."""

JOINING = word_set("and or to")
"""Words between two dates of which the first begins a range, or either may be meant."""


CALENDAR = word_set("monday tuesday wednesday thursday friday saturday sunday day eve") | {
    name for month in MONTHS for name in (month, month[:3])
}


class Conflict(NamedTuple):
    """A phrase that a triple contradicts."""

    triple: Triple
    start: int
    end: int


def conflicts(
    tokens: SentenceTokens,
    phrases: Sequence[Phrase],
    matches: Sequence[Match],
    kept: Sequence[Match],
    scores: Mapping[int, NLIScores],
    limits: Thresholds,
    doubtful: int | None = None,
) -> list[Conflict]:
    """Phrases that deny a triple, or tell another value for its subject and property than it holds.

    A value that is denied conflicts by itself, so long as the sentence tells nothing else that the
    denial may be about: who *was not born in Rome in 1596* may be from there. A date beside its
    property's word conflicts by itself. A name or number does so only where the judge finds a
    contradiction as well: a town may lie in the region that the graph names. Nothing conflicts
    through a pronoun that may mean somebody else.

    Args:
        tokens: The sentence, prepared.
        phrases: Its factual phrases.
        matches: The triples found in it.
        kept: Those that it states.
        scores: The judge's word on triples, by their place in the evidence.
        limits: The thresholds.
        doubtful: Where a pronoun stands in it that may mean one of several persons.
    """
    return [
        clash
        for match, clash in _told_against(tokens, phrases, matches, kept, scores, limits)
        if not _through(match, clash.start, doubtful)
    ]


def _told_against(
    tokens: SentenceTokens,
    phrases: Sequence[Phrase],
    matches: Sequence[Match],
    kept: Sequence[Match],
    scores: Mapping[int, NLIScores],
    limits: Thresholds,
) -> Iterator[tuple[Match, Conflict]]:
    """Yield what conflicts with which match, whoever a pronoun means."""
    stated = {(match.triple.subject, match.triple.property) for match in kept}
    held_values = Counter((match.triple.subject, match.triple.property) for match in matches)
    used = [span for match in kept for span in match.value_spans]
    for match in matches:
        triple = match.triple
        if match.denied and (
            denies_property(triple, tokens.by_stem)
            if truth_value(triple.value) is not None
            else attribute_of(triple.property) is not None
            or _denies(match, phrases, (triple.subject, triple.property) in stated)
        ):
            yield match, Conflict(triple, *match.denied[0])
        if (
            match.value_share > 0.0
            or match.subject not in ("explicit", "antecedent")
            or (triple.subject, triple.property) in stated
        ):
            continue
        score = scores.get(match.number)
        held = parse_date(triple.value)
        # A date held alone is the one of its property: the bridge was not opened twice.
        alone = held is not None and held_values[triple.subject, triple.property] == 1
        if not alone and not is_functional(triple.property):
            continue
        if held is not None:
            for date in attached_dates(tokens, match, matches):
                if (
                    agreement(date, held) is Agreement.CONFLICT
                    and not touches((date.start, date.end), used)
                    and not _may_hold(tokens, date, held)
                ):
                    yield match, Conflict(triple, date.start, date.end)
            continue
        if score is None or score.contradiction < limits.contradiction:
            continue
        told = _told_by(match, tokens)
        after = [
            phrase
            for phrase in phrases
            if _comparable(phrase, match, tokens)
            and any(0 <= phrase.start - end <= 60 for _, end in told)
        ]
        if is_tie(triple.property):
            after = after[:1]  # whoever is told behind that is told of somebody else
        taken = [*used, *match.subject_spans, *match.wider, *_other_ties(match, matches)]
        others = [one for one in after if not touches((one.start, one.end), taken)]
        if others:
            yield match, Conflict(triple, others[0].start, others[0].end)
        elif (
            score.contradiction >= limits.contradiction_alone
            and told
            and not match.wider
            and not (after and is_tie(triple.property))
            and not _tells_cause(triple.property)
            and not any(map(_is_site, (triple.value, *(phrase.text for phrase in phrases))))
            and not any(_is_apart(phrase, match) for phrase in phrases)
        ):
            yield match, Conflict(triple, told[0][0], told[0][1])


def _through(match: Match, start: int, doubtful: int | None) -> bool:
    """Whether what stands at a place is told of a match's subject by a doubtful pronoun alone."""
    if doubtful is None or match.subject == "antecedent":
        return doubtful is not None
    return doubtful <= start and all(end <= doubtful for _, end in match.subject_spans)


def _may_hold(tokens: SentenceTokens, told: Date, held: Date) -> bool:
    """Whether a date is told so roughly, or as an end of a range, that another may be the one.

    So it is in *around 1868*, *no later than 1870*, *between 1860 and 1870* and *1866 or 1867*.
    """
    before = [one.folded for one in tokens.tokens if one.end <= told.start]
    if not ROUGHLY.isdisjoint(before[-2:]) and abs(told.year - held.year) <= ROUGH_YEARS:
        return True
    return any(
        first.year <= held.year < second.year + second.span and _joined(tokens, first, second)
        for first, second in pairwise(tokens.dates)
        if told in (first, second)
    )


def _joined(tokens: SentenceTokens, first: Date, second: Date) -> bool:
    """Whether nothing but *and*, *or* or *to* parts two dates; *and* only behind *between*."""
    between = [one.folded for one in tokens.tokens if first.end <= one.start < second.start]
    before = [one.folded for one in tokens.tokens if one.end <= first.start][-1:]
    return (
        len(between) == 1
        and not JOINING.isdisjoint(between)
        and (between != ["and"] or before == ["between"])
    )


def _denies(match: Match, phrases: Sequence[Phrase], stated: bool) -> bool:
    """Whether a sentence that denies a value tells nothing else, so that it denies the triple."""
    told = [*match.denied, *match.cue_spans, *match.subject_spans]
    worded = bool(match.cue_spans) or describes_entity(match.triple.property)
    return (
        worded
        and not stated
        and all(touches((phrase.start, phrase.end), told) for phrase in phrases if phrase.kind.hard)
    )


def _other_ties(match: Match, matches: Sequence[Match]) -> list[Span]:
    """Where those stand whom other ties join to the triple's subject: her mother is no father."""
    return [
        span
        for other in matches
        if other.triple.subject == match.triple.subject and is_tie(other.triple.property)
        for span in other.value_spans
    ]


def _told_by(match: Match, sentence: SentenceTokens) -> list[Span]:
    """The words after which a sentence tells a property's value.

    Words for the subject's end do so before *of* or *to* alone: *the son of Orazio* tells a
    father, *his sons Carl and Johann* do not. Words for the value's end do not before the *of* of
    somebody else: *the father of Carl* tells a father of Carl's.
    """
    own = cues(match.triple.property)
    told = []
    for start, end in match.cue_spans:
        place = next((n for n, one in enumerate(sentence.tokens) if one.start == start), None)
        if place is not None:
            noun = sentence.tokens[place]
            following = sentence.tokens[place + 1 : place + 3]
            of = bool(following) and following[0].folded in ("of", "to")
            side = end_of(match.triple.property, noun.folded)
            if not of and (noun.stem not in own or side == "subject"):
                continue
            if (
                of
                and side == "value"
                and not touches((following[-1].start, following[-1].end), match.subject_spans)
            ):
                continue
        told.append((start, end))
    return told


def _is_site(value: str) -> bool:
    """Whether a place is a building, street or ground, which any town may hold."""
    return any(word.casefold() in SITES for word in value.split())


def _comparable(phrase: Phrase, match: Match, sentence: SentenceTokens) -> bool:
    """Whether a phrase tells what a triple's property tells: a place, a cause, a person, a number.

    Where and of what somebody died are told by the same verb and by different prepositions.
    """
    triple = match.triple
    if triple.value[:1].isdigit():
        return phrase.kind is PhraseKind.NUMBER
    before = [
        token.folded
        for token in sentence.tokens
        if token.end <= phrase.start and token.folded != "the"
    ]
    word = before[-1] if before else ""
    if _tells_cause(triple.property):
        return phrase.kind in (PhraseKind.NAME, PhraseKind.TERM) and word in CAUSE_PREPOSITIONS
    # Which of several common words stands in a value's place, only the judge can tell.
    if not is_name(triple.value) or phrase.kind is not PhraseKind.NAME or word in ("a", "an"):
        return False
    if "place" not in property_words(triple.property):
        return word not in ("in", "at", "near")
    if _is_site(triple.value) or _is_site(phrase.text) or _is_apart(phrase, match):
        return False  # Chester Square lies in London, as far as the graph can tell
    # "the city of Hull" is a place; "died of Parkinson's" is none.
    town_of = word == "of" and stem(before[-2] if len(before) > 1 else "") not in cues(
        triple.property
    )
    return town_of or word in PLACE_PREPOSITIONS


def _is_apart(phrase: Phrase, match: Match) -> bool:
    """Whether a name beside a place is no rival of it: a day, or a state that may well hold it."""
    triple = match.triple
    if phrase.kind is not PhraseKind.NAME or "place" not in property_words(triple.property):
        return False
    day = any(
        token.folded in CALENDAR or token.folded[:1].isdigit() for token in tokenise(phrase.text)
    )
    unknown = not match.located and not nation(triple.value)
    return day or (unknown and bool(nation(phrase.text)))


def _tells_cause(label: str) -> bool:
    return property_words(label) in ("cause of death", "manner of death")
