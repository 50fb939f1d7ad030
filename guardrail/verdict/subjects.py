"""Whom a sentence speaks of: subjects of the evidence that it names, or that it points back to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from guardrail.core.apart import within_another
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
    labels, names = evidence.labels, evidence.names
    question = claims[0].question if claims else ""
    tokens = tokenise(plain(question))
    last = frozenset({asked}) if asked in labels and asked else frozenset[str]()
    last = last or named_in(question, tokens, evidence.labels_near(tokens), names)
    if not last and len(labels) == 1:
        last = frozenset(labels)
    back = lexicon_set("function_words", "third_persons")
    found: list[frozenset[str]] = []
    for claim in claims:
        here = named_in(plain(claim.text), claim.tokens, evidence.labels_near(claim.tokens), names)
        if not here or any(token.folded in back for token in claim.tokens[:4]):
            here = here | last
        found.append(here)
        last = here or last
    return found


def named_in(
    text: str, tokens: Sequence[Token], labels: Sequence[str], names: Mapping[str, tuple[str, ...]]
) -> frozenset[str]:
    """Which of several entities a text names, by label, other name, or a part that is its own.

    A word inside a fuller name of another entity names nobody else: the *Bach* of *Johann
    Christian Bach* is not Johann Bach.
    """
    whole: dict[str, list[tuple[int, int]]] = {}
    for label in labels:
        spans = label_in(text, tokens, label)
        for other in names.get(label, ()):
            spans = spans or (label_in(text, tokens, other) if len(other) > 2 else [])
        if spans:
            whole[label] = spans
    taken = [span for spans in whole.values() for span in spans]
    inside = {
        label
        for label, spans in whole.items()
        if all(within_another(span, taken) for span in spans)
    }
    parts: dict[str, int] = {}
    for label in labels:
        if label in whole or " " not in label:
            continue
        spans = [
            (start, end)
            for start, end in part_of_name_in(tokens, label)
            if not any(a <= start and end <= b for a, b in taken)
        ]
        if spans:
            parts[label] = len(spans)
    most = max(parts.values(), default=0)
    return frozenset(whole) - inside | {label for label, count in parts.items() if count == most}
