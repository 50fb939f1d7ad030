"""Places within places: which ones the graph is asked about, so that prose may name a wider one.

A graph names one birthplace, *Somers Town*; whoever writes *born in London* tells the truth too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from guardrail.core.errors import KnowledgeGraphError
from guardrail.core.plugins import foreign
from guardrail.core.text.sentences import split_sentences
from guardrail.core.text.units import cues, tells_place
from guardrail.core.text.words import fold, tokenise
from guardrail.core.types import Entity, Triple
from guardrail.log.tracing import stage
from kg.base import KnowledgeGraph, PlaceIndex

if TYPE_CHECKING:
    from guardrail.evidence.retrieval import Knowledge

__all__ = ["with_wider"]

MAX_PLACES = 20
"""Most places of one answer that the graph is asked about, those of its first entities first."""

JOINTS = (", ", " in ", " of ", " (")
"""Words between a place and the wider one that follows it."""


@foreign("the graph", KnowledgeGraphError)
def with_wider(
    graph: KnowledgeGraph, answers: Sequence[str], knowledge: Sequence[Knowledge]
) -> list[Knowledge]:
    """Add the wider places of n answers' places to what they are judged against, in one call.

    Args:
        graph: The graph that the knowledge was read from; one that is no ``PlaceIndex`` is not
            asked.
        answers: The clean answers, which may be empty.
        knowledge: What each is judged against.

    Raises:
        KnowledgeGraphError: The graph cannot answer.
    """
    if not isinstance(graph, PlaceIndex):
        return list(knowledge)
    asked = [
        list(islice(dict.fromkeys(_open_places(answer, known)), MAX_PLACES))
        for answer, known in zip(answers, knowledge, strict=True)
    ]
    ids = list(dict.fromkeys(id_ for row in asked for id_ in row))
    if not ids:
        return list(knowledge)
    with stage("locate"):
        found = dict(zip(ids, map(_names, graph.wider(ids)), strict=True))
    return [
        known._replace(wider={id_: found[id_] for id_ in row if found[id_]}) if row else known
        for row, known in zip(asked, knowledge, strict=True)
    ]


def _names(places: Iterable[Entity]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for place in places for name in (place.label, *place.aliases)))


def _open_places(answer: str, known: Knowledge) -> Iterator[str]:
    """Yield ids of places that a sentence may tell by a wider one: it has their property's word.

    A sentence that names the place itself does so only where another may follow: *Soho, London*.
    What callers hand in has no entities of the graph, and its ids may be those of another one.
    """
    places = [
        (item.value_id, fold(item.value), cues(item.property))
        for item in (known.evidence if known.entities else ())
        if isinstance(item, Triple) and item.value_id and tells_place(item.property)
    ]
    if not places:
        return
    sentences = [
        (fold(sentence.text), {token.stem for token in tokenise(sentence.text)})
        for sentence in split_sentences(answer)
    ]
    for value_id, name, words in places:
        for text, stems in sentences:
            if words.isdisjoint(stems):
                continue
            if name not in text or any(name + joint in text for joint in JOINTS):
                yield value_id
                break
