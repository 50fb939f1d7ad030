"""Roles: whether a phrase that two texts share plays the same part in both.

*The bridge was opened in 1932 and closed in 1950* holds every word of *The bridge was closed in
1932*, and *Smith beat Jones* every word of *Jones beat Smith*. Small judges take such sentences
for entailed, so that the parse has to tell which verb and which subject a phrase belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from guardrail.syntax import CLAUSAL_SUBJECTS, RELATIVE
from guardrail.text.values import fold, stem, tokenise, word_set

if TYPE_CHECKING:
    from spacy.tokens import Token as ParsedToken

__all__ = [
    "MODIFIERS",
    "Role",
    "content_of",
    "displaced",
    "governor",
    "role",
    "stem_of",
    "subjects_of",
    "swapped",
]

CARRIED = frozenset(
    {"acl", "relcl", "conj", "xcomp", "advcl", "pcomp", "prep", "pobj", "dobj", "attr", "appos"}
)
"""Dependencies across which a verb without a subject takes the one above it."""

CLAUSES = frozenset({"conj", "advcl", "relcl", "ccomp"})
"""Dependencies of clauses that are joined to another one."""

MODIFIERS = frozenset({"compound", "amod", "nummod", "nmod"})
"""Dependencies of words that specify a noun."""

NOUNS = frozenset({"NOUN", "PROPN", "PRON"})

OPEN = frozenset({"NOUN", "PROPN", "VERB", "ADJ", "NUM"})
"""Parts of speech of words that tell what a phrase belongs to."""

MUTUAL = word_set("marry married marries met meet meets wed divorced divorce befriended joined")
"""Verbs that say the same of both sides."""


class Role(StrEnum):
    """What part a phrase plays in a passage, compared with a sentence."""

    SAME = "same"
    OTHER = "other"
    TURNED = "turned"


class _Part(StrEnum):
    """What a word does in its clause."""

    DOER = "doer"
    OTHER = "other"


class _Place(NamedTuple):
    """Where a phrase stands in its text.

    Attributes:
        words: Stems of the words above it, up to its verb, the nearest first.
        verb: The verb of its clause, or what stands in its place.
        subjects: Whom or what that verb is told of.
    """

    words: tuple[str, ...]
    verb: ParsedToken
    subjects: Sequence[ParsedToken]


def role(
    phrase: ParsedToken, places: Iterable[ParsedToken], stems: Set[str], known: Set[str]
) -> Role:
    """Compare the part of a phrase in a sentence with its parts in a passage.

    Args:
        phrase: Head word of the phrase in the sentence.
        places: Head words of the phrase in a window of the passage.
        stems: Stems of all words of the window.
        known: Stems of all words of the passage.

    Returns:
        ``OTHER`` where at every place another verb governs the phrase although the passage has the
        sentence's verb, or another subject has it although the passage names the sentence's
        subject; ``TURNED`` where subject and phrase have changed their parts; else ``SAME``. A
        word that the passage lacks decides nothing: it may be told in other words.
    """
    own = _place(phrase)
    if _in_subject(phrase, own):
        return Role.SAME
    found = {_role(phrase, own, place, stems, known) for place in places}
    return next((one for one in (Role.SAME, Role.TURNED) if one in found), Role.OTHER)


def governor(phrase: ParsedToken) -> str | None:
    """The stem of the word that a phrase belongs to, None where there is none."""
    return next(iter(_place(phrase).words), None)


def swapped(
    phrase: ParsedToken,
    places: Sequence[ParsedToken],
    rivals: Sequence[ParsedToken],
    told: Set[str],
    elsewhere: Set[str] = frozenset(),
) -> bool:
    """Whether a passage tells a phrase of something else for sure.

    Args:
        phrase: Head word of the phrase in the sentence.
        places: Head words of the phrase in a window of the passage.
        rivals: Head words of dates or numbers in the window that the sentence does not tell.
        told: Stems of all words of the sentence.
        elsewhere: Stems of words that the passage has outside the window alone.

    Returns:
        True where, at every place, the phrase belongs to a word that the sentence lacks, while
        the sentence's own word has one of the rivals, or stands elsewhere in the passage; where it
        belongs to another subject; or where the subject and the object of one verb have changed
        their parts.
    """
    own = _place(phrase)
    if _in_subject(phrase, own) or not own.words:
        return False
    others = [one for rival in rivals if (one := _place(rival)).words[:1] == own.words[:1]]
    foreign = own.words[0] in elsewhere
    return bool(places) and all(
        _swapped(phrase, own, place, others, told, foreign=foreign) for place in places
    )


def displaced(phrase: ParsedToken, rivals: Sequence[ParsedToken]) -> bool:
    """Whether a passage that lacks a date or number tells another one in its place.

    Args:
        phrase: Head word of the date or number in the sentence.
        rivals: Head words of those in the passage that the sentence does not tell.

    Returns:
        True where one of them belongs to the same word by the same preposition.
    """
    own = _place(phrase).words[:1]
    return bool(own) and any(
        _place(one).words[:1] == own and _preposition(one) == _preposition(phrase) for one in rivals
    )


def _preposition(token: ParsedToken) -> str:
    above = next((one for one in token.ancestors if one.pos_ in ("ADP", "VERB", "AUX")), None)
    return above.lower_ if above is not None and above.pos_ == "ADP" else ""


def _swapped(
    phrase: ParsedToken,
    own: _Place,
    place: ParsedToken,
    rivals: Sequence[_Place],
    told: Set[str],
    *,
    foreign: bool,
) -> bool:
    theirs = _place(place)
    names = content_of(own.subjects[-1]) if own.subjects else set()
    same = bool(names) and _alike(own.verb, theirs.verb)
    if same and (_turned(phrase, own, place, theirs, names) or _acted_upon(own, theirs, names)):
        return True
    nearest = theirs.words[:1]
    if not nearest or not (rivals or foreign):
        return False
    if nearest != own.words[:1]:
        return nearest[0] not in told
    return (
        bool(names)
        and not names & _subject_words(theirs)
        and all(one.pos_ != "PRON" for one in theirs.subjects)
        and any(names & _subject_words(one) for one in rivals)
    )


def _alike(verb: ParsedToken, other: ParsedToken) -> bool:
    """Whether two verbs are forms of one: *beat* and *beaten*."""
    one, two = stem_of(verb), stem_of(other)
    return verb.pos_ == "VERB" and (one.startswith(two) or two.startswith(one))


def _acted_upon(own: _Place, theirs: _Place, names: Set[str]) -> bool:
    """Whether who does something to something here has it done by another there."""
    if (
        own.verb.lower_ in MUTUAL
        or not any(one.dep_ == "dobj" for one in own.verb.children)
        or not any(one.dep_ in ("dobj", "agent") for one in theirs.verb.children)
        or not theirs.subjects
        or names & _subject_words(theirs)
    ):
        return False
    parts = {_part(one, theirs.verb) for one in _clause(theirs) if stem_of(one) in names}
    return parts == {_Part.OTHER} and _part(theirs.subjects[-1], theirs.verb) is _Part.DOER


def _in_subject(phrase: ParsedToken, own: _Place) -> bool:
    return any(one.i == phrase.i for subject in own.subjects for one in subject.subtree)


def _subject_words(place: _Place) -> set[str]:
    return {stem for one in place.subjects for stem in content_of(one)}


def _role(
    phrase: ParsedToken, own: _Place, place: ParsedToken, stems: Set[str], known: Set[str]
) -> Role:
    theirs = _place(place)
    nearest = own.words[:1]
    if nearest and nearest[0] in known and nearest[0] not in theirs.words:
        same = (one for one in place.doc if stem_of(one) == nearest[0])
        if not any(_shares(verb, theirs.verb, place) for verb in same):
            return Role.OTHER
    if not own.subjects:
        return Role.SAME
    names = content_of(own.subjects[-1])
    if _alike(own.verb, theirs.verb) and _acted_upon(own, theirs, names):
        return Role.TURNED
    if any(one.pos_ == "PRON" for one in theirs.subjects):
        return Role.SAME
    if not names or not names <= stems or not theirs.subjects:
        return Role.SAME
    if names.isdisjoint(
        stem_of(one) for one in (*_clause(theirs), *theirs.subjects) if one.pos_ in OPEN
    ):
        return Role.OTHER
    return Role.TURNED if _turned(phrase, own, place, theirs, names) else Role.SAME


def _turned(
    phrase: ParsedToken, own: _Place, place: ParsedToken, theirs: _Place, names: Set[str]
) -> bool:
    """Whether subject and phrase have changed their parts: who beat whom."""
    mine = _part(own.subjects[-1], own.verb), _part(phrase, own.verb)
    if mine[0] is mine[1] or own.verb.lower_ in MUTUAL:
        return False
    for one in _clause(theirs):
        if stem_of(one) in names and one.i != place.i:
            yours = _part(one, theirs.verb), _part(place, theirs.verb)
            if yours in (mine, mine[::-1]):
                return yours != mine
    return False


def _place(token: ParsedToken) -> _Place:
    while token.dep_ == "compound":
        token = token.head
    words: list[str] = []
    below = token
    if token.pos_ == "VERB":
        return _Place((), token, subjects_of(token))
    for one in token.ancestors:
        joined = below.dep_ == "conj"
        if one.pos_ in OPEN and not joined:
            words.append(stem_of(one))
        if one.pos_ in ("VERB", "AUX") and not joined:
            words += [
                stem_of(child)
                for child in one.children
                if one.pos_ == "AUX" and child.dep_ in ("attr", "acomp") and child.i != below.i
            ]
            return _Place(tuple(words), one, subjects_of(one))
        below = one
    return _Place(tuple(words), below, subjects_of(below))


def subjects_of(verb: ParsedToken) -> list[ParsedToken]:
    """Whom or what a verb is told of: its subject, and the nouns between that and the verb.

    In *a company established by Cowell* and in *Syco is a company that Cowell established* both
    the company and what is called one.
    """
    found: list[ParsedToken] = []
    one = verb
    while True:
        own = next((child for child in one.children if child.dep_ in CLAUSAL_SUBJECTS), None)
        if own is not None and own.tag_ not in RELATIVE:
            return [*found, own]
        if one.head is one or one.dep_ not in CARRIED:
            return found
        if one.head.pos_ in NOUNS:
            found.append(one.head)
        one = one.head


def _shares(verb: ParsedToken, other: ParsedToken, phrase: ParsedToken) -> bool:
    """Whether coordinated verbs share a phrase: nothing like it stands between them."""
    joined = any(one.i == verb.i for one in _joined(other)) or any(
        one.i == other.i for one in _joined(verb)
    )
    first, last = sorted((verb.i, other.i))
    between = phrase.doc[first : last + 1]
    return joined and all(one.pos_ != phrase.pos_ for one in between)


def _joined(verb: ParsedToken) -> Iterator[ParsedToken]:
    one = verb
    while one.dep_ == "conj":
        one = one.head
        yield one


def _clause(place: _Place) -> list[ParsedToken]:
    """The words of a clause, with its subject and without the clauses joined to it."""
    words = [one for subject in place.subjects[-1:] for one in subject.subtree]
    rest = [place.verb]
    while rest:
        one = rest.pop()
        words.append(one)
        rest += [
            child
            for child in one.children
            if child.dep_ not in CLAUSES or child.pos_ not in ("VERB", "AUX")
        ]
    return words


def _part(token: ParsedToken, verb: ParsedToken) -> _Part:
    """Who does something, or everything else in a clause."""
    passive = any(child.dep_ in ("auxpass", "nsubjpass") for child in verb.children)
    below = token
    for one in (token, *token.ancestors):
        if one.dep_ in CLAUSAL_SUBJECTS:
            return _Part.OTHER if passive or one.dep_ == "nsubjpass" else _Part.DOER
        if one.dep_ == "agent":
            return _Part.DOER
        if one.i == verb.i:
            break
        below = one
    return _Part.DOER if below.dep_ in CLAUSAL_SUBJECTS else _Part.OTHER


def content_of(token: ParsedToken) -> set[str]:
    """Stems of a noun's own words, without what hangs on it by prepositions."""
    parts = (token, *(one for one in token.children if one.dep_ in MODIFIERS))
    return {stem_of(one) for one in parts if one.pos_ in OPEN}


def stem_of(token: ParsedToken) -> str:
    """The stem of a parsed word."""
    words = tokenise(token.text)
    return words[0].stem if words else stem(fold(token.text))
