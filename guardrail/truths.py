"""Truth values: whether a sentence says that a property holds, as *not family-friendly* denies it.

Of a triple whose value is *yes* or *no* no word of the value stands in prose. The words of its
property do, and whether they are denied is read from the parse; in a table or list from the *yes*
or *no* behind them.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from guardrail.cue_words import CUES
from guardrail.denials import BUT, COORDINATED, Stance, stance_above
from guardrail.syntax import COMPLEMENTS, SUBJECTS
from guardrail.text.values import stem, tokenise, word_set
from guardrail.types import Triple
from guardrail.vocabulary import STOP_WORDS, cues, property_words

if TYPE_CHECKING:
    from spacy.tokens import Span as ParsedSpan
    from spacy.tokens import Token as ParsedToken

__all__ = [
    "denies_property",
    "is_denied",
    "names_property",
    "telling",
    "told_truth",
    "truth_value",
]

YES: Final = frozenset({"yes", "true"})
NO: Final = frozenset({"no", "false"})

TICKS: Final = YES | word_set("✓ ✔ available included allowed")
CROSSES: Final = NO | word_set("✗ ✘ ✕ none not unavailable")
"""What stands behind a property in a table or list."""

NEGATING: Final = word_set("not n't n’t never no without hardly barely scarcely")
AGAINST: Final = word_set(
    "unsuitable unfit inappropriate unfriendly unwelcome unwelcoming unavailable lack lacks lacked "
    "lacking ban bans banned prohibit prohibits prohibited forbid forbids forbidden bar barred "
    "discourage discourages discouraged exclude excludes excluded excluding far stop stops stopped "
    "cease ceases ceased former formerly"
)
"""Words that deny what they are said of: *unsuitable for children*, *far from family-friendly*."""

COMPARING: Final = word_set("more most less least")

BEFORE: Final = ("anything but", "out of", "free of", "free from", "yet to be", "used to be")
"""Words that deny what comes right behind them: *out of stock*, *free of nuts*."""

ALLOWING: Final = AGAINST | word_set(
    "allow allows allowed welcome welcomes welcomed permit permits permitted admit admitted "
    "accept accepted available suitable encouraged recommended offered provided included cater "
    "caters bring brings take love loves enjoy"
)
"""What is said of a property's own noun where its verb tells whether it holds: *kids are allowed*.

Any other verb tells something else of it: *the family-friendly pub is not near the river*."""

CONTRARY: Final = {"family friendly": frozenset({"adult"})}
"""Stems of the words that tell the opposite of a property: *adults only*."""

GUESTS: Final = {
    "family friendly": word_set("family families kid kids child children adult adults")
}
"""Nouns for those whom a property is about; they tell it where somebody serves them."""

SERVING: Final = word_set("for with to")
"""Words before those whom a place serves."""

PLACES: Final = word_set(
    "amenities atmosphere bar cafe café coffee environment establishment hotel menu place pub "
    "resort restaurant setting shop spot venue"
)
"""What those whom it serves stand before: *a family restaurant*."""

AUXILIARY: Final = frozenset({"aux", "auxpass"})
"""How a verb hangs on the one that it helps, which a negation may hang on."""

GOVERNED: Final = frozenset({"pcomp", "pobj", "amod"})
"""How a verb hangs on what may deny it: *far from highly rated*."""

PREFIXED: Final = 3
"""Words, hyphens among them, that may part *non* from what it denies: *non-family-friendly*."""

HIGHEST: Final = 10
"""Words above a word that are looked at; its verb is hardly ever further up."""

CELL: Final = 6
"""Words of a table's or list's label that may stand before its *yes* or *no*."""


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
    return words in CUES or all(one in stems for one in _content(words))


def denies_property(triple: Triple, stems: Container[str]) -> bool:
    """Whether what a sentence tells against a truth value is told of the whole property.

    A place with *no parking* has none for wheelchairs either; one with parking may have none.

    Args:
        triple: A triple with a truth value, which the sentence tells otherwise.
        stems: The stems of the sentence's words.
    """
    if names_property(triple.property, stems):
        return True
    words = _content(property_words(triple.property))
    return truth_value(triple.value) is True and bool(words) and words[-1] in stems


def telling(label: str, stems: Container[str]) -> list[str]:
    """The stems of a sentence that tell of a property; those of its opposite where no other does.

    Args:
        label: The property.
        stems: The stems of the sentence's words.
    """
    words = property_words(label)
    contrary = CONTRARY.get(words, frozenset())
    found = sorted(word for word in cues(label) if word in stems)
    if words not in CUES and (content := _content(words)) and content[-1] not in stems:
        return []
    return [word for word in found if word not in contrary] or found


def told_truth(word: ParsedToken, triple: Triple) -> Stance:
    """How a sentence stands to a triple with a truth value, told by a word for its property.

    Args:
        word: The word: *friendly*, *wifi*.
        triple: A triple whose value is a truth value.

    Returns:
        Whether the sentence tells the triple's own truth value, the other one, or neither.
    """
    label = property_words(triple.property)
    held = truth_value(triple.value)
    ticked = _ticked(word)
    if ticked is not None:
        return Stance.STATED if ticked is held else Stance.DENIED
    if label in GUESTS and not _serves(word, GUESTS[label]):
        return Stance.OPEN
    contrary = stem(word.lower_) in CONTRARY.get(label, ())
    if contrary and any(one.lower_ in BUT for one in word.sent):
        return Stance.OPEN  # *not only for adults*
    denials = set(_negations(word))
    if "free" not in label and _is_free_of(word):
        denials.add(word.i)
    first = word.left_edge.i
    if word.doc[max(0, first - PREFIXED) : first].text.lower().endswith(BEFORE):
        denials.add(first - 1)
    if denials and any(one.lower_ in COMPARING for one in _before(word)):
        return Stance.OPEN  # *no more family-friendly place than this*
    told = stance_above(word, triple.property, denied=(len(denials) + contrary) % 2 == 1)
    if told is Stance.OPEN:
        return told
    return Stance.STATED if (told is Stance.STATED) is held else Stance.DENIED


def is_denied(word: ParsedToken) -> bool:
    """Whether the words of its own clause deny a word: *lacks*, *far from*, *no longer*, *not*."""
    return len(set(_negations(word))) % 2 == 1


def _content(words: str) -> list[str]:
    """Stems of the words of a label, those left out that any label may have."""
    return [token.stem for token in tokenise(words) if token.folded not in STOP_WORDS]


def _ticked(word: ParsedToken) -> bool | None:
    """What a *yes* or *no* behind a label says: *Parking: no*; None where there is none."""
    parted = False
    for one in word.doc[word.i + 1 : word.i + 1 + CELL]:
        if parted and not one.is_space:
            told = one.lower_
            return True if told in TICKS else False if told in CROSSES else None
        if one.text in ("✓", "✔", "✗", "✘", "✕"):
            return one.text in TICKS
        if one.text in ".;!?,":
            return None
        parted = one.text in (":", "|")
    return None


def _serves(word: ParsedToken, guests: frozenset[str]) -> bool:
    """Whether those whom a property is about are served, or something is friendly to them."""
    if word.lower_ not in guests:
        near = word.doc[max(0, word.i - PREFIXED) : word.i + PREFIXED + 1]
        return any(one.lower_ in guests for one in near)
    after = word.doc[word.i + 1 : word.i + 1 + PREFIXED]
    if any(one.lower_.startswith(("friendl", "only", "welcom", "free")) for one in after):
        return True
    if word.dep_ in ("compound", "nmod", "amod") and word.head.lower_ in PLACES:
        return True
    if any(one.lower_ == "no" for one in word.children):
        return True
    first = word
    while first.dep_ == "conj":
        first = first.head
    if first.dep_ == "pobj":
        return first.head.lower_ in SERVING
    return first.dep_ in (*SUBJECTS, "dobj") and _tells_of(first.head)


def _is_free_of(word: ParsedToken) -> bool:
    """Whether a word is what something is free of: *nut-free*."""
    return word.doc[word.i + 1 : word.i + 3].text.lower().lstrip("- ").startswith("free")


def _negations(word: ParsedToken) -> Iterator[int]:
    """Yield the places of the words that deny a word, up to the verb of its clause."""
    yield from (one.i for one in _before(word) if one.lower_ in ("non", "un"))
    for one in (word, *islice(word.ancestors, HIGHEST)):
        if _denies_else(one, word):
            return
        helping = (part for aux in one.children if aux.dep_ in AUXILIARY for part in aux.children)
        for child in (*one.children, *helping):
            if child.lower_ in COORDINATED:
                yield -1  # two of these deny no more than one
            elif _negates(child) or (_is_against(child) and child.i != word.i):
                yield child.i
        if one.i != word.i and (one.lower_ in NEGATING or one.lower_ in AGAINST):
            yield one.i
        if one.pos_ in ("VERB", "AUX") and one.dep_ not in GOVERNED:
            if one.dep_ == "xcomp" and one.head.lower_ in AGAINST:
                yield one.head.i
            return
        if one.dep_ in SUBJECTS and not _tells_of(one.head):
            return


def _before(word: ParsedToken) -> ParsedSpan:
    return word.doc[max(0, word.i - PREFIXED) : word.i]


def _denies_else(verb: ParsedToken, word: ParsedToken) -> bool:
    """Whether a verb's object stands before a word that is none: *serves no Chinese food but …*."""
    return verb.pos_ == "VERB" and any(
        child.dep_ == "dobj" and child.right_edge.i < word.i for child in verb.children
    )


def _negates(child: ParsedToken) -> bool:
    """Whether a word denies what it hangs on: *not*, *no*, *no longer*, but not *not only*."""
    if child.lower_ == "longer":
        return any(part.lower_ == "no" for part in child.children)
    after = child.doc[child.i + 1 : child.i + 2].text.lower()
    return child.lower_ in NEGATING and after not in BUT


def _is_against(child: ParsedToken) -> bool:
    return child.lower_ in AGAINST and child.dep_ in (*COMPLEMENTS, "amod", "advmod")


def _tells_of(verb: ParsedToken) -> bool:
    """Whether a verb tells of its subject whether there is any."""
    return any(
        one.lower_ in ALLOWING
        for one in (verb, *(child for child in verb.children if child.dep_ in COMPLEMENTS))
    )
