"""Opposites: whether a passage denies what a sentence states, or tells its contrary.

*Aspirin did not reduce mortality* and *Aspirin increased mortality* hold nearly every word of
*Aspirin reduced mortality*, and small judges take them for the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from guardrail.denials import BUT, CONDITIONS, DENYING, FAILING, NOBODY
from guardrail.naming import NEGATIONS, SentenceTokens, Span
from guardrail.roles import content_of, stem_of, subjects_of
from guardrail.support import touches
from guardrail.syntax import COMPLEMENTS, SUBJECTS, end_of
from guardrail.text.values import stem, word_set

if TYPE_CHECKING:
    from spacy.tokens import Token as ParsedToken

__all__ = ["may_oppose", "opposes"]

IRREGULAR = {
    form: forms.split()[0]
    for forms in (
        "beat beaten", "become became", "begin began begun", "break broke broken",
        "bring brought", "build built", "buy bought", "catch caught", "choose chose chosen",
        "come came", "do did done", "fall fell fallen", "fight fought", "find found",
        "get got gotten", "give gave given", "go went gone", "grow grew grown",
        "have has had", "hear heard", "hold held", "keep kept", "know knew known",
        "lead led", "leave left", "lose lost", "make made", "mean meant", "meet met", "pay paid",
        "rise rose risen", "run ran", "say said", "see saw seen", "sell sold", "send sent",
        "show shown", "shrink shrank shrunk", "sink sank sunk", "speak spoke spoken",
        "spend spent", "stand stood", "steal stole stolen", "strike struck", "take took taken",
        "teach taught", "tell told", "think thought", "win won", "write wrote written",
    )
    for form in forms.split()
}  # fmt: skip
"""Forms of verbs that no ending tells, by the verb."""

OPPOSITES = tuple(
    (word_set(one), word_set(other))
    for one, other in (
        ("increase raise rise grow", "decrease reduce lower fall drop decline shrink"),
        ("begin start open", "end stop finish cease"),
        ("open", "close shut"),
        ("safe", "unsafe dangerous"),
        ("effective", "ineffective"),
        ("legal", "illegal"),
        ("win", "lose"),
        ("gain", "lose"),
        ("accept approve", "reject"),
        ("pass enact", "repeal"),
        ("acquit", "convict"),
        ("survive live", "die"),
        ("admit", "deny"),
        ("support", "oppose"),
        ("buy", "sell"),
        ("more", "less fewer"),
        ("high", "low"),
        ("up", "down"),
        ("better", "worse"),
    )
)
"""Words of which what one says of something the other denies."""

WITHOUT = word_set("without")
UNABLE = FAILING | word_set("unable")
NEGATING = NEGATIONS | NOBODY | UNABLE | DENYING | word_set("cannot")

NOT = word_set("not n't n’t never")
"""Words beside a verb that negate it."""

ENDINGS = word_set("s d n ed es en er ing")
"""What two forms of a short word differ by."""

SHORTEST = 3
"""Fewest letters of a word that begins another form of itself."""

QUALIFIERS = frozenset({"amod", "advmod"})
"""Dependencies of words like *more* and *higher* before what they are said of."""

DEGREES = word_set("much more often enough always all every entirely necessarily")
"""Words with which a negation denies only how much, how often or of how many."""

GRADING = frozenset({"advmod", "amod", "det", "predet", "dobj"})
"""Dependencies of such words."""

OBJECTS = frozenset({"dobj", "dative"})

DEFINITE = word_set("the this these that those")


_Nouns = frozenset[frozenset[str]]
"""Nouns, each by the stem of its head, or by those of a whole name."""


class _Predication(NamedTuple):
    """What is said of something.

    Attributes:
        base: The verb, adjective or noun that says it.
        theme: What it is said of: the object of a verb that has one, else its subject;
            None for a pronoun.
        agent: Who does it to the theme, empty where nobody is told; None for a pronoun.
        vague: Whether the agent is only called *the drug*.
        places: Stems of nouns by their preposition.
        negated: Whether it is denied.
        told: Whether the text tells that it is so or not, and does not leave it open.
    """

    base: str
    theme: _Nouns | None
    agent: _Nouns | None
    vague: bool
    places: Set[tuple[str, str]]
    negated: bool
    told: bool


def may_oppose(told: SentenceTokens, window: SentenceTokens) -> bool:
    """Whether a sentence or a window has a negation, or the window a contrary of a word.

    Only then is the window worth parsing for ``opposes``.
    """
    if _negating(told) or _negating(window):
        return True
    mine = {side for one in told.by_folded for side in _sides(_base(one))}
    theirs = {side for one in window.by_folded for side in _sides(_base(one))}
    return any((pair, 1 - side) in theirs for pair, side in mine)


def opposes(
    sentence: Iterable[ParsedToken], window: Iterable[ParsedToken], cuts: Sequence[Span] = ()
) -> bool:
    """Whether a window denies what a sentence states, states what it denies, or tells a contrary.

    Args:
        sentence: The words of the sentence.
        window: Those of the parsed window.
        cuts: Parts of the sentence that are not read.

    Returns:
        True where both say the same of the same, by the same agent, and exactly one negates it, or
        one says the contrary, unless the window says it as the sentence does as well.
    """
    theirs = list(_predications(window))
    read = (one for one in sentence if not touches((one.idx, end_of(one)), cuts))
    return any(one.told and _opposed(one, theirs) for one in _predications(read))


def _opposed(own: _Predication, theirs: Sequence[_Predication]) -> bool:
    same = [one for one in theirs if _same_word(own.base, one.base)]
    if any(one.negated is own.negated and _about_the_same(own, one, strict=True) for one in same):
        return False
    against = [one for one in same if one.negated is not own.negated]
    if not own.negated and not any(
        _alike(own.base, one.base) and _themes_meet(own, one) for one in theirs
    ):
        against += (one for one in theirs if not one.negated and _contrary(own.base, one.base))
    return any(one.told and _about_the_same(own, one) for one in against)


def _themes_meet(own: _Predication, other: _Predication) -> bool:
    return own.theme is None or other.theme is None or _share(own.theme, other.theme)


def _about_the_same(own: _Predication, other: _Predication, *, strict: bool = False) -> bool:
    """Whether two say something of the same, by the same agent, in no other place or time.

    Args:
        own: What the sentence says.
        other: What the window says.
        strict: An agent who is not told by name is another one.
    """
    if not _themes_meet(own, other):
        return False
    vague = not strict and (own.vague or other.vague)
    if own.agent and other.agent and not vague and not _share(own.agent, other.agent):
        return False
    return strict or not any(
        {noun for word, noun in own.places if word == shared}.isdisjoint(
            noun for word, noun in other.places if word == shared
        )
        for shared in {word for word, _ in own.places} & {word for word, _ in other.places}
    )


def _share(mine: _Nouns, yours: _Nouns) -> bool:
    """Whether there is a noun in both, or in neither any; *Berg* may stand for *Anna Berg*."""
    if not mine and not yours:
        return True
    return any(one <= other or other <= one for one in mine for other in yours)


def _predications(words: Iterable[ParsedToken]) -> Iterator[_Predication]:
    for one in words:
        if one.dep_ in QUALIFIERS and one.pos_ != "ADP":
            yield _Predication(
                base=_base(one.lower_),
                theme=_qualified(one.head),
                agent=frozenset(),
                vague=False,
                places=frozenset(),
                negated=False,
                told=True,
            )
        elif one.pos_ == "VERB":
            yield _by_verb(one)
        elif one.dep_ in COMPLEMENTS:
            negated = _negated(one.head) ^ _none(one)
            yield _Predication(
                base=_base(one.lower_),
                theme=_names([child for child in one.head.children if child.dep_ in SUBJECTS]),
                agent=frozenset(),
                vague=False,
                places=_places(one)
                | {("", stem_of(child)) for child in one.lefts if child.pos_ == "ADJ"},
                negated=negated,
                told=_is_told(one.head, negated=negated),
            )


def _is_told(verb: ParsedToken, *, negated: bool) -> bool:
    """Whether a clause tells that something is so or not.

    An attempt *to win* or *at winning* leaves it open, *if it had not* as well, and *games not held
    on Sundays* only says which games are meant; *did not drop much* tells of a drop.
    """
    if any(child.lower_ in CONDITIONS for child in verb.lefts):
        return False
    if negated:
        words = {
            one.lower_
            for one in verb.subtree
            if one.dep_ in GRADING
            and not any(two.lower_ == "than" for two in one.doc[one.i + 1 :][:1])
        }
        return (verb.dep_ != "acl" or _called_false(verb)) and DEGREES.isdisjoint(words)
    gerund = verb.dep_ in ("xcomp", "pcomp") and verb.tag_ == "VBG"
    return not gerund and all(child.tag_ != "TO" for child in verb.lefts)


def _qualified(head: ParsedToken) -> _Nouns:
    """What *more* is said of: a noun, or a whole number, since *more than 5* are less than 9."""
    if head.pos_ != "NUM":
        return frozenset({frozenset({stem_of(head)})})
    number = " ".join(one.lower_ for one in head.subtree if one.pos_ == "NUM")
    return frozenset({frozenset({number})})


def _by_verb(verb: ParsedToken) -> _Predication:
    subjects = subjects_of(verb)[-1:]
    objects = [child for child in verb.children if child.dep_ in OBJECTS]
    passive = any(child.dep_ in ("auxpass", "nsubjpass") for child in verb.children) or (
        verb.tag_ == "VBN" and verb.dep_ in ("acl", "amod")
    )
    if passive:
        objects, subjects = (
            subjects,
            [
                noun
                for by in verb.children
                if by.dep_ == "agent"
                for noun in by.children
                if noun.dep_ == "pobj"
            ],
        )
    negated = _negated(verb)
    return _Predication(
        base=_base(verb.lower_),
        theme=_names(objects or subjects),
        agent=_names(subjects) if objects else frozenset(),
        vague=any(
            one.pos_ == "NOUN" and any(child.lower_ in DEFINITE for child in one.lefts)
            for one in subjects
        ),
        places=_places(verb),
        negated=negated,
        told=_is_told(verb, negated=negated),
    )


def _negated(verb: ParsedToken) -> bool:
    """Whether a verb is denied, by a word of its own, of its nouns, or of the verb above it."""
    words = {
        child.lower_ for child in verb.children if verb.doc[max(0, child.i - 1)].lower_ != "or"
    }  # *whether or not*
    after = {one.lower_ for one in verb.doc[verb.i : verb.right_edge.i + 1]} & BUT
    negated = not NOT.isdisjoint(words) and not after
    for noun in verb.children:
        if noun.dep_ in SUBJECTS or noun.dep_ in OBJECTS:
            negated ^= _none(noun)
    above = verb.head
    if verb.dep_ == "xcomp":
        negated ^= above.lower_ in UNABLE or _negated(above)
    elif _called_false(verb):
        negated = not negated
    elif verb.dep_ == "pcomp":
        negated ^= above.lower_ in WITHOUT
    elif verb.dep_ == "conj" and any(child.lower_ in ("or", "nor") for child in above.children):
        negated |= above.pos_ == "VERB" and _negated(above)
    return negated


def _called_false(verb: ParsedToken) -> bool:
    """Whether a clause is said to be false: *it is a myth that*."""
    above = verb.head
    return verb.dep_ in ("ccomp", "acl", "csubj", "relcl") and any(
        one.lower_ in DENYING
        for one in (above, *above.children)
        if one.i == above.i or one.dep_ in COMPLEMENTS
    )


def _none(noun: ParsedToken) -> bool:
    """Whether a noun is none: *no patients*, *not a single one*, *nobody*."""
    return noun.lower_ in NOBODY or any(
        (child.lower_ in NOBODY or child.lower_ == "not")
        and noun.doc[child.i + 1].lower_ not in BUT
        for child in noun.lefts
    )


def _names(nouns: Iterable[ParsedToken]) -> _Nouns | None:
    """Nouns with those joined to them; None where a pronoun is among them."""
    found: set[frozenset[str]] = set()
    for noun in nouns:
        if noun.pos_ == "PRON" and noun.lower_ not in NOBODY:
            return None
        joined = [noun, *noun.conjuncts]
        if noun.lower_ in NOBODY:  # *none of the patients*
            joined += [one for one in noun.subtree if one.dep_ == "pobj"]
        for one in joined:
            found.add(frozenset(content_of(one) if one.pos_ == "PROPN" else {stem_of(one)}))
    return frozenset(found)


def _places(head: ParsedToken) -> Set[tuple[str, str]]:
    return {
        (preposition.lower_, part)
        for preposition in head.children
        if preposition.dep_ == "prep"
        for noun in preposition.children
        if noun.dep_ == "pobj"
        for part in content_of(noun)
    }


def _base(word: str) -> str:
    return IRREGULAR.get(word) or stem(word)


def _same_word(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    rest = long[len(short) :]
    return short == long or (
        len(short) >= SHORTEST and long.startswith(short) and rest in (*ENDINGS, short[-1])
    )


def _alike(one: str, other: str) -> bool:
    """Whether two words stand on the same side of a pair of opposites."""
    return not _sides(one).isdisjoint(_sides(other))


def _contrary(one: str, other: str) -> bool:
    return any((pair, 1 - side) in _sides(other) for pair, side in _sides(one))


@lru_cache(maxsize=10_000)
def _sides(base: str) -> frozenset[tuple[int, int]]:
    """The pairs of opposites that have a word, and on which side."""
    return frozenset(
        (pair, side)
        for pair, sides in enumerate(OPPOSITES)
        for side, words in enumerate(sides)
        if any(_same_word(base, _base(word)) for word in words)
    )


def _negating(text: SentenceTokens) -> bool:
    return any(word in NEGATING or word.endswith(("n't", "n’t")) for word in text.by_folded)
