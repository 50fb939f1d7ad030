"""Drafts: each sentence of an answer with what exact evidence finds in it, before any judge."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from guardrail.claims import is_claim, is_code
from guardrail.clauses import in_clause
from guardrail.containment import in_wider_places
from guardrail.coreference import Subject, subjects_of
from guardrail.directions import told_otherwise
from guardrail.headings import is_heading
from guardrail.markers.grammar import ParsedText
from guardrail.matching import EvidenceIndex, Match
from guardrail.naming import NO_NAMES, SentenceTokens
from guardrail.passages import PassageIndex, PassageSupport
from guardrail.phrases import Phrase, factual_phrases
from guardrail.short_answers import as_asked, asked_for
from guardrail.text.sentences import Stretch, code_blocks, split_sentences
from guardrail.text.values import fold, tokenise
from guardrail.types import Evidence, Passage, Triple

if TYPE_CHECKING:
    from spacy.tokens import Doc

__all__ = ["AttributionRequest", "Draft", "drafts_of"]

MARKER_START = re.compile(r"\[([^\[\],]{1,200}), (?=[^\[\]:]{1,200}: )")
"""What opens a marker: an entity, and a property before a colon."""
IDENTIFIER = re.compile(r"[QPL]\d+")


class AttributionRequest(NamedTuple):
    """One answer to attribute.

    Attributes:
        question: The question it answers.
        answer: The answer with the markers that stood in it, parsed.
        evidence: Triples and passages.
        asked: Label of the entity that the question is about, where it is known.
        doc: The clean answer parsed already; None to parse it here.
        names: Other names of entities by label.
        wider: Names of the places that hold a triple's value, by its id.
    """

    question: str
    answer: ParsedText
    evidence: tuple[Evidence, ...]
    asked: str | None = None
    doc: Doc | None = None
    names: Mapping[str, tuple[str, ...]] = NO_NAMES
    wider: Mapping[str, tuple[str, ...]] = NO_NAMES


class Draft(NamedTuple):
    """A sentence on its way."""

    request: int
    doc: Doc
    stretch: Stretch
    tokens: SentenceTokens
    phrases: tuple[Phrase, ...]
    subject: Subject
    claim: bool
    matches: tuple[Match, ...]
    passages: tuple[PassageSupport, ...]


def drafts_of(number: int, request: AttributionRequest, doc: Doc) -> list[Draft]:
    """Split an answer and look for its evidence in every sentence.

    Args:
        number: Place of the request in its batch.
        request: The answer and its evidence.
        doc: The parsed clean answer.
    """
    triples = [one for one in request.evidence if isinstance(one, Triple)]
    passages = [one for one in request.evidence if isinstance(one, Passage)]
    index = EvidenceIndex(triples, request.names)
    reader = PassageIndex(passages)
    subjects = list(index.subjects)
    known = {
        token.folded for triple in triples for token in tokenise(f"{triple.subject} {triple.value}")
    } | {token.folded for token in tokenise(request.question)}
    for others in request.names.values():
        known |= {token.folded for token in tokenise(" ".join(others))}
    asked = request.asked
    if asked is None:
        question = fold(request.question)
        asked = next((label for label in subjects if fold(label) in question), None)
    stretches = split_sentences(request.answer.clean)
    code = code_blocks(request.answer.clean)
    text = doc.text  # joined anew from its tokens each time
    entities = {name for one in triples for name in (one.subject, one.subject_id) if name}
    tokens = [
        SentenceTokens.of(_without_ruins(stretch.text, entities), stretch.start)
        for stretch in stretches
    ]
    traced = subjects_of(
        doc,
        stretches,
        tokens,
        triples=triples,
        known_words=frozenset(known),
        asked=asked,
        names=request.names,
        values=frozenset(fold(triple.value) for triple in triples) - set(map(fold, subjects)),
    )
    claims = [
        is_claim(doc, one)
        and not is_heading(text, doc, one)
        and not (_within(one, code) and is_code(one.text))
        for one in stretches
    ]
    found = [
        _matches(index, doc, text, stretch, sentence, subject, request.wider) if claim else ()
        for stretch, sentence, subject, claim in zip(stretches, tokens, traced, claims, strict=True)
    ]
    if found:
        wanted = asked_for(request.question, asked, triples)
        found[0] = as_asked(found[0], doc, stretches[0], wanted)
    return [
        Draft(
            request=number,
            doc=doc,
            stretch=stretch,
            tokens=sentence,
            phrases=tuple(factual_phrases(doc, stretch)),
            subject=subject,
            claim=claim,
            matches=matches,
            passages=tuple(reader.nearest(sentence)),
        )
        for stretch, sentence, subject, claim, matches in zip(
            stretches, tokens, traced, claims, found, strict=True
        )
    ]


def _within(stretch: Stretch, blocks: Sequence[tuple[int, int]]) -> bool:
    place = bisect_right(blocks, stretch.start, key=itemgetter(0)) - 1
    return place >= 0 and stretch.start < blocks[place][1]


def _matches(
    index: EvidenceIndex,
    doc: Doc,
    text: str,
    stretch: Stretch,
    sentence: SentenceTokens,
    subject: Subject,
    wider: Mapping[str, tuple[str, ...]],
) -> tuple[Match, ...]:
    """The triples found in a sentence, without what it tells of others or the other way round."""
    place = stretch.start, stretch.end
    plain = index.matches(sentence, subject)
    found = in_clause(doc, place, plain, subject)
    found = in_wider_places(doc, sentence, place, plain, found, subject, wider)
    return tuple(
        match.told_of("other")
        if told_otherwise(
            text, sentence, match.triple.property, match.value_spans, match.subject_spans
        )
        else match
        for match in found
    )


def _without_ruins(text: str, entities: Set[str]) -> str:
    """Blank markers that could not be read, offsets kept: what they list is no prose.

    Models leave brackets open and nest them. From where a bracket names an entity to where it is
    closed, or to the sentence's end, no value counts as stated; its phrases lack support.
    """
    parts = []
    position = 0
    for match in MARKER_START.finditer(text):
        entity = match.group(1)
        if match.start() < position or not (entity in entities or IDENTIFIER.fullmatch(entity)):
            continue
        depth = 0
        end = len(text)
        for place in range(match.start(), len(text)):
            depth += (text[place] == "[") - (text[place] == "]")
            if depth == 0:
                end = place + 1
                break
        parts += [text[position : match.start()], " " * (end - match.start())]
        position = end
    return "".join(parts) + text[position:]
