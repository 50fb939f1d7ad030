"""Bare answers: *Yes.* and *No, it is not.* as the proposition that the question asks."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.sentences import split_sentences
from guardrail.core.text.tagging import parse
from guardrail.core.text.words import fold, plain, tokenise

__all__ = ["Proposition", "proposition_of"]

SUBJECTS = frozenset({"nsubj", "nsubjpass", "expl", "csubj"})
AUXILIARIES = frozenset({"MD", "VBD", "VBP", "VBZ", "VB"})
TO_JUDGE = re.compile(r"\s*(?:true or false|yes or no|is it true that)\b[\s:,]*", re.IGNORECASE)
"""What opens a question whose proposition is already a sentence."""

MOST_WORDS = 6
"""Most words of a bare answer: *No, it does not.*."""


class Proposition(NamedTuple):
    """What a bare answer asserts or denies.

    Attributes:
        text: The proposition, as a sentence.
        denied: True if the answer denies it.
    """

    text: str
    denied: bool


def proposition_of(answer: str, question: str, names: Collection[str] = ()) -> Proposition | None:
    """The proposition of a polar question that a bare *yes* or *no* answers.

    Args:
        answer: A sentence of an answer.
        question: The question, which may follow other sentences.
        names: Names of the subjects of the evidence.

    Returns:
        None if the answer says more than yes or no, or if the question is no polar question.
    """
    denied = _denies(answer)
    if denied is None or not question.strip():
        return None
    asked = split_sentences(plain(question))
    text = next((item.text for item in reversed(asked) if item.text.endswith("?")), asked[-1].text)
    opener = TO_JUDGE.match(plain(question))
    stated = plain(question)[opener.end() :].rstrip(" ?.") if opener else _declared(text, names)
    return Proposition(f"{stated[0].upper()}{stated[1:]}.", denied) if stated else None


def _denies(answer: str) -> bool | None:
    """Whether a bare answer is a no; None of what says more."""
    tokens = tokenise(plain(answer))
    if not tokens or len(tokens) > MOST_WORDS:
        return None
    answers = lexicon("function_words")["answers"]
    first, *rest = [token.folded for token in tokens]
    light = lexicon_set("function_words", "third_persons") | lexicon_set("grammar", "echoes")
    negations = lexicon_set("function_words", "negations")
    if any(word not in light and word not in negations for word in rest):
        return None
    if first in answers["no"]:
        return True
    return False if first in answers["yes"] and not negations.intersection(rest) else None


def _declared(question: str, names: Collection[str]) -> str | None:
    """A polar question as a statement: *Is it red?* → *it is red*; None of any other question."""
    [doc] = parse([question.strip()])
    words = [token for token in doc if not token.is_space]
    if not words or fold(words[0].text) not in lexicon_set("grammar", "auxiliaries"):
        return None
    first = words[0]
    called = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    named = re.compile(rf"\s+((?:the )?(?:{called}))(?!\w|'s| of )\s+", re.IGNORECASE)
    if called and (match := named.match(doc.text, len(first))):
        return f"{match[1]} {first.text.lower()} {doc.text[match.end() :].rstrip('? ')}"
    verb = first if first.dep_ == "ROOT" else first.head
    subject = next((token for token in verb.children if token.dep_ in SUBJECTS), None)
    if subject is None:
        subject = next((token for token in words[1:] if token.dep_ in SUBJECTS | {"attr"}), None)
    if subject is None or subject.right_edge.i + 1 >= len(doc) or subject.left_edge.i < 1:
        return None
    end = subject.right_edge.idx + len(subject.right_edge)
    name = doc.text[first.idx + len(first) : end].strip()
    rest = doc.text[end:].strip().rstrip("?").strip()
    return f"{name} {first.text.lower()} {rest}" if name and rest else None
