"""Who and what a value is told of: the subject of its clause and the verb that governs it.

A value that stands in a sentence supports a triple only where the clause it stands in speaks of
the triple's subject, and not where a verb of another relation governs it: who was born in London
need not have lived there. A clause about *her mother* speaks of somebody else than her, and where
she was born as *a daughter of Orazio* is not where he was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from guardrail.bearers import is_of_whose, is_titled_otherwise, of_other_gender
from guardrail.clause_subjects import Clause, Clauses
from guardrail.coreference import Subject
from guardrail.degrees import attribute_of, is_opposite
from guardrail.denials import Stance, stance
from guardrail.governors import LIFE, governed_otherwise, of_another
from guardrail.matching import Match
from guardrail.naming import Span
from guardrail.objects import POSTS
from guardrail.syntax import MODIFIERS, RELATIVE, SUBJECTS
from guardrail.text.values import fold, stem, tokenise
from guardrail.truths import is_denied, told_truth, truth_value
from guardrail.types import Triple
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

BESIDE = frozenset({"appos", "relcl", "acl"})
"""How what is said of a name hangs on it."""


def in_clause(doc: Doc, sentence: Span, matches: Sequence[Match], about: Subject) -> list[Match]:
    """Take values from triples that their clause does not speak of.

    Args:
        doc: The parsed answer.
        sentence: Offsets of one of its sentences.
        matches: The triples found in it.
        about: Who that sentence is about.

    Returns:
        The matches in the same order. One of which every value stands in a clause that names
        another subject, and does not name the triple's, is ``foreign``, and so is one without a
        value of which every word for its property stands in such a clause; one of which every
        value is denied or left open, or governed by a verb of another relation, is ``other``, and
        so is a tie told by a noun for the other gender.
    """
    if not matches:
        return []
    words = doc.char_span(*sentence, alignment_mode="expand")
    clauses = Clauses(about, [] if words is None else list(words))
    return [
        match.told_of("other")
        if of_other_gender(doc, match, about.sexes)
        else _placed(doc, match, clauses)
        for match in matches
    ]


def _placed(doc: Doc, match: Match, clauses: Clauses) -> Match:
    if match.subject not in ("explicit", "antecedent", "open"):
        return match
    known: tuple[dict[int, bool | None], ...] = ({}, {})
    words = tuple(
        span
        for span in match.cue_spans
        if (root := _root(doc, span)) is None
        or not (of_another(root, match) or _done_by_another(root, match, clauses, known))
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
    opposed = _has_opposite(match.triple)
    for span in match.value_spans:
        token = _root(doc, span)
        if token is None:
            own.append(span)
        elif _speaks_of_another(doc, clauses, match, token):
            told_of_another = True
        elif not (governed_otherwise(token, match) or _specifies(token, match)):
            told = _told(token, match.triple)
            if told is Stance.STATED:
                own.append(span)
            elif told is Stance.DENIED:
                denied_spans.append(span)
    if len(own) == len(match.value_spans):
        return match
    if own and not (opposed and denied_spans):
        return match._replace(value_spans=tuple(own))
    if own:
        return match.told_of("other")
    if told_of_another:
        return match.told_of("foreign")
    held = match.subject != "open" and match.value_share >= 1.0 and not match.finer
    return match.told_of("other", denied=tuple(denied_spans) if held else ())


def _has_opposite(triple: Triple) -> bool:
    """Whether other words tell the opposite of a value: of *yes*, and of a high rating."""
    return truth_value(triple.value) is not None or attribute_of(triple.property) is not None


def _told(word: ParsedToken, triple: Triple) -> Stance:
    """How a sentence stands to a triple, told by a word for its value or its opposite."""
    if truth_value(triple.value) is not None:
        return told_truth(word, triple)
    told = stance(word, triple.property)
    if attribute_of(triple.property) is None:
        return told
    if is_opposite(word.lower_, triple):
        return Stance.DENIED if told is Stance.STATED and not is_denied(word) else Stance.OPEN
    return told if told is Stance.STATED else Stance.OPEN  # *not low* need not be high


def _placed_by_words(doc: Doc, match: Match, clauses: Clauses) -> Match:
    """Place a match without a value by the clauses that the words for its property stand in."""
    own: list[Span] = []
    stated = False
    for span in match.cue_spans:
        root = _root(doc, span)
        clause = None if root is None else clauses.around(root)
        him = clause is not None and clause.subjects == () and match.subject == "explicit"
        unfit = him and clauses.excludes(match.triple.subject)
        if root is None or not (unfit or _of_relation(doc, clause, match)):
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


def _speaks_of_another(doc: Doc, clauses: Clauses, match: Match, value: ParsedToken) -> bool:
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
    if personal and (_hangs_on_another(value, match) or is_of_whose(value, match)):
        return True
    if _has_opposite(triple) and _specifies_another(value, match):
        return True
    if personal and is_role(triple.property) and is_titled_otherwise(value, match):
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
        own = clauses.may_mean(triple.subject)
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


def _specifies_another(value: ParsedToken, match: Match) -> bool:
    """Whether a word stands before another name: *near the highly rated Eagle*."""
    below = value
    for one in value.ancestors:
        if below.dep_ not in (*MODIFIERS, "advmod", "npadvmod"):
            return False
        if one.pos_ == "PROPN":
            return not any(start <= one.idx < end for start, end in match.subject_spans)
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
    if value.dep_ == "poss":
        return True  # *a physicist's wife*
    if value.dep_ != "pobj" or value.head.lower_ != "of":
        return False
    noun = value.head.head
    if noun.pos_ not in ("NOUN", "PROPN"):
        return False  # *the last of the Pharaohs* was one
    return noun.lower_ not in POSTS and stem(fold(noun.text)) not in cues(match.triple.property)


def _of_relation(doc: Doc, clause: Clause | None, match: Match) -> bool:
    """Whether a clause's subject is a relation of somebody, and the triple tells neither who that
    is nor anything about them.
    """
    if clause is None or clause.related is None or ties(match.triple.property, clause.related):
        return False
    if clause.noun in match.subject_spans:
        return False  # *her father* is known to be the triple's subject
    return not clause.bearer or not clause.bearer <= _names(doc, match)


def _done_by_another(
    word: ParsedToken, match: Match, clauses: Clauses, known: Sequence[dict[int, bool | None]]
) -> bool:
    """Whether a property's word has another subject: *her father, who died*, *Bruno was born*.

    Args:
        word: A word for the property.
        match: How the triple stands in the sentence.
        clauses: The clauses of that sentence.
        known: What was found for words above verbs, and above nouns, by their places.
    """
    label = match.triple.property
    if not (is_personal(label) or (is_tie(label) and not match.value_spans)):
        return False
    noun = word.pos_ == "NOUN"  # *grew up in Rome, the city of her birth*
    other = clauses.above(word, known[noun], lambda one: _of_other_subject(one, match, noun=noun))
    return bool(other)


def _of_other_subject(one: ParsedToken, match: Match, *, noun: bool) -> bool | None:
    """Whether what hangs on a word has another subject; None where the word has no subject."""
    label = match.triple.property
    spans = match.subject_spans
    for subject in (child for child in one.children if child.dep_ in SUBJECTS):
        who = one.head if subject.tag_ in RELATIVE else subject
        owned = any(child.dep_ == "poss" for child in who.children)
        named = [who, *(child for child in who.children if child.dep_ != "poss")]
        if any(start <= part.idx < end for part in named for start, end in spans):
            return False
        related = is_related(who.lower_)
        if subject.tag_ in RELATIVE and who.dep_ != "attr":
            return related or who.pos_ == "PROPN"  # a pronoun before stands for neither
        other = owned and related and not ties(label, who.lower_)
        return other or (bool(spans) and who.pos_ == "PROPN")
    name = one.head
    if noun or one.dep_ not in BESIDE or name.pos_ != "PROPN":
        return None
    named = [name, *name.children]  # *married Otto, a painter born in Ulm*
    return not any(start <= part.idx < end for part in named for start, end in spans)


def _names(doc: Doc, match: Match) -> set[str]:
    """Folded words of the names of a triple's subject."""
    names = {one.folded for one in tokenise(match.triple.subject)} - STOP_WORDS
    for start, end in match.subject_spans:  # another name of it may stand there
        name = doc.char_span(start, end, alignment_mode="expand")
        names |= {one.folded for one in tokenise(name.text)} if name is not None else set()
    return names
