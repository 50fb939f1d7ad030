"""Who a sentence is about: pronouns and unnamed subjects traced to an entity of the evidence.

Biographies name their subject once and go on with "she" and "his". The tracing is cheap and
visible: the last entity named as a sentence's subject, checked against the gender that the
evidence tells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from guardrail.naming import NO_NAMES, SentenceTokens, named_in
from guardrail.sentences import Stretch
from guardrail.types import Triple
from guardrail.values import fold
from guardrail.vocabulary import STOP_WORDS, property_words

if TYPE_CHECKING:
    from spacy.tokens import Doc

__all__ = ["Subject", "genders", "subjects_of"]

PRONOUN = re.compile(
    r"\b(?P<subject>he|she|it|they|him|them)\b|\b(?P<possessive>his|its|their)\b|\b(?P<her>her)\b"
    r"(?=\s+(?P<next>[\w'’-]+))?",
    re.IGNORECASE,
)
GENDER = {"he": "male", "him": "male", "his": "male", "she": "female", "her": "female"}


class Subject(NamedTuple):
    """Who a sentence is about.

    Attributes:
        topic: Label of the entity that pronouns and an unnamed subject stand for.
        resolved: The sentence with its first pronoun replaced by that label.
        foreign: True where the sentence's subject is a name that the evidence does not know.
        pronoun: True where *he* or *she*, or *his* or *her*, stands for the topic.
    """

    topic: str | None
    resolved: str
    foreign: bool
    pronoun: bool = False


def genders(triples: Sequence[Triple]) -> dict[str, str]:
    """The gender that the evidence tells of each subject, ``male`` or ``female``."""
    return {
        triple.subject: triple.value.lower()
        for triple in triples
        if property_words(triple.property) in ("sex or gender", "gender")
    }


def subjects_of(
    doc: Doc,
    stretches: Sequence[Stretch],
    tokens: Sequence[SentenceTokens],
    *,
    subjects: Sequence[str],
    known_words: frozenset[str],
    sexes: Mapping[str, str],
    asked: str | None,
    names: Mapping[str, tuple[str, ...]] = NO_NAMES,
    values: frozenset[str] = frozenset(),
) -> list[Subject]:
    """Trace the subject of each sentence of an answer.

    Args:
        doc: The parsed answer.
        stretches: Its n sentences.
        tokens: The same, tokenised.
        subjects: Labels of the entities that the evidence is about.
        known_words: Folded words of the evidence and the question.
        sexes: Gender by label.
        asked: The entity that the question is about, where it is known.
        names: Other names of entities by label.
        values: Folded values of the evidence that are no such labels: a sentence about one of them
            is about somebody else, however much of a name they share.
    """
    main = asked or (subjects[0] if len(subjects) == 1 else None)
    current = main
    told = asked is not None
    traced = []
    for stretch, sentence in zip(stretches, tokens, strict=True):
        named = named_in(sentence, subjects, names)
        pronoun = PRONOUN.search(stretch.text)
        antecedent = current
        sex = GENDER.get(pronoun.group().lower()) if pronoun else None
        if sex and antecedent and sexes.get(antecedent, sex) != sex:
            fitting = [label for label in (main, *subjects) if label and sexes.get(label) == sex]
            antecedent = fitting[0] if fitting else antecedent
        first = min(named, key=lambda label: named[label][0][0], default=None)
        leads = first is not None and (
            pronoun is None or named[first][0][0] - stretch.start < pronoun.start()
        )
        topic = first if leads else antecedent
        foreign = not leads and pronoun is None and _foreign(doc, stretch, known_words, values)
        resolved = _resolve(stretch, pronoun, topic, leads, foreign)
        traced.append(Subject(topic, resolved, foreign, sex is not None and not leads))
        if foreign and not told:
            main = current = None  # the answer began with somebody else
        elif leads or pronoun is not None:
            current = topic
        told = told or leads
        main = main or (None if foreign else topic)
    return traced


def _resolve(
    stretch: Stretch, pronoun: re.Match[str] | None, topic: str | None, leads: bool, foreign: bool
) -> str:
    text = stretch.text
    if topic is None or leads or foreign:
        return text
    if pronoun is None:
        return text if fold(topic) in fold(text) else f"{topic}: {text}"
    following = (pronoun.group("next") or "").lower()
    possessive = pronoun.group("possessive") or (
        pronoun.group("her") and following and following not in STOP_WORDS
    )
    name = f"{topic}'s" if possessive else topic
    return text[: pronoun.start()] + name + text[pronoun.end() :]


def _foreign(
    doc: Doc, stretch: Stretch, known_words: frozenset[str], values: frozenset[str]
) -> bool:
    span = doc.char_span(stretch.start, stretch.end, alignment_mode="contract")
    if span is None:
        return False
    for token in span:
        if token.dep_ in ("nsubj", "nsubjpass") and token.head.dep_ == "ROOT":
            if token.pos_ != "PROPN":
                return False
            name = [part for part in token.subtree if part.pos_ == "PROPN"]
            whole = fold(" ".join(part.text for part in name))
            return whole in values or not any(fold(part.text) in known_words for part in name)
    return False
