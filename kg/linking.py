"""Entity linking: from a text to nodes of the graph, each with how it was found (KaLMA 3.1-3.2).

Label index and tagger find mentions, labels and aliases give candidates, the tagger's type
filters them, neighbour values order them. Past the paper: names that share a part with a list or
with a label ("Elizabeth and Emily Blackwell", "Gacy"), and entities that the text asks for by a
relation ("his father", "Who succeeded Bahram II").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from guardrail.core.errors import InputError
from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.tagging import run_pipeline
from guardrail.core.types import Candidate, Entity, LinkedEntity, Mention
from kg.base import KnowledgeGraph, MentionIndex
from kg.mentions import (
    bare_name,
    capitalised_spans,
    classes_of,
    compatible,
    completions,
    fold,
    join_mentions,
    listed_names,
    load_tagger,
    name_forms,
    persons,
    taggable,
    tagged_mentions,
)
from kg.names import NameParts, without_middle
from kg.relations import (
    ImpliedEntity,
    Neighbourhoods,
    Source,
    between_persons,
    family_names,
    follow_relations,
    literal_key,
    relation_words,
)
from kg.reranking import TextIndex, rerank
from kg.store import OxigraphGraph
from kg.terms import readable

if TYPE_CHECKING:
    from spacy.tokens import Doc


@dataclass
class _Text:
    """One text on its way through the linker.

    Attributes:
        mentions: Spans that may name an entity.
        spans: Its capitalised spans.
        open: Mentions without an entity.
        values: Those of them that are a value of facts between persons.
    """

    text: str
    index: TextIndex
    mentions: list[Mention]
    spans: list[Mention]
    linked: list[LinkedEntity] = field(default_factory=list)
    open: list[Mention] = field(default_factory=list)
    values: list[Mention] = field(default_factory=list)

    def add(self, mention: Mention, candidates: Sequence[Candidate], matched: str) -> None:
        """Link the first candidate, unless it is linked already."""
        entity = candidates[0].entity
        if all(entity.id != link.entity.id for link in self.linked):
            kept = tuple(candidates[:10])
            self.linked.append(
                LinkedEntity(mention=mention, entity=entity, matched=matched, candidates=kept)
            )

    def settle(self, mention: Mention, candidates: Sequence[Candidate], matched: str) -> None:
        """Link a mention that had no entity."""
        self.add(mention, candidates, matched)
        self.open = [other for other in self.open if other.start != mention.start]


class EntityLinker:
    """Links texts to a graph.

    Args:
        graph: Any graph. One that is a ``MentionIndex`` spots its own labels; for others mentions
            come from the tagger and from capitalised words.
        limit: Maximum triples each way read of one node.

    Example:
        >>> from kg import open_graph
        >>> linker = EntityLinker(open_graph())
        >>> [(e.entity.label, e.matched) for e in linker.link(["Who was Gacy?"])[0]]
        [('John Wayne Gacy', 'partial name')]
    """

    def __init__(self, graph: KnowledgeGraph, *, limit: int = 200) -> None:
        self._graph, self._limit = graph, limit
        self._names = NameParts(graph) if isinstance(graph, OxigraphGraph) else None

    def link(
        self, texts: Sequence[str], *, docs: Sequence[Doc] | None = None
    ) -> list[list[LinkedEntity]]:
        """Link each of n texts.

        Args:
            texts: Questions, sentences or answers.
            docs: The same texts parsed by a spaCy pipeline with an entity recogniser; None to
                parse them here.

        Returns:
            For each text its entities, in the order of their mentions; no entity twice.

        Raises:
            InputError: If ``docs`` are given and are not as many as ``texts``.
            KnowledgeGraphError: If the graph cannot answer.
        """
        if docs is not None and len(docs) != len(texts):
            raise InputError(f"{len(docs)} parsed documents for {len(texts)} texts; give one each")
        clean = [readable(text) for text in texts]
        if docs is None:
            docs = run_pipeline(load_tagger(), map(taggable, clean))
        around = Neighbourhoods(self._graph, self._names, self._limit)
        states = [self._read(text, doc) for text, doc in zip(clean, docs, strict=True)]
        self._link_labels(states, around)
        self._link_lists(states, around)
        self._link_values(states, around)
        self._link_parts(states, around)
        self._link_asked(states, around)
        for state in states:
            state.linked.sort(key=lambda link: link.mention.start)
        return [state.linked for state in states]

    def _read(self, text: str, doc: Doc) -> _Text:
        spans = _first_of_each(capitalised_spans(text))
        spotted = self._graph.spot(text) if isinstance(self._graph, MentionIndex) else []
        mentions = join_mentions(
            text, spotted=_first_of_each(spotted), tagged=tagged_mentions(doc), spans=spans
        )
        return _Text(text, TextIndex(text), _first_of_each(mentions), spans)

    def _link_labels(self, states: Sequence[_Text], around: Neighbourhoods) -> None:
        """Labels and aliases (KaLMA 3.1), re-ranked (3.2)."""
        forms = {m.text: name_forms(m.text) for state in states for m in state.mentions}
        found = self._find(form for group in forms.values() for form in group)
        classes = classes_of(self._graph)
        around.fetch(entity.id for group in found.values() for entity in group)
        for state in states:
            named: list[tuple[Mention, list[Entity]]] = []
            for mention in state.mentions:
                group = next((found[form] for form in forms[mention.text] if found[form]), [])
                if group:
                    named.append((mention, compatible(group, mention.ner, classes)))
                else:
                    state.open.append(mention)
            ranked = self._rank(state, [group for _, group in named], around)
            for (mention, _), candidates in zip(named, ranked, strict=True):
                label = fold(candidates[0].entity.label)
                exact = label in map(fold, forms[mention.text])
                state.add(mention, candidates, "label" if exact else "alias")

    def _link_lists(self, states: Sequence[_Text], around: Neighbourhoods) -> None:
        """Names that share a part with another: "Elizabeth and Emily Blackwell"."""
        listed = []
        for state in states:
            names = listed_names(state.text, state.spans)
            # A given name alone may continue a full name anywhere: "… becoming father to Tobias".
            full = [m.text.split() for m in state.mentions if " " in m.text][:20]
            names += [
                name
                for mention in state.open
                if " " not in mention.text
                for words in full
                if mention.text not in words
                for name in completions(mention, words)
            ]
            listed.append(names)
        found = self._find(name.full for names in listed for name in names)
        around.fetch(entity.id for group in found.values() for entity in group)
        for state, names in zip(states, listed, strict=True):
            taken = {position for link in state.linked for position in _range(link.mention)}
            for name in names:
                if found[name.full] and name.mention.start not in taken:
                    [candidates] = self._rank(state, [found[name.full]], around)
                    state.settle(name.mention, candidates, "list")
                    taken.update(_range(name.mention))

    def _link_values(self, states: Sequence[_Text], around: Neighbourhoods) -> None:
        """Link the persons whose facts have a name that is no node: "child: Toby Jones"."""
        around.fetch(literal_key(m.text) for state in states for m in state.open)
        for state in states:
            for mention in list(state.open):
                facts = around.get(literal_key(mention.text)).incoming
                personal = [fact for fact in facts if between_persons(fact.property)]
                holders = dict.fromkeys(fact.subject_id for fact in personal)
                if not personal or len(holders) > 3:
                    continue
                around.fetch(key for key in holders if key)
                for fact in personal:
                    holder = around.get(fact.subject_id or "").entity
                    state.values.append(mention)
                    state.add(mention, [Candidate(entity=holder)], f"value: {fact.property}")

    def _link_parts(self, states: Sequence[_Text], around: Neighbourhoods) -> None:
        """Surnames and other parts of labels: "Gacy", "the Burdenski family"."""
        if self._names is None:
            return
        wanted = [
            (state, mention, bare_name(mention.text), _apart(mention, state))
            for state in states
            for mention in state.open
            if mention not in state.values and _may_be_part(mention)
        ]
        groups = self._names.named([part for _, _, part, _ in wanted])
        people = [persons(group, classes_of(self._graph))[:10] for group in groups]
        around.fetch(entity.id for group in people for entity in group)
        for (state, mention, part, apart), group in zip(wanted, people, strict=True):
            # With Mary Shelley linked, "Percy Shelley" is another name and "Shelley" is not.
            if not group or not (apart or without_middle(part, group)):
                continue
            [candidates] = self._rank(state, [group], around)
            if same := [c for c in candidates if fold(part) == fold(c.entity.label)]:
                # The index compares accents; this look-up does not.
                state.settle(mention, same, "label")
            elif _groups().match(state.text, mention.end) and len(group) <= 6:
                for candidate in candidates:
                    if fold(candidate.entity.label).endswith(fold(part)):
                        state.settle(mention, [candidate], "partial name")
            elif (
                without_middle(part, group)
                or _convincing(part, candidates)
                or _neighbour(candidates[0], state, around)
            ):
                state.settle(mention, candidates, "partial name")

    def _link_asked(self, states: Sequence[_Text], around: Neighbourhoods) -> None:
        """Follow relations from what is linked, and from names that are only values."""
        # Without a relation word nothing starts from a name that is only a value.
        words = [relation_words(state.text) for state in states]
        unlinked = [
            [Source(m, literal_key(m.text)) for m in state.open] if asking else []
            for state, asking in zip(states, words, strict=True)
        ]
        around.fetch(source.key for group in unlinked for source in group)
        sources = [
            [
                *(
                    Source(link.mention, link.entity.id)
                    for link in state.linked
                    if link.mention not in state.values
                ),
                *(source for source in group if around.get(source.key).incoming),
            ]
            for state, group in zip(states, unlinked, strict=True)
        ]
        reached = follow_relations([state.text for state in states], words, sources, around)
        for state, asking, starts, others, found in zip(
            states, words, sources, unlinked, reached, strict=True
        ):
            kin: list[ImpliedEntity] = []
            if self._names is not None:
                named = [s for s in others if " " in s.mention.text and s not in starts]
                kin = family_names(asking, [*starts, *named], found, self._names, around)
            for asked in (*found, *kin):
                state.add(asked.mention, [Candidate(entity=asked.entity)], asked.matched)

    def _find(self, names: Iterable[str]) -> Mapping[str, list[Entity]]:
        unique = list(dict.fromkeys(names))
        return dict(zip(unique, self._graph.find(unique), strict=True)) if unique else {}

    def _rank(
        self, state: _Text, groups: Sequence[Sequence[Entity]], around: Neighbourhoods
    ) -> list[list[Candidate]]:
        """Re-rank groups of candidates, given the entities that are already linked."""
        settled = {link.entity.id for link in state.linked}
        ids = settled | {entity.id for group in groups for entity in group}
        links = {
            fact: None
            for group in groups
            for entity in group
            for subgraph in [around.get(entity.id)]
            for fact in (*subgraph.triples, *subgraph.incoming)
            if fact.subject_id in ids and fact.value_id in ids
        }
        return rerank(groups, state.index, around.known, list(links))


def _first_of_each(mentions: Iterable[Mention]) -> list[Mention]:
    """The first mention of each name; of a book those of a chapter."""
    first: dict[str, Mention] = {}
    for mention in mentions:
        first.setdefault(mention.text, mention)
    return list(islice(first.values(), 500))


def _range(mention: Mention) -> range:
    return range(mention.start, mention.end)


def _may_be_part(mention: Mention) -> bool:
    """True if an unlinked mention may be a part of a name."""
    if mention.ner not in (None, "PERSON", "ORG", "GPE") or len(mention.text) < 3:
        return False
    calendar = lexicon_set("calendar", "months") | lexicon_set("calendar", "weekdays")
    return not re.fullmatch("[IVXLC]+", mention.text) and mention.text.lower() not in calendar


@cache
def _groups() -> re.Pattern[str]:
    """Words after a name that several persons bear: *the Barron brothers*."""
    words = "|".join(lexicon("names")["groups"])
    return re.compile(rf"(?:['’]s?)?\s+(?:{words})\b", re.IGNORECASE)


def _apart(mention: Mention, state: _Text) -> bool:
    """True if a mention shares no word with a name that is linked already."""
    words = {word for link in state.linked for word in link.entity.label.split()}
    return words.isdisjoint(mention.text.split())


def _neighbour(candidate: Candidate, state: _Text, around: Neighbourhoods) -> bool:
    """True if a fact joins the candidate to an entity that the text names by its label.

    A given name is enough then: "Artemisia was taught by Orazio Gentileschi".
    """
    named = {link.entity.id for link in state.linked if link.matched == "label"}
    subgraph = around.get(candidate.entity.id)
    ends = {fact.value_id for fact in subgraph.triples}
    ends |= {fact.subject_id for fact in subgraph.incoming}
    return not named.isdisjoint(ends)


def _convincing(part: str, candidates: Sequence[Candidate]) -> bool:
    """True if the evidence for the first candidate of a partial name is enough.

    That is half a rare value of re-ranking for the only candidate or a lead over the next one, else
    half as many facts again as the next has.
    """
    best = candidates[0]
    label, folded = fold(best.entity.label), fold(part)
    rest = label.removeprefix(folded).strip().upper()
    if not label.endswith(folded) and not re.fullmatch("[IVXLC]+", rest):
        return False
    if len(candidates) == 1 or best.score >= candidates[1].score + 0.25:
        return best.score >= 0.5
    return best.entity.prominence >= 1.5 * candidates[1].entity.prominence
