"""Truth values: whether a sentence says that a property holds, as *not family-friendly* denies it.

Of a triple whose value is *yes* or *no* no word of the value stands in prose. The words of its
property do, and whether they are denied is read from the parse.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Final

from guardrail.denials import BUT, Stance, stance_above
from guardrail.syntax import COMPLEMENTS, SUBJECTS
from guardrail.types import Triple
from guardrail.values import stem, tokenise, word_set
from guardrail.vocabulary import CUES, STOP_WORDS, cues, property_words

if TYPE_CHECKING:
    from spacy.tokens import Token as ParsedToken

__all__ = ["names_property", "telling", "told_truth", "truth_value"]

YES: Final = frozenset({"yes", "true"})
NO: Final = frozenset({"no", "false"})

NEGATING: Final = word_set("not n't n’t never no non without")

AGAINST: Final = word_set(
    "unsuitable unfit inappropriate unfriendly unwelcome unwelcoming unavailable lack lacks lacked "
    "lacking ban bans banned prohibit prohibits prohibited forbid forbids forbidden bar barred "
    "discourage discourages discouraged exclude excludes excluded excluding far"
)
"""Words that deny what they are said of: *unsuitable for children*, *far from family-friendly*."""

ALLOWING: Final = AGAINST | word_set(
    "allow allows allowed welcome welcomes welcomed permit permits permitted admit admitted "
    "accept accepted available suitable encouraged recommended offered provided included"
)
"""What is said of a property's own noun where its verb tells whether it holds: *kids are allowed*.

Any other verb tells something else of it: *the family-friendly pub is not near the river*."""

CONTRARY: Final = {"family friendly": frozenset({"adult"})}
"""Stems of the words that tell the opposite of a property: *adults only*."""

PREFIXED: Final = 3
"""Words, hyphens among them, that may part *non* from what it denies: *non-family-friendly*."""


def truth_value(value: str) -> bool | None:
    """Read *yes*, *no*, *true* and *false*; None for any other value."""
    word = value.strip().lower()
    return True if word in YES else False if word in NO else None


def names_property(label: str, stems: Container[str]) -> bool:
    """Whether a sentence names a whole property: *parking* is no *wheelchair accessible parking*.

    Args:
        label: The property. One that the vocabulary knows is named by any of its words.
        stems: The stems of the sentence's words.
    """
    words = property_words(label)
    return words in CUES or all(
        token.stem in stems for token in tokenise(words) if token.folded not in STOP_WORDS
    )


def telling(label: str, stems: Container[str]) -> list[str]:
    """The stems of a sentence that tell of a property; those of its opposite where no other does.

    Args:
        label: The property.
        stems: The stems of the sentence's words.
    """
    contrary = CONTRARY.get(property_words(label), frozenset())
    found = sorted(word for word in cues(label) if word in stems)
    return [word for word in found if word not in contrary] or found


def told_truth(word: ParsedToken, triple: Triple) -> Stance:
    """How a sentence stands to a triple with a truth value, told by a word for its property.

    Args:
        word: The word: *friendly*, *wifi*.
        triple: A triple whose value is a truth value.
    """
    contrary = stem(word.lower_) in CONTRARY.get(property_words(triple.property), ())
    denied = (len(set(_negations(word))) + contrary) % 2 == 1
    told = stance_above(word, triple.property, denied=denied)
    if told is Stance.OPEN:
        return told
    holds = told is Stance.STATED
    return Stance.STATED if holds is truth_value(triple.value) else Stance.DENIED


def _negations(word: ParsedToken) -> Iterator[int]:
    """Yield the places of the words that deny a word, up to the verb of its clause."""
    before = word.doc[max(word.sent.start, word.i - PREFIXED) : word.i]
    yield from (one.i for one in before if one.lower_ in ("non", "un"))
    for one in (word, *word.ancestors):
        yield from (
            child.i
            for child in one.children
            if child.lower_ in NEGATING
            and child.doc[child.i + 1 : child.i + 2].text.lower() not in BUT
        )
        if one.lower_ in NEGATING or (one.lower_ in AGAINST and one.i != word.i):
            yield one.i
        yield from (child.i for child in one.children if _unfit(child, word))
        if one.pos_ in ("VERB", "AUX"):
            return
        if one.dep_ in SUBJECTS and not _tells_of(one.head):
            return


def _unfit(child: ParsedToken, word: ParsedToken) -> bool:
    """Whether a word beside the path to the verb denies the property: kids are *unwelcome*."""
    return child.lower_ in AGAINST and child.dep_ in COMPLEMENTS and child.i != word.i


def _tells_of(verb: ParsedToken) -> bool:
    """Whether a verb tells of its subject whether there is any."""
    return any(
        one.lower_ in ALLOWING
        for one in (verb, *(child for child in verb.children if child.dep_ in COMPLEMENTS))
    )
