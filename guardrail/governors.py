"""Which word of a sentence governs a value: who was born in London need not have taught there.

A verb or noun that words one relation makes what it governs a value of no other one, and between
a word for birth or death and the place or date of it stands no verb of something else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from guardrail.matching import Match
from guardrail.objects import object_of_another
from guardrail.qualifiers import is_outside
from guardrail.syntax import possessors
from guardrail.text.values import fold, stem, word_set
from guardrail.vocabulary import (
    can_word,
    cues,
    describes_entity,
    governs,
    inverse_cues,
    is_event,
    is_nationality,
    is_place,
    is_related,
    is_tie,
)

if TYPE_CHECKING:
    from spacy.tokens import Token as ParsedToken

__all__ = ["LIFE", "governed_otherwise", "of_another"]

VERBS = frozenset({"VERB", "AUX"})

BOUNDS = word_set("until till before after since when while")
"""Words that set what stands before them apart in time from what follows."""

NAMING = frozenset({"appos", "compound", "nmod"})
"""How a name hangs on the noun for the same person, or that on the name."""

TITLING = frozenset({"compound", "nmod"})
"""How what somebody is called hangs on their name."""

LIFE = word_set("birth birthday birthplace death burial grave tomb")
"""What somebody has one of, so that another one's is none of theirs."""

LINKS = frozenset({"aux", "auxpass", "prep"})
"""How a verb hangs on another word that it only helps: *was born, according to her, in Bern*."""


def governed_otherwise(token: ParsedToken, match: Match) -> bool:
    """Whether a value belongs to the verb of another relation than the triple's.

    A clause that hangs on the value goes before: *moved to Vienna, where he died*.

    Args:
        token: The value's head word.
        match: How the triple stands in the sentence.
    """
    label = match.triple.property
    words = cues(label)
    if any(child.dep_ == "relcl" and stem(fold(child.text)) in words for child in token.children):
        return False
    if object_of_another(token, match) or (is_place(label) and is_outside(token)):
        return True
    if is_tie(label) and _of_other_tie(token, words | inverse_cues(label)):
        return True
    if is_nationality(label) and token.dep_ == "dobj" and token.pos_ == "PROPN":
        return not can_word(stem(fold(token.head.text)), label)  # *ruled Egypt*
    if is_nationality(label) and token.dep_ in ("amod", "compound"):
        return _of_another_noun(token.head, match)
    below = token
    for one in token.ancestors:
        word = stem(fold(one.text))
        if is_event(label) and word in words:
            return False  # *lived there until his death in 1782*
        beside = below.dep_ == "appos" or (below.dep_ in TITLING and describes_entity(label))
        if beside and any(start <= one.idx < end for start, end in match.subject_spans):
            break  # *Anna, a painter, was born*, *the painter Anna was born*
        below = one
        if one.pos_ in VERBS:
            if governs(word, label) and not can_word(word, label):
                return True
            break
    return is_event(label) and bool(match.cue_spans) and _cut_off(token, match)


def _of_another_noun(noun: ParsedToken, match: Match) -> bool:
    """Whether a nationality is that of whom or what a sentence only mentions: *met a French king*.

    *Worked as a French teacher* tells the subject's own.
    """
    if noun.pos_ != "NOUN" or noun.dep_ not in ("pobj", "dobj"):
        return False
    if stem(fold(noun.text)) in cues(match.triple.property):
        return False
    if any(start <= one.idx < end for one in noun.subtree for start, end in match.subject_spans):
        return False
    return noun.head.lower_ != "as"


def _of_other_tie(value: ParsedToken, words: frozenset[str]) -> bool:
    """Whether the next noun of which a value is, is for another tie: *mother of the wife of V*."""
    below = value
    for one in value.ancestors:
        if one.pos_ in VERBS:
            return False
        if is_related(one.lower_) and below.dep_ in NAMING and stem(one.lower_) in words:
            return False  # *a student of her father, V*
        if below.dep_ == "prep" and below.lower_ == "of" and is_related(one.lower_):
            beside = [one]  # *the son and student of V*
            while beside[-1].dep_ == "conj" and not any(
                child.dep_ == "prep" for child in beside[-1].head.children
            ):
                beside.append(beside[-1].head)
            return not any(stem(noun.lower_) in words for noun in beside)
        below = one
    return False


def _cut_off(value: ParsedToken, match: Match) -> bool:
    """Whether a verb of something else parts a value from every word for its property.

    So it does in *born in Bern, he was a student in 1987*, and so does a word for time in *stayed
    in Bern until his death*; not in *was born and raised in Bern*, nor where the word stands in the
    value's own phrase.
    """
    words = cues(match.triple.property)
    above = {one.i for one in value.ancestors}
    verb = _verb(value)
    for start, end in match.cue_spans:
        found = value.doc.char_span(start, end, alignment_mode="expand")
        if found is None or not len(found):
            return False  # a life span in brackets
        cue = found.root
        if cue.i in above or cue.i == value.i:
            return False
        if cue.pos_ == "NOUN" and value.i < cue.i and _verb(cue) != verb:
            continue
        first, last = sorted((cue.i, value.i))
        between = value.doc[first + 1 : last]
        bounded = value.i < cue.i and any(one.lower_ in BOUNDS for one in between)
        if not bounded and not any(_another(one, cue, value, words) for one in between):
            return False
    return True


def _verb(token: ParsedToken) -> int | None:
    """Where the verb stands that a word hangs on."""
    return next((one.i for one in token.ancestors if one.pos_ in VERBS), None)


def _another(one: ParsedToken, cue: ParsedToken, value: ParsedToken, words: frozenset[str]) -> bool:
    """Whether a word is a verb that tells something else than a property's word does."""
    if one.pos_ not in VERBS or one.dep_ in LINKS or stem(fold(one.text)) in words:
        return False
    if cue.head.i == one.i and cue.dep_ in ("nsubj", "nsubjpass"):
        return False  # *her birth was in 1593*
    if one.pos_ == "AUX" and value.head.i == one.i and value.dep_ == "nsubj":
        return False  # *Rome is the city in which she was born*
    together = one.dep_ == "conj" and one.head.i == cue.i and one.i - cue.i <= 2
    return not together


def of_another(word: ParsedToken, match: Match) -> bool:
    """Whether a noun for a tie, a birth or a death is somebody else's: *her husband's death*.

    Args:
        word: A word for the property, or one that a value hangs on.
        match: How the triple stands in the sentence. Without a value, a tie may be told of
            somebody else than it holds.
    """
    tie = is_tie(match.triple.property) and bool(match.value_spans)
    if word.pos_ != "NOUN" or not (tie or word.lower_ in LIFE):
        return False
    spans = (*match.subject_spans, *match.value_spans)
    for owner in possessors(word):
        told = [*_told_with(owner), *_kin_beside(word)]
        somebody = is_related(owner.lower_) or any(one.pos_ == "PROPN" for one in told)
        if somebody and not any(start <= one.idx < end for one in told for start, end in spans):
            return True
    return False


def _told_with(owner: ParsedToken) -> Iterator[ParsedToken]:
    """Yield the words of a phrase, less a further relation that the parser hangs on it.

    So it hangs the daughter on Bruno in *the wife of Bruno and the daughter of Carl*.
    """
    waiting = [owner]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += [
            child
            for child in one.children
            if not (
                child.dep_ == "conj"
                and is_related(child.lower_)
                and any(below.lower_ == "of" for below in child.children)
            )
        ]


def _kin_beside(noun: ParsedToken) -> Iterator[ParsedToken]:
    """Yield who is told beside a noun by a relation to another: *the son of V and his wife W*."""
    for child in noun.children:
        if child.dep_ == "conj" and any(one.dep_ == "poss" for one in child.children):
            yield from child.subtree
