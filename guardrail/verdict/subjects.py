"""Whom a sentence speaks of: subjects of the evidence that it names, or that it points back to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from guardrail.core.apart import Span, within_another
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.names import label_in, part_of_name_in
from guardrail.core.text.words import Token, plain, tokenise

if TYPE_CHECKING:
    from guardrail.evidence.prepared import PreparedEvidence
    from guardrail.verdict.claims import Claim

__all__ = ["named_in", "subjects_of"]


def subjects_of(
    claims: Sequence[Claim],
    evidence: PreparedEvidence,
    asked: str | None,
) -> list[frozenset[str]]:
    """For each sentence of an answer the subjects that it speaks of.

    A sentence that names none speaks of those of the sentence before it, at first of whom the
    question names; so does one with a pronoun, beside those it names. Where nobody is named at
    all, the only subject of the evidence is meant.

    Args:
        claims: The sentences, in order.
        evidence: What the answer is held against.
        asked: The subject that the question is about, where it is known.
    """
    labels = evidence.labels
    question = claims[0].question if claims else ""
    tokens = tokenise(plain(question))
    last = frozenset({asked}) if asked in labels and asked else frozenset[str]()
    last = last or named_in(question, tokens, evidence)
    if not last and len(labels) == 1:
        last = frozenset(labels)
    back = lexicon_set("function_words", "third_persons")
    found: list[frozenset[str]] = []
    for claim in claims:
        here = named_in(plain(claim.text), claim.tokens, evidence)
        if not here or any(token.folded in back for token in claim.tokens[:4]):
            here = here | last
        found.append(here)
        last = here or last
    return found


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
    free = [
        token
        for token in tokens
        if not any(start <= token.start and token.end <= end for start, end in taken)
    ]
    parts: dict[str, int] = {}
    for label in evidence.labels_sharing(free):
        if label not in whole and " " in label and (spans := part_of_name_in(free, label)):
            parts[label] = len(spans)
    most = max(parts.values(), default=0)
    return frozenset(whole) - inside | {label for label, count in parts.items() if count == most}
