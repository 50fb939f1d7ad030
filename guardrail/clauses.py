"""Who and what a value is told of: the subject of its clause and the verb that governs it.

A value that stands in a sentence supports a triple only where the clause it stands in speaks of
the triple's subject, and not where a verb of another relation governs it: who was born in London
need not have lived there. A clause about *her mother* speaks of somebody else than her, and where
she was born as *a daughter of Orazio* is not where he was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from guardrail.denials import Stance, stance
from guardrail.governors import LIFE, governed_otherwise, of_another
from guardrail.matching import Match
from guardrail.naming import Span
from guardrail.values import fold, stem, tokenise, word_set
from guardrail.vocabulary import (
    STOP_WORDS,
    cues,
    describes_entity,
    is_personal,
    is_related,
    is_role,
    is_tie,
    needs_word,
    ties,
)

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Token as ParsedToken

__all__ = ["in_clause"]

SUBJECTS = frozenset({"nsubj", "nsubjpass"})

PERSONAL = word_set("he she")

BESIDE = frozenset({"appos", "relcl", "acl"})
"""How what is said of a name hangs on it."""

SAID = frozenset({"prep", "relcl", "acl"})
"""How what is said of a subject hangs on it that may name somebody else."""

RELATIVE = frozenset({"WP", "WDT"})
"""Tags of *who* and *which*."""

MODIFIERS = frozenset({"amod", "compound", "nmod"})
"""How a word hangs on the noun that it specifies."""

POSTS = word_set("post role position office title rank job work career name status dignity")
"""Nouns that say nothing but that what follows is what somebody is."""

POINTERS = word_set("there here where its his her their")
"""Words that stand for someone or somewhere named outside their clause, beside pronouns."""


class _Clause(NamedTuple):
    """A clause with its own subject.

    Attributes:
        named: The subject is a name, and nothing points to another clause.
        subjects: Where its subject stands with all that is said of it, if that is a name; empty
            where it is *he* or *she*, None for any other subject.
        names: Where the names of that subject stand, not those that it is told with.
        words: Folded words of the clause, those of clauses inside it left out.
        related: The noun, where its subject is somebody's *mother* or *teacher*.
        noun: Where that stands.
        bearer: Folded names of that person, as in *her father (was) William Godwin*.
    """

    named: bool
    words: frozenset[str]
    subjects: tuple[Span, ...] | None = None
    names: tuple[Span, ...] = ()
    related: str | None = None
    noun: Span | None = None
    bearer: frozenset[str] = frozenset()


def in_clause(doc: Doc, matches: Sequence[Match], topic: str | None = None) -> list[Match]:
    """Take values from triples that their clause does not speak of.

    Args:
        doc: The parsed answer.
        matches: The triples found in one of its sentences.
        topic: Label of the entity that *he* or *she* stands for there.

    Returns:
        The matches in the same order. One of which every value stands in a clause that names
        another subject, and does not name the triple's, is ``foreign``, and so is one without a
        value of which every word for its property stands in such a clause; one of which every
        value is denied or left open, or governed by a verb of another relation, is ``other``.
    """
    clauses = _Clauses(topic)
    return [_placed(doc, match, clauses) for match in matches]


def _placed(doc: Doc, match: Match, clauses: _Clauses) -> Match:
    if match.subject not in ("explicit", "antecedent", "open"):
        return match
    words = tuple(
        span
        for span in match.cue_spans
        if (root := _root(doc, span)) is None
        or not (of_another(root, match) or _done_by_another(root, match))
    )
    needed = not match.value_spans or needs_word(match.triple.property)
    if match.cue_spans and not words and needed:
        return match.told_of("foreign")
    match = match._replace(cue_spans=words)
    if not match.value_spans:
        return _placed_by_words(doc, match, clauses)
    own: list[Span] = []
    denied_spans: list[Span] = []
    told_of_another = False
    for span in match.value_spans:
        token = _root(doc, span)
        if token is None:
            own.append(span)
        elif _speaks_of_another(doc, clauses, match, token):
            told_of_another = True
        elif not (governed_otherwise(token, match) or _specifies(token, match)):
            told = stance(token, match.triple.property)
            if told is Stance.STATED:
                own.append(span)
            elif told is Stance.DENIED:
                denied_spans.append(span)
    if len(own) == len(match.value_spans):
        return match
    if own:
        return match._replace(value_spans=tuple(own))
    if told_of_another:
        return match.told_of("foreign")
    held = match.subject != "open" and match.value_share >= 1.0 and not match.finer
    return match.told_of("other", denied=tuple(denied_spans) if held else ())


def _placed_by_words(doc: Doc, match: Match, clauses: _Clauses) -> Match:
    """Place a match without a value by the clauses that the words for its property stand in."""
    own: list[Span] = []
    stated = False
    for span in match.cue_spans:
        root = _root(doc, span)
        if root is None or not _of_relation(doc, clauses.around(root), match):
            own.append(span)
            label = match.triple.property
            stated = stated or root is None or stance(root, label) is Stance.STATED
    if match.cue_spans and not own:
        return match._replace(subject="foreign")
    if own and not stated:
        return match.told_of("other")
    return match._replace(cue_spans=tuple(own))


def _root(doc: Doc, span: Span) -> ParsedToken | None:
    found = doc.char_span(span[0], span[1], alignment_mode="expand")
    return None if found is None or not len(found) else found.root


class _Clauses:
    """The clauses of a sentence, each looked at once.

    Args:
        topic: Label of the entity that *he* or *she* stands for.
    """

    def __init__(self, topic: str | None) -> None:
        self.topic = topic
        self._found: dict[int, _Clause] = {}

    def around(self, token: ParsedToken) -> _Clause | None:
        """The innermost clause with its own subject that a token stands in."""
        head = _clause_head(token)
        if head is None:
            return None
        if head.i not in self._found:
            self._found[head.i] = self._read(head)
        return self._found[head.i]

    def _read(self, head: ParsedToken) -> _Clause:
        subjects = [child for child in head.children if child.dep_ in SUBJECTS]
        parts = [
            part
            for part in head.subtree
            if (near := _clause_head(part)) is not None and near.i == head.i
        ]
        proper = any(one.pos_ == "PROPN" for one in subjects)
        named = proper and not any(part.pos_ == "PRON" or part.lower_ in POINTERS for part in parts)
        places: tuple[Span, ...] | None = None
        if proper:
            places = tuple((one.left_edge.idx, _end(one.right_edge)) for one in subjects)
        elif self.topic and all(one.lower_ in PERSONAL for one in subjects):
            places = ()
        names = tuple((one.idx, _end(one)) for subject in subjects for one in _parts(subject))
        words = {one.folded for part in parts for one in tokenise(part.text)}
        return _Clause(named, frozenset(words), places, names, *_related(head, subjects))


def _parts(subject: ParsedToken) -> Iterator[ParsedToken]:
    """Yield the words of a subject's names: of *Anna, wife of Bruno* those of Anna."""
    waiting = [subject]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += [child for child in one.children if child.dep_ not in SAID]


def _related(
    head: ParsedToken, subjects: Sequence[ParsedToken]
) -> tuple[str | None, Span | None, frozenset[str]]:
    """The noun by which a clause's subject is somebody's relation, and who that is."""
    told = [
        part
        for child in head.children
        if child.dep_ == "attr" and child.pos_ == "PROPN"
        for part in (child, *child.children)
    ]
    for subject in subjects:
        for noun in subject.subtree:
            owners = [child for child in noun.children if child.dep_ == "poss"]
            if not owners or not is_related(noun.lower_):
                continue
            inside = {part.i for owner in owners for part in owner.subtree}
            bearer = (
                one.folded
                for part in (*subject.subtree, *told)
                if part.pos_ == "PROPN" and part.i not in inside
                for one in tokenise(part.text)
            )
            return noun.lower_, (noun.idx, _end(noun)), frozenset(bearer)
    return None, None, frozenset()


def _clause_head(token: ParsedToken) -> ParsedToken | None:
    """The word that the subject of a token's clause hangs on; relative clauses are part of it."""
    for one in (token, *token.ancestors):
        if one.dep_ != "relcl" and any(child.dep_ in SUBJECTS for child in one.children):
            return one
    return None


def _speaks_of_another(doc: Doc, clauses: _Clauses, match: Match, value: ParsedToken) -> bool:
    """Whether a clause is about a relation, or a name, that is not the subject of the triple.

    What is told of persons one at a time is told of the clause's own subject, or of the name that
    the value hangs on or that hangs on it. Other facts may be told of any name in the clause.
    """
    clause = clauses.around(value)
    if _of_relation(doc, clause, match):
        return True
    if match.subject == "open":
        return False
    triple = match.triple
    personal = is_personal(triple.property) and not match.inverse
    if personal and _hangs_on_another(value, match):
        return True
    if clause is None:
        return False
    if clause.named:
        names = _names(doc, match)
        short = "".join(name[0] for name in fold(triple.subject).split() if name[:1].isalnum())
        if not clause.words & (names | {short}):
            return True
    if clause.subjects is None or not personal:
        return False
    if any(start <= value.idx < end for start, end in clause.subjects):
        return False
    if clause.subjects:
        own = any(
            start < last and first < end
            for start, end in clause.names
            for first, last in match.subject_spans
        )
    else:
        own = triple.subject == clauses.topic
    if own or _leads(doc, value, match.subject_spans, clause.subjects):
        return False
    titled = [value, *value.ancestors, *(one for one in value.children if one.dep_ == "appos")]
    return not any(start <= one.idx < end for one in titled for start, end in match.subject_spans)


def _hangs_on_another(value: ParsedToken, match: Match) -> bool:
    """Whether a value stands beside another name than the clause's subject: *Orazio, a painter*."""
    below = value
    for one in value.ancestors:
        if one.lower_ in LIFE and of_another(one, match):
            return True
        beside = below.dep_ in BESIDE or (
            below.dep_ in MODIFIERS and describes_entity(match.triple.property)
        )
        if beside and one.pos_ == "PROPN" and one.dep_ != "attr":
            return not any(start <= one.idx < end for start, end in match.subject_spans)
        if one.pos_ in ("VERB", "AUX") and one.dep_ not in ("relcl", "acl"):
            return False
        below = one
    return False


def _leads(
    doc: Doc, value: ParsedToken, subject_spans: Sequence[Span], told_of: Sequence[Span]
) -> bool:
    """Whether a name before a value opens a clause that the parser took for part of another.

    So it does with *Orazio* in *she left Rome and Orazio was a painter*; not where the subject
    that the parser found, at ``told_of``, stands after the name.
    """
    for start, end in subject_spans:
        name = doc.char_span(start, end, alignment_mode="expand")
        if (
            name is None
            or name.end >= value.i
            or any(end <= first < value.idx for first, _ in told_of)
            or (name.start and doc[name.start - 1].pos_ == "ADP")
        ):
            continue
        after = doc[name.end]
        if after.text == "," and after.i + 1 < value.i and doc[after.i + 1].tag_ == "VBN":
            return True
        if after.pos_ in ("AUX", "VERB"):
            return True
    return False


def _specifies(value: ParsedToken, match: Match) -> bool:
    """Whether what somebody is called only specifies another noun: *human anatomy*.

    Nobody is what they are a member of; a *post of governor* is one.
    """
    if not is_role(match.triple.property):
        return False
    if value.dep_ in MODIFIERS:
        return bool(value.head.pos_ == "NOUN")
    if value.dep_ != "pobj" or value.head.lower_ != "of":
        return False
    noun = value.head.head
    if noun.pos_ not in ("NOUN", "PROPN"):
        return False  # *the last of the Pharaohs* was one
    return noun.lower_ not in POSTS and stem(fold(noun.text)) not in cues(match.triple.property)


def _end(token: ParsedToken) -> int:
    return token.idx + len(token.text)


def _of_relation(doc: Doc, clause: _Clause | None, match: Match) -> bool:
    """Whether a clause's subject is a relation of somebody, and the triple tells neither who that
    is nor anything about them.
    """
    if clause is None or clause.related is None or ties(match.triple.property, clause.related):
        return False
    if clause.noun in match.subject_spans:
        return False  # *her father* is known to be the triple's subject
    return not clause.bearer or not clause.bearer <= _names(doc, match)


def _done_by_another(word: ParsedToken, match: Match) -> bool:
    """Whether a property's word has another subject: *her father, who died*, *Bruno was born*."""
    label = match.triple.property
    if not (is_personal(label) or (is_tie(label) and not match.value_spans)):
        return False
    for one in (word, *word.ancestors):
        for subject in (child for child in one.children if child.dep_ in SUBJECTS):
            who = one.head if subject.tag_ in RELATIVE else subject
            owned = any(child.dep_ == "poss" for child in who.children)
            named = [who, *(child for child in who.children if child.dep_ != "poss")]
            spans = match.subject_spans
            if any(start <= part.idx < end for part in named for start, end in spans):
                return False
            related = is_related(who.lower_)
            if subject.tag_ in RELATIVE and who.dep_ != "attr":
                return related or who.pos_ == "PROPN"  # a pronoun before stands for neither
            return (owned and related) or (bool(spans) and who.pos_ == "PROPN")
    return False


def _names(doc: Doc, match: Match) -> set[str]:
    """Folded words of the names of a triple's subject."""
    names = {one.folded for one in tokenise(match.triple.subject)} - STOP_WORDS
    for start, end in match.subject_spans:  # another name of it may stand there
        name = doc.char_span(start, end, alignment_mode="expand")
        names |= {one.folded for one in tokenise(name.text)} if name is not None else set()
    return names
