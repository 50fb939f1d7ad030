"""Reduced sentences: what a sentence still states without the parts a passage says nothing of.

A passage that says when a bridge was opened, but not by whom, supports a part of *The bridge was
opened in 1932 by the king*. The parts that the passage does not hold are cut out along the parse,
whole constituents at a time, and the judge is asked whether the passage entails the rest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from guardrail.holding import Holding, Reading, Standing, head_of, is_figure
from guardrail.naming import SentenceTokens, Span
from guardrail.occurrences import NOT_THE_HEAD
from guardrail.phrases import Phrase, PhraseKind
from guardrail.roles import MODIFIERS, stem_of
from guardrail.support import touches
from guardrail.syntax import CLAUSAL_SUBJECTS, end_of, is_main_subject
from guardrail.text.sentences import Stretch
from guardrail.text.values import tokenise, word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Span as ParsedSpan
    from spacy.tokens import Token as ParsedToken

__all__ = ["Reduction", "reduced"]

ADJUNCTS = frozenset({"prep", "agent", "npadvmod", "appos", "relcl", "acl", "advcl", "conj"})
"""Dependencies of constituents that a sentence can do without."""

BESIDE = frozenset({"appos", "relcl", "acl", "advcl"})
"""Of these, what a subject can do without and still be the same."""

BOUND = word_set("as than")
"""Prepositions without which a verb or a comparison says something else: *known as*."""

WHEN = word_set("in on since during until")
"""Prepositions before a date."""

GRADED = frozenset({"JJR", "JJS", "RBR", "RBS"})
"""Tags of comparatives and superlatives."""

LOOK_BACK = 200
"""Words before a sentence in which the name is looked for that its pronoun stands for."""

JOINTS = frozenset("-–/")
"""Signs that make one word or score of two."""

SPACED = re.compile(r"\s+(?=[,.;:!?)])|(?<=\()\s+|\(\s*\)")
COMMAS = re.compile(r",(?:\s*,)+")
LOOSE_COMMA = re.compile(r",\s*(?=[.;:!?)]|$)|^[\s,;:]+")


class Reduction(NamedTuple):
    """A part of a sentence that a window of a passage may support.

    Attributes:
        text: The sentence without the rest, as the judge reads it.
        held: Where names, dates, numbers and nouns stand in it that the window holds as well,
            beside those of its subject.
        cuts: What was left out of the sentence.
        loose: Whether a word remains that the window does not hold.
    """

    text: str
    held: tuple[Span, ...]
    cuts: tuple[Span, ...]
    loose: bool


def reduced(
    span: ParsedSpan,
    stretch: Stretch,
    told: SentenceTokens,
    resolved: str,
    found: Sequence[Holding],
    window: Reading,
) -> Reduction | None:
    """Cut out of a sentence what a window of a passage does not hold.

    Args:
        span: The sentence in the parsed answer.
        stretch: The same as text.
        told: The same, prepared.
        resolved: The sentence with its pronoun replaced by a name.
        found: How its factual phrases stand in the window.
        window: The window.

    Returns:
        None where nothing is to be cut; where the passage never mentions the subject; where a
        name, date or number that the window lacks stands in no part that can be cut, or the window
        tells another in its place; where subject and object have changed their parts; where the
        sentence denies something; and where what remains would state nothing of its subject.
    """
    if told.negated or any(one.standing is Standing.TURNED for one in found):
        return None
    cuts = [first] if (first := _first_clause(span, found)) else []
    loose = False
    for phrase, head, standing in found:
        place = (phrase.start, phrase.end)
        if standing in (Standing.HELD, Standing.NAMED) or touches(place, cuts):
            continue
        cut = None if head is None else _cut(span, head, phrase, standing)
        if cut is not None:
            cuts.append(_without_date(cut, found))
        elif standing is Standing.ASTRAY or _decides(phrase, head):
            return None
        else:
            loose = True
    if not cuts or _broken(span, stretch, cuts) or _rivalled(span, window.doc, cuts, told):
        return None
    if resolved == stretch.text and _speaks_of_another(span, window):
        return None
    aside = [
        *cuts,
        *(
            (one.left_edge.idx, end_of(one.right_edge))
            for one in span
            if one.dep_ in CLAUSAL_SUBJECTS
        ),
    ]
    held = tuple(
        (phrase.start, phrase.end)
        for phrase, head, standing in found
        if standing is Standing.HELD
        and (phrase.kind.hard or _is_noun(phrase, head))
        and not touches((phrase.start, phrase.end), aside)
    )
    if not held:
        return None
    return Reduction(_without(stretch, resolved, cuts), held, tuple(sorted(cuts)), loose)


def _decides(phrase: Phrase, head: ParsedToken | None) -> bool:
    """Whether a sentence tells another matter by a phrase: by its subject, or what that is."""
    main = head is not None and head.dep_ in CLAUSAL_SUBJECTS | {"attr"}
    return main or phrase.kind.hard or is_figure(phrase)


def _first_clause(span: ParsedSpan, found: Sequence[Holding]) -> Span | None:
    """The first of two coordinated clauses without its subject, where only the second is held.

    Of *Ada was born in London and died in Kent* that is *was born in London and*; *was* stays
    where the second clause needs it.
    """
    verb = span.root
    second = next((one for one in verb.children if one.dep_ == "conj"), None)
    if second is None or any(child.dep_ in CLAUSAL_SUBJECTS for child in second.children):
        return None
    states = {head.i: standing for _, head, standing in found if head is not None}
    if states.get(verb.i) is not Standing.MISSING or states.get(second.i) is not Standing.HELD:
        return None
    helpers = [one for one in verb.children if one.dep_ in ("aux", "auxpass") and one.i < verb.i]
    shared = second.tag_ == "VBN" and not any(one.dep_ == "auxpass" for one in second.children)
    first = verb if shared or not helpers else helpers[0]
    return first.idx, second.left_edge.idx


def _is_noun(phrase: Phrase, head: ParsedToken | None) -> bool:
    """Whether a phrase is a common noun that does not merely specify another one."""
    return phrase.kind is PhraseKind.TERM and head is not None and head.dep_ not in MODIFIERS


def _broken(span: ParsedSpan, stretch: Stretch, cuts: Sequence[Span]) -> bool:
    """Whether what remains is no sentence: it has lost its subject, or a piece of a word."""
    for edge in (edge - stretch.start for cut in cuts for edge in cut):
        beside = stretch.text[max(0, edge - 1) : edge + 1]
        if not JOINTS.isdisjoint(beside) and not any(sign.isspace() for sign in beside):
            return True
    subject = next((one for one in span.root.children if one.dep_ in CLAUSAL_SUBJECTS), None)
    return subject is None or touches((subject.idx, end_of(subject)), cuts)


def _cut(span: ParsedSpan, token: ParsedToken, phrase: Phrase, standing: Standing) -> Span | None:
    """The smallest constituent around a phrase that its sentence can do without."""
    if phrase.kind is PhraseKind.QUALITY and is_figure(phrase):
        token = token.head
    for one in (token, *token.ancestors):
        if not span.start <= one.i < span.end:
            return None
        subject = any(part.dep_ in CLAUSAL_SUBJECTS for part in one.ancestors)
        modifies = one is token and one.dep_ in MODIFIERS and standing is Standing.MISSING
        if modifies and not subject and _intersects(one, phrase):
            return one.left_edge.idx, end_of(one.right_edge)
        if one.dep_ in BESIDE or (one.dep_ in ADJUNCTS and not subject and not _bound(one, phrase)):
            return _constituent(span, one)
    return None


def _intersects(token: ParsedToken, phrase: Phrase) -> bool:
    """Whether what a modified noun tells stays true without the modifier: no *vice* president."""
    return (
        (token.text.islower() or token.dep_ == "amod")
        and token.tag_ not in GRADED
        and token.lower_ not in NOT_THE_HEAD
        and not is_figure(phrase)
    )


def _bound(token: ParsedToken, phrase: Phrase) -> bool:
    """Whether a preposition belongs to the word before it: *known as*, *a population of*."""
    if token.dep_ != "prep":
        return False
    counted = phrase.kind is PhraseKind.NUMBER and token.lower_ == "of"
    return token.lower_ in BOUND or counted or token.head.dep_ in ("prep", "agent")


def _constituent(span: ParsedSpan, head: ParsedToken) -> Span:
    """Where a constituent stands, with the *and* before it and without what is joined to it."""
    doc = head.doc
    first, last = max(head.left_edge.i, span.start), min(head.right_edge.i, span.end - 1)
    if head.dep_ == "conj":
        joined = next((child for child in head.children if child.dep_ == "conj"), None)
        if joined is not None:
            last = joined.left_edge.i - 1
            while last > head.i and (doc[last].dep_ == "cc" or doc[last].is_punct):
                last -= 1
        while first > span.start and (doc[first - 1].dep_ == "cc" or doc[first - 1].text == ","):
            first -= 1
    return doc[first].idx, end_of(doc[last])


def _without_date(cut: Span, found: Sequence[Holding]) -> Span:
    """A cut without the date at its end that the window holds: it may be the verb's.

    Parsers hang the date of *opened by the king in 1932* on the king.
    """
    for phrase, head, standing in found:
        if (
            phrase.kind is PhraseKind.DATE
            and standing is Standing.HELD
            and phrase.end == cut[1]
            and head is not None
        ):
            above = next((one for one in head.ancestors if one.dep_ == "prep"), None)
            if above is not None and above.lower_ in WHEN and cut[0] < above.idx:
                return cut[0], end_of(above.doc[above.i - 1])
    return cut


def _rivalled(span: ParsedSpan, window: Doc, cuts: Sequence[Span], told: SentenceTokens) -> bool:
    """Whether a window tells something else in the place of what is cut: *in Paris*, *in Rome*.

    That is a name or number that the sentence does not tell, after the same preposition on the
    same word.
    """
    for start, _ in cuts:
        cut = head_of(span, (start, start + 1))
        if cut is None:
            continue
        kinds = {one.pos_ for one in cut.children if one.dep_ == "pobj"} & {"PROPN", "NUM"}
        for one in window:
            if one.lower_ == cut.lower_ and stem_of(one.head) == stem_of(cut.head):
                for value in one.children:
                    stems = {part.stem for part in tokenise(value.text)}
                    if value.pos_ in kinds and stems.isdisjoint(told.by_stem):
                        return True
    return False


def _speaks_of_another(span: ParsedSpan, window: Reading) -> bool:
    """Whether a pronoun stands for a name told before that the passage never mentions."""
    subject = next(filter(is_main_subject, span), None)
    if subject is None or subject.pos_ != "PRON":
        return False
    named = [
        one
        for one in span.doc[max(0, span.start - LOOK_BACK) : span.start]
        if is_main_subject(one) and one.pos_ == "PROPN"
    ]
    name = {part.stem for one in named[-1:] for part in tokenise(_name(one))}
    return bool(name) and name.isdisjoint(window.known)


def _name(token: ParsedToken) -> str:
    return " ".join(one.text for one in token.subtree if one.pos_ == "PROPN")


def _without(stretch: Stretch, resolved: str, cuts: Sequence[Span]) -> str:
    """The sentence without some of its parts, with the name that replaced its pronoun."""
    text = stretch.text
    edits = [(start - stretch.start, end - stretch.start, "") for start, end in cuts]
    if resolved != text:
        pairs = list(zip(text, resolved, strict=False))
        first = next((n for n, (a, b) in enumerate(pairs) if a != b), len(pairs))
        most = len(pairs) - first
        tail = next((n for n in range(most) if text[-1 - n] != resolved[-1 - n]), most)
        edits.append((first, len(text) - tail, resolved[first : len(resolved) - tail]))
    parts, position = [], 0
    for start, end, new in sorted(edits):
        if start >= position:
            parts += [text[position:start], new]
            position = end
    left = " ".join(("".join(parts) + text[position:]).split())
    left = LOOSE_COMMA.sub("", COMMAS.sub(",", SPACED.sub("", left)))
    return left[:1].upper() + left[1:]
