"""Tenses, persons and names of an answer, for the structure features (SCK 2.2)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.errors import ConfigError, JudgeError
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.tagging import in_english, load_english, run_pipeline
from guardrail.core.types import Mention

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

__all__ = ["Reading", "read", "reading_of"]

OPENING_CHARS = 1_000
"""Characters in which verbs and pronouns are counted; their shares hardly change beyond."""

MAX_CHARS = 20_000
"""Characters in which names are recognised."""

NOT_NAMES = frozenset({"CARDINAL", "ORDINAL", "PERCENT", "QUANTITY", "TIME"})
"""Entity types of the tagger that are never nodes of a graph."""

_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")


class Reading(NamedTuple):
    """Counts over one text.

    Attributes:
        words: Words of the whole text, without punctuation.
        tenses: Finite verbs of the opening by ``present``, ``past`` and ``future``; imperatives
            are present.
        persons: Personal pronouns of the opening by ``1st``, ``2nd`` and ``3rd``; imperatives
            are 2nd.
        names: Named entities.
        english: False for a text that is long enough to judge and does not read like English.
    """

    words: int
    tenses: Mapping[str, int]
    persons: Mapping[str, int]
    names: tuple[Mention, ...]
    english: bool


def read(texts: Sequence[str]) -> list[Reading]:
    """Read n texts with spaCy's small English pipeline (tagger and entity recogniser).

    Args:
        texts: Plain text or Markdown.

    Raises:
        JudgeError: The English pipeline is not installed.
    """
    try:
        pipeline = load_english("parser", "lemmatizer", "attribute_ruler")
    except ConfigError as error:
        raise JudgeError(str(error)) from None
    docs = run_pipeline(pipeline, [text[:MAX_CHARS] for text in texts])
    return [reading_of(text, doc) for text, doc in zip(texts, docs, strict=True)]


def reading_of(text: str, doc: Doc) -> Reading:
    """Read a text that an English pipeline has parsed.

    Args:
        text: The text.
        doc: The parsed text, or its beginning.
    """
    words = _WORD.findall(text)
    tenses: Counter[str] = Counter()
    persons: Counter[str] = Counter()
    for token in doc:
        if token.idx >= OPENING_CHARS:
            break
        if _imperative(token):
            tenses["present"] += 1
            persons["2nd"] += 1
        elif token.tag_ in ("VBD", "VBZ", "VBP", "MD"):
            tenses[_tense(token)] += 1
        elif token.tag_ in ("PRP", "PRP$"):
            persons[_person(token)] += 1
    return Reading(
        len(words),
        dict(tenses),
        dict(persons),
        tuple(_names(doc)),
        in_english(text),
    )


def _tense(token: Token) -> str:
    if token.tag_ == "VBD":
        return "past"
    return (
        "future"
        if token.tag_ == "MD" and token.lower_ in lexicon_set("function_words", "future")
        else "present"
    )


def _person(token: Token) -> str:
    if token.lower_ in lexicon_set("function_words", "first_persons"):
        return "1st"
    second = token.lower_ in lexicon_set("function_words", "second_persons")
    return "2nd" if second else "3rd"


def _imperative(token: Token) -> bool:
    """True for a bare verb at the start of a sentence or list item."""
    if token.tag_ != "VB":
        return False
    before = token.nbor(-1) if token.i else None
    while before is not None and (before.is_punct or before.like_num) and "\n" not in before.text:
        if before.text in ".!?:":
            return True
        before = before.nbor(-1) if before.i else None
    return before is None or "\n" in before.text


def _names(doc: Doc) -> list[Mention]:
    return [
        Mention(text=span.text, start=span.start_char, end=span.end_char, ner=span.label_)
        for span in doc.ents
        if span.label_ not in NOT_NAMES and any(letter.isalpha() for letter in span.text)
    ]
