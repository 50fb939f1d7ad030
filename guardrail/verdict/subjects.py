"""Whom a sentence is about: subjects of the evidence that it names, or that it points back to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.names import find_names, label_in, part_of_name_in
from guardrail.core.text.words import Span, Token, plain, tokenise, within_another

if TYPE_CHECKING:
    from guardrail.evidence.prepared import PreparedEvidence
    from guardrail.verdict.claims import Claim

__all__ = ["named_in", "named_runs", "opening_name", "subjects_of"]


def subjects_of(
    claims: Sequence[Claim],
    evidence: PreparedEvidence,
    asked: str | None,
) -> list[frozenset[str]]:
    """For each sentence of an answer the subjects that it is about.

    A sentence that names none is about those of the sentence before it, initially those that the
    question names; a sentence with a pronoun is about those as well as the ones it names. If
    nobody is named at all, the only subject of the evidence is meant, or an object with its parts.

    Args:
        claims: The sentences, in order.
        evidence: What the answer is held against.
        asked: The subject that the question is about, where it is known.
    """
    labels = evidence.labels
    question = claims[0].question if claims else ""
    others = frozenset(evidence.value_names)
    last = frozenset({asked}) if asked and asked in {*labels, *others} else frozenset[str]()
    last = last or _about(question, tokenise(plain(question)), evidence)
    if not last and labels:
        root = min(labels, key=len)
        last = frozenset(labels if all(item.startswith(root) for item in labels) else ())
    known = last - others
    back = lexicon_set("function_words", "third_persons")
    found: list[frozenset[str]] = []
    for claim in claims:
        here = _about(plain(claim.text), claim.tokens, evidence)
        points = any(token.folded in back for token in claim.tokens[:4])
        if not here or points:
            # Somebody whom the evidence knows only as a value is meant by a pronoun alone.
            here = here | (last if points else last - others or known)
        found.append(here)
        last = here or last
        known = here - others or known
    return found


def opening_name(text: str, tokens: Sequence[Token]) -> Span | None:
    """The name that a sentence opens with, as its subject or in *the price of NAME*."""
    light = lexicon_set("function_words", "articles")
    verbs = lexicon_set("grammar", "auxiliaries") | lexicon_set("grammar", "be")
    leads = lexicon_set("function_words", "within_claim") - {"of"} - light
    for start, end in named_runs(text, tokens):
        before = [token.folded for token in tokens if token.end <= start]
        if "," in text[:start] or not verbs.isdisjoint(before):
            return None
        if leads.isdisjoint(before):
            return start, end
    return None


def named_runs(text: str, tokens: Sequence[Token]) -> list[Span]:
    """The names of a text, each with the number behind it: *Fjell 4*."""
    found = []
    for start, end in find_names(text):
        behind = [t for t in tokens if t.start >= end][:1]
        number = [t.end for t in behind if t.start == end + 1 and t.text.isdigit()]
        found.append((start, number[0] if number else end))
    return found


def _about(text: str, tokens: Sequence[Token], evidence: PreparedEvidence) -> frozenset[str]:
    """Whom a text is about: the subjects that it names, or the value that it opens with."""
    here = named_in(text, tokens, evidence)
    opening = opening_name(text, tokens) if evidence.value_names and "|" not in text else None
    if opening is None:
        return here
    name = text[slice(*opening)]
    words = {token.folded for token in tokenise(name)}
    opened = frozenset(
        value
        for value in evidence.value_names
        if words <= {token.folded for token in tokenise(value)}
    )
    return here if named_in(name, tokenise(name), evidence) else opened | here


def named_in(text: str, tokens: Sequence[Token], evidence: PreparedEvidence) -> frozenset[str]:
    """Which subjects of the evidence a text names: by label, other name, or a part of a name.

    A word inside a fuller name of another subject names nobody else: the *Bach* of *Johann
    Christian Bach* is not Johann Bach.
    """
    whole: dict[str, list[Span]] = {}
    for label in evidence.labels_in(tokens):
        spans = label_in(text, tokens, label)
        for other in evidence.names.get(label, ()):
            spans = spans or (label_in(text, tokens, other) if len(other) > 2 else [])
        if spans:
            whole[label] = spans
    taken = [span for spans in whole.values() for span in spans]
    inside = {
        label
        for label, spans in whole.items()
        if all(within_another(span, taken) for span in spans)
    }
    free = tokens
    for start, end in taken:
        free = [token for token in free if token.start < start or end < token.end]
    parts: dict[str, int] = {}
    runs = named_runs(text, tokens)
    for label in evidence.labels_sharing(free):
        spans = [
            span
            for span in (part_of_name_in(free, label) if " " in label else ())
            if not any(
                a <= span[0] and span[1] <= b and _differs(text[a:b], label) for a, b in runs
            )
        ]
        if label not in whole and spans:
            parts[label] = len(spans)
    most = max(parts.values(), default=0)
    return frozenset(whole) - inside | {label for label, count in parts.items() if count == most}


def _differs(name: str, label: str) -> bool:
    """True if a name has a word that a label lacks: *Orazio Gentileschi*, *Fjell 4*."""
    titles = lexicon_set("abbreviations", "titles")
    own = {token.folded for token in tokenise(label)}
    return any(token.folded not in own and token.folded not in titles for token in tokenise(name))
