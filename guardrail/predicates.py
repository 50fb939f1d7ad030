"""Predicates: what a sentence says of each of its subjects, one finite verb at a time.

*Her parents were writers and had a large house* has two. A predicate of which no accepted triple
accounts for anything is a claim of its own, however well the rest of the sentence is supported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from guardrail.leftovers import Leftover
from guardrail.matching import Match
from guardrail.naming import Span
from guardrail.phrases import Phrase
from guardrail.syntax import CLAUSAL_SUBJECTS, COMPLEMENTS
from guardrail.text.sentences import Stretch

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Token as ParsedToken

__all__ = ["predicates_of", "with_bare"]

SUBJECTS: Final = CLAUSAL_SUBJECTS | {"expl"}

CLAUSES: Final = frozenset({"ROOT", "conj", "relcl", "advcl", "ccomp", "acl"})
"""How the verb of a clause hangs in its sentence."""

LISTED: Final = COMPLEMENTS | {"dobj"}
"""What a predicate may tell several of: *a painter and a poet*, *the organ and the violin*."""


def predicates_of(doc: Doc, start: int, end: int) -> tuple[tuple[Span, ...], ...]:
    """The predicates of one sentence: for each the places of its words.

    A word belongs to the innermost finite clause that it stands in; the words of a clause's
    subject belong to none.

    Args:
        doc: The parsed answer.
        start: Offset of the sentence's first character in the text.
        end: Offset past its last character.
    """
    sentence = doc.char_span(start, end, alignment_mode="expand")
    if sentence is None:
        return ()
    heads: dict[int, list[Span]] = {}
    known: dict[int, int | None] = {}
    for token in sentence:
        head = _clause(token, known)
        if head is not None:
            heads.setdefault(head, []).append((token.idx, token.idx + len(token.text)))
    return tuple(map(tuple, heads.values()))


def _clause(token: ParsedToken, known: dict[int, int | None]) -> int | None:
    """Place of the head of the innermost predicate around a token; None inside a subject.

    Args:
        token: The token.
        known: What was found for other tokens, by their places.
    """
    path: list[int] = []
    one = token
    while one.i not in known:
        path.append(one.i)
        if _states(one):
            known[one.i] = one.i
        elif one.dep_ in SUBJECTS or one.head.i == one.i:
            known[one.i] = None
        else:
            one = one.head
    found = known[one.i]
    known.update(dict.fromkeys(path, found))
    return found


def _states(token: ParsedToken) -> bool:
    """Whether a token is the head of a predicate: a verb, an apposition, or one more of a list."""
    if token.pos_ in ("VERB", "AUX"):
        return token.dep_ in CLAUSES
    first = token
    while first.dep_ == "conj":
        first = first.head
    return first.dep_ == "appos" or (first is not token and first.dep_ in LISTED)


def with_bare(
    left: Sequence[Leftover],
    doc: Doc,
    stretch: Stretch,
    phrases: Sequence[Phrase],
    kept: Sequence[Match],
) -> list[Leftover]:
    """Tell which left-over phrases make up predicates that nothing accepted speaks of.

    Names, dates and numbers need no such help: what lacks support is told by them alone.

    Args:
        left: The phrases that no accepted triple accounts for.
        doc: The parsed answer.
        stretch: The sentence.
        phrases: All its factual phrases.
        kept: The accepted triples.
    """
    if all(one.kind.hard for one in left):
        return list(left)
    lacking = _places((one.start, one.end) for one in left)
    spoken = _places(span for match in kept for span in (*match.value_spans, *match.cue_spans))
    spoken |= _places((one.start, one.end) for one in phrases) - lacking
    spoken |= _places((one.start, one.end) for one in left if one.kind.hard)
    bare: set[int] = set()
    for words in predicates_of(doc, stretch.start, stretch.end):
        predicate = _places(words)
        if spoken.isdisjoint(predicate):
            bare |= predicate
    return [one._replace(bare=one.start in bare) for one in left]


def _places(spans: Iterable[Span]) -> set[int]:
    """The characters that lie within spans."""
    return {place for start, end in spans for place in range(start, end)}
