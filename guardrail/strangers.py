"""Passages about somebody else: *Tower Bridge was opened in 1932* beside one on another bridge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from guardrail.holding import head_of, main_subject
from guardrail.naming import SentenceTokens
from guardrail.phrases import Phrase, PhraseKind
from guardrail.roles import MODIFIERS, stem_of
from guardrail.syntax import CLAUSAL_SUBJECTS

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Span as ParsedSpan
    from spacy.tokens import Token as ParsedToken

__all__ = ["may_tell_of_another", "named_subject", "tells_it_of_another"]

BEFORE_VERB = 5
"""Words before a verb among which a name may be its subject."""


def named_subject(sentence: ParsedSpan, phrases: Sequence[Phrase]) -> ParsedToken | None:
    """The head of the name that is the subject of a sentence; None where that is no name.

    Args:
        sentence: The sentence in the parsed answer.
        phrases: Its factual phrases.
    """
    for phrase in phrases:
        if phrase.kind is PhraseKind.NAME:
            subject = main_subject(head_of(sentence, (phrase.start, phrase.end)))
            if subject is not None and subject.pos_ == "PROPN":
                return subject
    return None


def may_tell_of_another(subject: ParsedToken, told: SentenceTokens, window: SentenceTokens) -> bool:
    """Whether a window has a name before the subject's verb that the sentence lacks.

    Only then is it worth parsing for ``tells_it_of_another``.
    """
    return any(
        word.text[:1].isupper() and word.stem not in told.by_stem
        for place in window.by_stem.get(stem_of(subject.head), ())
        for word in window.tokens[max(0, place - BEFORE_VERB) : place]
    )


def tells_it_of_another(subject: ParsedToken, window: Doc) -> bool:
    """Whether a window has the verb of a sentence's subject, but only with other names.

    A shorter or longer form of a name is no other name.

    Args:
        subject: The subject of the sentence.
        window: The parsed window.
    """
    does, own = stem_of(subject.head), _name(subject)
    subjects = [one for one in window if one.dep_ in CLAUSAL_SUBJECTS and stem_of(one.head) == does]
    return bool(subjects) and all(
        one.pos_ == "PROPN" and bool(_name(one) - own) and bool(own - _name(one))
        for one in subjects
    )


def _name(head: ParsedToken) -> set[str]:
    """Stems of a name: its head and what specifies it."""
    return {stem_of(one) for one in (head, *head.children) if one == head or one.dep_ in MODIFIERS}
