"""Values told under the words of another property than the one that holds them.

*Tim Cook founded Apple* tells no chief executive officer, though his name stands beside the
company's; small judges take the two names for enough. What settles it is the property that the
sentence names, be it one of another triple or one that English has a verb of its own for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from guardrail.matching import NEAR, Match
from guardrail.naming import SentenceTokens, Span
from guardrail.support import touches
from guardrail.text.values import Token, stem, word_set
from guardrail.vocabulary import STOP_WORDS, describes_entity, property_words

__all__ = ["told_as_another"]

BOUNDS = word_set("and but or who whom whose which that where when while whereas though although")
"""Words at which another clause may begin."""


ACTS: dict[str, str] = {
    "directed": "director directed direction filmmaker creator",
    "founded": "founder founded foundation founding creator organizer inventor established",
    "wrote written authored": "author writer written screenwriter screenplay script story lyrics "
    "lyricist librettist playwright songwriter composer creator text music",
    "composed": "composer music score creator writer songwriter",
    "designed": "designer design architect architecture creator engineer developer inventor",
    "painted": "painter artist creator",
    "discovered": "discoverer discovered discovery",
    "invented": "inventor creator discoverer developer designer",
}
"""Verbs of what makes a work or a body, with the words of the properties that they tell."""

LIFE: dict[str, str] = {
    "birthplace birth": "birth born birthplace father mother parent parents child children",
    "laid grave tomb": "burial buried grave tomb resting",
}
"""Words for where somebody's life began and for their grave, likewise."""

GENDERED: dict[str, str] = {"father fathered": "father", "mother": "mother"}
"""Words for one parent, likewise."""


def told_as_another(match: Match, tokens: SentenceTokens, matches: Sequence[Match]) -> bool:
    """Whether a sentence tells a value as that of another property of the same subject.

    So it does where another triple's property is named beside the value in full, with words that
    do not name the match's own, and that triple's own value does not stand there; and where a verb
    or noun that only words another property does so: *wrote*, *birthplace*, *mother*.

    Args:
        match: A triple whose value stands in the sentence.
        tokens: The prepared sentence.
        matches: All triples found in it.
    """
    own = {span for span in match.cue_spans if not touches(span, match.value_spans)}
    if _worded_otherwise(match, tokens, own):
        return True
    return any(
        other.triple.subject == match.triple.subject
        and other.triple.property != match.triple.property
        and other.value_share < 1.0
        and own < set(other.cue_spans)
        and _named_beside(other.triple.property, match, tokens)
        for other in matches
    )


def _worded_otherwise(match: Match, tokens: SentenceTokens, own: set[Span]) -> bool:
    """Whether the words beside a value tell another property, whatever triples there are."""
    label = match.triple.property
    told = {token.folded for token in tokens.tokens}
    words = property_words(label)
    if not match.value_spans or describes_entity(label):
        return False
    if words in GENDERED.values():
        return not _admitted(GENDERED, told, words) and any(
            token.folded in _PARENTS for clause in _clauses(match, tokens) for token in clause
        )
    if own:
        return False
    for clause in _clauses(match, tokens):
        events = {token.folded for token in clause} & _EVENTS
        if events and not _admitted(LIFE, events, words):
            return True
        acts = {
            token.folded for place, token in enumerate(clause) if _done_by(clause, place, match)
        }
        if acts and not _admitted(ACTS, acts, words):
            return True
    return False


def _admitted(table: Mapping[str, str], told: Set[str], label: str) -> bool:
    """Whether one of several words can tell a property."""
    return any(
        not told.isdisjoint(words.split()) and not set(labels.split()).isdisjoint(label.split())
        for words, labels in table.items()
    )


def _done_by(clause: Sequence[Token], place: int, match: Match) -> bool:
    """Whether a word is a verb of ``ACTS`` that has the value for its doer."""
    verb = clause[place]
    if verb.folded not in _VERBS:
        return False
    after = next(iter(clause[place + 1 :]), None)
    before = clause[place - 1] if place else None
    if after is not None and after.folded == "by":
        return any(start > after.end and start - after.end < NEAR for start, _ in match.value_spans)
    return before is not None and any(
        start <= before.start and before.end <= end for start, end in match.value_spans
    )


def _named_beside(label: str, match: Match, tokens: SentenceTokens) -> bool:
    """Whether all words of a property's label stand in the clause of a match's value.

    A value that describes its subject by itself, as *a Spaniard* does, is told as another
    property's only where nothing else stands in the clause.
    """
    words = {stem(word) for word in property_words(label).split() if word not in STOP_WORDS}
    names = (*match.value_spans, *match.subject_spans)
    alone = describes_entity(match.triple.property)
    return bool(words) and any(
        words <= {one.stem for one in clause}
        and not (
            alone
            and any(
                one.stem not in words
                and one.folded not in STOP_WORDS
                and not touches((one.start, one.end), names)
                for one in clause
            )
        )
        for clause in _clauses(match, tokens)
    )


def _clauses(match: Match, tokens: SentenceTokens) -> Iterator[tuple[Token, ...]]:
    """Yield the stretches without a break, told by its signs, that hold the value."""
    names = (*match.value_spans, *match.subject_spans)
    spans = match.value_spans or match.subject_spans
    start = 0
    for place in range(1, len(tokens.tokens) + 1):
        if place == len(tokens.tokens) or _parts(tokens, place, names):
            clause = tokens.tokens[start:place]
            start = place
            if any(clause[0].start <= first < clause[-1].end for first, _ in spans):
                yield clause


def _parts(tokens: SentenceTokens, place: int, names: Sequence[Span]) -> bool:
    """Whether a clause may begin at a token: behind a comma, or with *and* or *which*."""
    before, here = tokens.tokens[place - 1 : place + 1]
    if any(start <= before.start and here.end <= end for start, end in names):
        return False
    return here.start - before.end > 1 or here.folded in BOUNDS


_VERBS = word_set(" ".join(ACTS))
_EVENTS = word_set(" ".join(LIFE))
_PARENTS = word_set(" ".join(GENDERED))
