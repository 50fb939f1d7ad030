"""Evidence of a text: link entities, fetch their subgraphs, or ask a retriever (KaLMA 3.1).

What comes in is bounded: the length of names, the number of items and their characters. Places of a
graph are joined by the wider places that hold them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from guardrail.core.errors import InputError, KnowledgeGraphError
from guardrail.core.incoming import cut_text
from guardrail.core.plugins import external_errors
from guardrail.core.text.names import NO_NAMES
from guardrail.core.text.sentences import split_sentences
from guardrail.core.text.units import cues, tells_place
from guardrail.core.text.words import fold, tokenise
from guardrail.core.types import Entity, Evidence, LinkedEntity, Passage, Subgraph, Triple
from guardrail.core.workers import called
from guardrail.log.tracing import stage
from guardrail.models.facts import relevant_triples
from kg.base import KnowledgeGraph, PlaceIndex

if TYPE_CHECKING:
    from spacy.tokens import Doc

    from guardrail.config import LimitsConfig
    from guardrail.core.workers import InThread
    from kg.linking import EntityLinker

EVIDENCE_CHARS = 500_000
"""Most characters of the evidence of one answer."""

Item = TypeVar("Item", Triple, Evidence)


class Knowledge(NamedTuple):
    """What an answer is judged against.

    Attributes:
        entities: The linked entities, those of the question first.
        evidence: Triples and passages, without repeats.
        asked: Label of the first entity that the question names, none of those reached from it; or
            the name, where the graph knows it only as a value of others' facts.
        near: The neighbourhoods of the entities.
        left_out: Number of triples and passages that are not in ``evidence``, or only their
            beginning, for want of room.
        wider: Names of the places that hold a triple's value, by its id, nearest first.
        source: ``graph``, ``retriever``, ``files`` of the settings, or ``caller`` where the
            evidence came with the call.
        files: Hashes of the contents of the files of the settings, by file name.
    """

    entities: tuple[LinkedEntity, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    asked: str | None = None
    near: tuple[Subgraph, ...] = ()
    left_out: int = 0
    wider: Mapping[str, tuple[str, ...]] = NO_NAMES
    source: str = "graph"
    files: Mapping[str, str] = MappingProxyType({})

    @property
    def other_names(self) -> dict[str, tuple[str, ...]]:
        """Aliases of the linked entities by label."""
        return {
            link.entity.label: link.entity.aliases for link in self.entities if link.entity.aliases
        }

    @property
    def subgraphs(self) -> tuple[Subgraph, ...]:
        """The facts for a prompt by entity; a passage is one fact of its own entity."""
        around: dict[str, list[Triple]] = {}
        for place, item in enumerate(() if self.near else self.evidence, start=1):
            owner = _owner(item, place)
            if isinstance(item, Passage):
                item = Triple(subject=owner, property="passage", value=item.text)
            around.setdefault(owner, []).append(item)
        return self.near or tuple(
            Subgraph(entity=Entity(id=key, label=triples[0].subject), triples=tuple(triples))
            for key, triples in around.items()
        )

    def relevant(self, question: str) -> tuple[Triple, ...]:
        """The facts that bear on a question; a passage is one as well."""
        return relevant_triples(question, self.subgraphs)


@external_errors("the graph", KnowledgeGraphError)
def from_graph(
    graph: KnowledgeGraph,
    linker: EntityLinker,
    rows: Sequence[tuple[str, str]],
    limit: int,
    docs: dict[str, Doc] | None = None,
) -> list[Knowledge]:
    """Link texts to a graph and read the neighbourhood of what was linked.

    Every different text is linked once, every different entity read once.

    Raises:
        KnowledgeGraphError: The graph cannot answer.
    """
    texts = [text for text in dict.fromkeys(chain.from_iterable(rows)) if text.strip()]
    parsed = [docs[text] for text in texts] if docs is not None else None
    linked = dict(zip(texts, linker.link(texts, docs=parsed), strict=True))
    found = []
    for row in rows:
        first: dict[str, LinkedEntity] = {}
        for link in (link for text in row for link in linked.get(text, ())):
            first.setdefault(link.entity.id, link)
        found.append(list(first.values()))
    ids = list(dict.fromkeys(link.entity.id for links in found for link in links))
    around = dict(zip(ids, graph.subgraphs(ids, limit=200), strict=True))
    knowledge = []
    for (question, _), links in zip(rows, found, strict=True):
        near = tuple(around[link.entity.id] for link in links)
        evidence, left_out = _shared([each.triples + each.incoming for each in near], limit)
        asked = next((name for link in linked.get(question, ()) if (name := _asked(link))), None)
        knowledge.append(Knowledge(tuple(links), evidence, asked, near, left_out))
    return knowledge


def _asked(link: LinkedEntity) -> str | None:
    """Whom a question names: an entity, or a name that is only a value of others' facts."""
    if link.matched.startswith("value:"):
        return link.mention.text
    # How entities were found that a text does not name itself, see LinkedEntity.matched
    unnamed = link.matched.startswith(("relation:", "value:", "family name:"))
    return None if unnamed else link.entity.label


def given(evidence: Sequence[Evidence], limits: LimitsConfig) -> Knowledge:
    """Evidence that the caller hands in, as knowledge to prompt with and to judge against.

    Raises:
        InputError: A name is longer than names are; see ``MOST_CHARS``.
    """
    for place, item in enumerate(evidence):
        bounded(item, f"evidence[{place}]")
    left_out = 0
    if len(evidence) > limits.evidence:
        owned: dict[str, list[Evidence]] = {}
        for place, item in enumerate(evidence, start=1):
            owned.setdefault(_owner(item, place), []).append(item)
        evidence, left_out = _shared(owned.values(), limits.evidence)
    evidence, cut = within(evidence, EVIDENCE_CHARS)
    return Knowledge(evidence=evidence, left_out=left_out + cut, source="caller")


def _owner(item: Evidence, place: int) -> str:
    """The entity that a triple is about; a passage stands for itself."""
    if isinstance(item, Passage):
        return item.id or item.title or f"passage {place}"
    return item.subject_id or item.subject


def _shared(groups: Iterable[Sequence[Item]], limit: int) -> tuple[tuple[Item, ...], int]:
    """Take at most ``limit`` different items, turn by turn one of each group."""
    unique_groups = [list(dict.fromkeys(group)) for group in groups]
    items = list(dict.fromkeys(chain.from_iterable(unique_groups)))
    if len(items) <= limit:
        return tuple(items), 0
    by_turn = (item for turn in zip_longest(*unique_groups) for item in turn if item is not None)
    chosen = set(islice(dict.fromkeys(by_turn), limit))
    return tuple(item for item in items if item in chosen), len(items) - limit


async def retrieve_passages(
    retriever: object, questions: Sequence[str], limits: LimitsConfig, in_thread: InThread
) -> list[Knowledge]:
    """Ask a retriever for the evidence of n questions.

    Args:
        retriever: A LangChain retriever (``ainvoke`` or ``invoke``), or a function, synchronous
            or not, from a question to evidence.
        questions: The questions; each different one is asked once.
        limits: How much evidence is read for one answer.
        in_thread: Runs a function that blocks.

    Raises:
        KnowledgeGraphError: The retriever failed, or returned something that is no evidence.
    """
    from guardrail.sources.items import as_evidence

    call = cast(
        "Callable[[str], Iterable[object]]",
        getattr(retriever, "ainvoke", None) or getattr(retriever, "invoke", None) or retriever,
    )
    unique = list(dict.fromkeys(questions))

    async def ask(question: str) -> tuple[Evidence, ...]:
        return as_evidence(await called(in_thread, call, question))

    with external_errors("the retriever", KnowledgeGraphError):
        found = await asyncio.gather(*(ask(question) for question in unique))
    by_question = dict(zip(unique, found, strict=True))
    known = (given(by_question[question], limits) for question in questions)
    return [knowledge._replace(source="retriever") for knowledge in known]


MOST_CHARS = 2_000
"""Most characters of a name: a title, an id, an address, a subject, a property. Names are looked
for in every sentence and written into every reply; texts and values have no such bound."""


def too_long(item: Evidence) -> tuple[str, int] | None:
    """A name of an item that is longer than names are, and its characters; None where none is."""
    of_triples = ("subject", "property", "subject_id", "property_id", "value_id")
    for name in ("id", "title", "url") if isinstance(item, Passage) else of_triples:
        if (length := len(getattr(item, name) or "")) > MOST_CHARS:
            return name, length
    if isinstance(item, Triple) and item.row and len(item.row.table) > MOST_CHARS:
        return "row.table", len(item.row.table)
    return None


def bounded(item: Evidence, where: str) -> None:
    """Check that the names of an item of evidence are no longer than names are.

    Raises:
        InputError: One of its names is longer.
    """
    if (found := too_long(item)) is not None:
        name, length = found
        raise InputError(
            f"{where}.{name} has {length:,} characters; a name of evidence has at most "
            f"{MOST_CHARS:,}: shorten it, and put what it says into the text or the value"
        )


def within(evidence: Sequence[Evidence], chars: int) -> tuple[tuple[Evidence, ...], int]:
    """Evidence of so many characters at most: the longest passages are cut, others stay whole.

    Returns:
        The evidence in its order, and the number of items that were cut or left out.
    """
    lengths = [len(item.text) for item in evidence]
    most, room = chars, chars
    for place, length in enumerate(sorted(lengths)):
        most = room // (len(lengths) - place)  # for each of those that are as long or longer
        if length > most:
            break
        room -= length
    else:
        return tuple(evidence), 0
    kept: list[Evidence] = []
    for item, length in zip(evidence, lengths, strict=True):
        if length <= most:
            kept.append(item)
        elif isinstance(item, Passage) and (text := cut_text(item.text, most)):
            kept.append(item.model_copy(update={"text": text}))
    return tuple(kept), sum(length > most for length in lengths)


@external_errors("the graph", KnowledgeGraphError)
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
    # Most places of one answer that the graph is asked about, those of its first entities first
    asked = [
        list(islice(dict.fromkeys(_open_places(answer, known)), 20))
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
    """Yield ids of places that a sentence may tell by a wider one: it has their property's word."""
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
            # Words between a place and the wider one that follows it
            joints = (", ", " in ", " of ", " (")
            if name not in text or any(name + joint in text for joint in joints):
                yield value_id
                break
