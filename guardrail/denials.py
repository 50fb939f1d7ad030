"""Whether a sentence states, denies or leaves open what it says: *never married*, *denied being*.

The words above a value are read from the parse: a negation of its own predicate, and every clause
that the predicate is embedded in, as in *It is false that she was born in London*. Two denials
cancel each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from guardrail.qualifiers import is_mock, is_set_aside
from guardrail.syntax import COMPLEMENTS, SUBJECTS
from guardrail.text.values import fold, stem, word_set
from guardrail.vocabulary import cues, describes_entity, inverse_cues, is_personal, is_tie

if TYPE_CHECKING:
    from spacy.tokens import Token as ParsedToken

__all__ = ["BUT", "COORDINATED", "Stance", "stance", "stance_above"]

BUT = word_set("only just merely simply until till")
"""Words with which a negation denies nothing: *not only a painter*, *did not die until 1654*."""

NOBODY = word_set("nobody none nothing neither no")
"""Subjects, and words before a subject, that deny what is said of it."""

CONTRASTING = word_set(", ; ( – — and but")
"""What stands before a *not* that denies a name alone: *is Paris, not Berlin*."""

COORDINATED = word_set("neither nor")

EMBEDDED = frozenset({"ccomp", "xcomp", "acl", "pcomp", "csubj", "csubjpass", "advcl"})
"""How a clause hangs on what governs it."""

DISTANT = word_set("far away")
"""What is *not far from* a place is near it."""

DENYING = word_set(
    "disprove disproves disproved disproving debunk debunks debunked false untrue wrong incorrect "
    "inaccurate mistaken erroneous contrary fabricated unfounded baseless myth lie falsehood "
    "misconception fallacy hoax fiction falsely wrongly mistakenly erroneously incorrectly"
)
"""Words that deny the clause that they govern."""

DISPUTING = word_set(
    "deny denies denied denying refute refutes refuted refuting reject rejects rejected rejecting "
    "dispute disputes disputed contradict contradicts contradicted"
)
"""Verbs of who denies something, which the sentence itself leaves open."""

FAILING = word_set("fail fails failed refuse refuses refused decline declines declined")
"""Verbs of what was not done then, though it may be later; *failed to mention that* tells it."""

WISHING = word_set(
    "want wants wanted wish wishes wished hope hopes hoped dream dreams dreamed dreamt aspire "
    "aspires aspired"
)
"""Verbs of what somebody would have, or be, which leaves open whether they ever did."""

PROPOSING = word_set("nominated considered shortlisted mistaken mistook rejected")
"""Verbs of what somebody is not by being it said *for* them: *was mistaken for a painter*."""

ALMOST = word_set("almost nearly")

DOUBTING = word_set(
    "unclear uncertain unknown doubtful questionable debatable unproven unconfirmed unlikely doubt "
    "doubts doubted question questions questioned"
)
"""Words that leave the clause open that they govern."""

TRUTH = word_set("true correct accurate right case fact")
"""Predicates of which the negation denies the clause."""

OPINION = word_set(
    "believe believes believed think thinks thought say says said claim claims claimed suppose "
    "supposed assume assumed suggest suggests suggested mean means imply implies prove proves "
    "proved proven confirm confirmed verify verified show shows shown indicate establish "
    "established evidence proof record indication sign"
)
"""Words whose negation leaves open what is told; that *nobody knew* it makes it no less so."""

CONDITIONS = word_set("if unless")
"""What leaves a fact about a person open; *if you look for a pub, try the Anchor* tells of one."""

CERTAINTIES = word_set("doubt doubts doubted question questions questioned")
"""Words that make sure of a clause where they are denied: *no doubt*, *nobody questions that*."""


class Stance(StrEnum):
    """How a sentence stands to what a phrase of it says."""

    STATED = "stated"
    DENIED = "denied"
    OPEN = "open"


def stance(token: ParsedToken, label: str) -> Stance:
    """How a sentence stands to a property told by a word.

    Args:
        token: The value's head word, or a word for the property.
        label: The property.

    Returns:
        Whether the words above the token state the property, deny it, as in *not born in London*,
        or leave it open, as in *whether she was born in London*. *Not in Paris* in another phrase
        denies nothing, nor does *did not know his father Orazio* that he was the father.
    """
    if describes_entity(label) and is_mock(token):
        return Stance.OPEN
    return stance_above(token, label, denied=_negated(token, label))


def stance_above(token: ParsedToken, label: str, *, denied: bool) -> Stance:
    """What the clauses round a word make of a property that its own clause states or denies.

    Args:
        token: The value's head word, or a word for the property.
        label: The property.
        denied: Whether the word's own clause denies it.
    """
    personal = is_personal(label) or is_tie(label)
    predicate = _predicate(token)
    if predicate is None:
        return Stance.DENIED if denied else Stance.STATED
    if _undone(token, predicate, label):
        return Stance.OPEN
    for clause, governors in _governors(predicate):
        marks = {child.lower_ for child in clause.children if child.dep_ == "mark"}
        if "whether" in marks or (personal and not marks.isdisjoint(CONDITIONS)):
            return Stance.OPEN
        told = _governed(governors)
        if told is Stance.OPEN:
            return Stance.OPEN
        own = clause.i == predicate.i  # what it governs further down is only told of
        if own and governors[0].lower_ in FAILING:
            return Stance.OPEN
        if own and clause.dep_ in ("xcomp", "pcomp") and _wished(governors):
            return Stance.OPEN
        denied ^= told is Stance.DENIED or (own and governors[0].lower_ == "without")
    return Stance.DENIED if denied else Stance.STATED


def _predicate(token: ParsedToken) -> ParsedToken | None:
    """The verb, or whatever else has a subject, that a token's innermost clause hangs on."""
    for one in (token, *token.ancestors):
        if one.pos_ in ("VERB", "AUX") or any(child.dep_ in SUBJECTS for child in one.children):
            return one
    return None


def _undone(token: ParsedToken, predicate: ParsedToken, label: str) -> bool:
    """Whether a value's own verb leaves open what it says: *declined the prize*, *almost died*."""
    if any(
        child.lower_ in ALMOST and child.dep_ == "advmod" and child.i < predicate.i
        for child in predicate.children
    ):
        return True
    for one in (token, *token.ancestors):
        if one.i == predicate.i:
            break
        verb = one.head.lower_
        if stem(fold(verb)) in cues(label):
            break  # *nominated for* is a property too
        if one.dep_ == "prep" and one.lower_ == "for" and verb in PROPOSING:
            return True
        if one.dep_ == "dobj" and verb in FAILING | WISHING:
            return True
    return False


def _wished(governors: Sequence[ParsedToken]) -> bool:
    """Whether the verb of what somebody would do or be governs a clause: *dreamt of being born*."""
    verb = next((one for one in governors if one.pos_ != "ADP"), governors[0])
    return verb.lower_ in WISHING


def _negated(token: ParsedToken, label: str) -> bool:
    """Whether a token's own predicate, or the phrase it stands in, is negated.

    The word negated must be one for the property, or a form of *be* that ties the value or such a
    word to its subject. Of others than persons whatever a negated verb governs is denied, but not
    its subject: *the hotel in Lisbon does not allow pets*.
    """
    words = cues(label) | inverse_cues(label)
    personal = is_personal(label) or is_tie(label)
    first = token.left_edge.i
    if token.pos_ == "PROPN" and first and token.doc[first - 1].lower_ == "not":
        contrast = first > 1 and token.doc[first - 2].lower_ in CONTRASTING
        if personal or contrast:
            return True  # born in Pisa, *not Rome*
    if is_set_aside(token):
        return True
    path: list[ParsedToken] = []
    for one in (token, *token.ancestors):
        path.append(one)
        if _contrasted(one):
            return False
        no = _negation(one)
        if no is None and personal and _coordinated(one):
            return True
        if no is not None:
            told = {part.lower_ for part in (*path, *no.doc[no.i + 1 : no.i + 2])}
            if not BUT.isdisjoint(told):
                return False
            if one.pos_ == "ADP" and one.i == no.i + 1:
                return True  # born in Pisa, *not in Rome*
            if not personal:
                return no.i < token.i and _governs_denied(one, path, no)
            verb = stem(fold(one.text)) in words
            return verb or (one.pos_ == "AUX" and (no.i < token.i or _worded(one, words)))
        if one.pos_ in ("VERB", "AUX"):
            return False
    return False


def _governs_denied(verb: ParsedToken, path: Sequence[ParsedToken], no: ParsedToken) -> bool:
    """Whether a negated verb denies what stands below it, and not only something else there.

    A *not family-friendly pub by the river* is a pub by the river, and a place that *does not have
    a pool in Lisbon* may be there.

    Args:
        verb: What is negated.
        path: The words from the value up to it.
        no: The negation.
    """
    if verb.pos_ not in ("VERB", "AUX") or any(
        part.dep_ in SUBJECTS or part.lower_ in DISTANT for part in path
    ):
        return False
    told = {part.i for part in path}
    for part in path:
        if any(child.dep_ == "amod" and child.i not in told for child in part.children):
            return False
        if part.dep_ == "acomp" and part.i != path[0].i and path[0].dep_ == "pobj":
            return False
    return not any(
        child.dep_ in COMPLEMENTS | {"dobj"} and child.i not in told and no.i < child.i < path[0].i
        for child in verb.children
    )


def _negation(one: ParsedToken) -> ParsedToken | None:
    """The word that negates a predicate or phrase: *not*, or a subject such as *nobody*."""
    for child in one.children:
        if child.dep_ == "neg":
            return child
        if child.dep_ in SUBJECTS:
            parts = (child, *(part for part in child.children if part.i < child.i))
            no = next((part for part in parts if part.lower_ in NOBODY), None)
            if no is not None:
                return no
    return None


def _coordinated(one: ParsedToken) -> bool:
    """Whether a word stands in *neither … nor …*."""
    if any(child.lower_ == "neither" and child.i < one.i for child in one.children):
        return True
    return one.dep_ == "conj" and any(
        child.lower_ in COORDINATED and child.i < one.i for child in one.head.children
    )


def _contrasted(one: ParsedToken) -> bool:
    """Whether a phrase is set against a denied one: *not in Rome but in Pisa*."""
    return (
        one.dep_ == "conj"
        and one.pos_ not in ("VERB", "AUX")
        and any(child.lower_ == "but" and child.i < one.i for child in one.head.children)
    )


def _worded(copula: ParsedToken, words: frozenset[str]) -> bool:
    """Whether a form of *be* calls its subject by a word for the property."""
    return any(
        child.dep_ in COMPLEMENTS and stem(fold(child.text)) in words for child in copula.children
    )


def _governors(predicate: ParsedToken) -> Iterator[tuple[ParsedToken, list[ParsedToken]]]:
    """Yield each clause round a predicate with what governs it, up to the next verb."""
    clause = predicate
    while clause.dep_ in EMBEDDED or (clause.dep_ == "conj" and clause.head.i != clause.i):
        governor = clause.head
        if clause.dep_ == "conj":
            clause = governor
            continue
        told = any(child.dep_ in SUBJECTS or child.dep_ == "mark" for child in clause.children)
        if clause.dep_ == "acl" and clause.tag_ in ("VBN", "VBG") and not told:
            return  # *the writer born in London*: what is said of her is another matter
        governors = [governor]
        while governor.pos_ not in ("VERB", "AUX") and governor.head.i != governor.i:
            if governor.dep_ in ("relcl", "appos"):
                break
            governor = governor.head
            governors.append(governor)
        yield clause, governors
        clause = governor


def _governed(governors: Sequence[ParsedToken]) -> Stance:
    """What the words above a clause make of it: *the claim that … is wrong*."""
    words = {
        child.lower_
        for one in governors
        for child in (one, *one.children)
        if child is one or child.dep_ in COMPLEMENTS | {"advmod", "amod"}
    }
    denied = any(map(_negation, governors)) or any(
        part.dep_ == "det" and part.lower_ == "no"
        for one in governors
        for noun in (one, *(child for child in one.children if child.dep_ in COMPLEMENTS))
        for part in noun.children
    )
    if not words.isdisjoint(DENYING):
        return Stance.STATED if denied else Stance.DENIED
    if not words.isdisjoint(DISPUTING):
        return Stance.STATED if denied else Stance.OPEN
    if not words.isdisjoint(DOUBTING):
        sure = denied and not words.isdisjoint(CERTAINTIES)
        return Stance.STATED if sure else Stance.OPEN
    if denied and not words.isdisjoint(TRUTH):
        return Stance.DENIED
    return Stance.OPEN if denied and not words.isdisjoint(OPINION) else Stance.STATED
