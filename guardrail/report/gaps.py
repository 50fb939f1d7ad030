"""Knowledge gaps: which facts the ``[NA]`` phrases of logged answers ask the graph for.

A phrase without support names neither entity nor property. The entity is who its sentence is
about; the property is guessed from the words of the sentence near the phrase and from whether
the phrase is a date, a number or a name. The guess is for a person who decides what to add.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from guardrail.core.text.dates import find_dates
from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.properties import cues, is_single_valued, property_name
from guardrail.core.text.words import Token, fold, tokenise
from guardrail.core.types import LinkedEntity, Sentence, Span, SpanKind, Triple, Value

if TYPE_CHECKING:
    from guardrail.log.entries import Record

__all__ = ["Gap", "GapFinder", "Gaps"]

MOST_PHRASES = 300_000
"""More phrases without support than this are counted, but no longer looked into."""
PHRASES_KEPT = 3
NEAR = 3.0
"""A cue this many lower-case words away from the phrase weighs half of one beside it; names in
between do not count, since a list of values has its cue before the first."""
OWN_LABEL = 1.0
"""Added for a property all of whose label stands in the sentence."""
KNOWN_VALUE = 3.0
"""Added for a property that has the phrase as a value elsewhere in the log's evidence."""
FOLLOWING = 0.4
"""A cue behind the phrase weighs this much of one before it: English puts values last."""
FOREIGN = 0.4
"""Weight of a property of the package's own vocabulary that the log's evidence never shows."""
LEAST = 0.25
"""Below this the guess is worth less than the answer's own word for the relation."""


class Gap(Value):
    """Facts of one property that answers state of one entity and the evidence does not hold.

    Attributes:
        entity: Label of the entity.
        entity_id: Its id; None where the graph does not know it.
        property: The property guessed; in quotation marks where only the answer's own word for
            the relation is known.
        count: Answers that ask for it.
        phrases: Some of them, the most frequent first.
        record_id: A record that shows one.
    """

    entity: str
    entity_id: str | None = None
    property: str
    count: int = Field(ge=1)
    phrases: tuple[str, ...] = ()
    record_id: str


class Gaps(Value):
    """What is missing in the graph, most wanted first.

    Attributes:
        facts: By entity and property.
        entities: Label, id and number of phrases by entity.
        properties: Name and number of phrases by property.
        phrases: All phrases without support.
    """

    facts: tuple[Gap, ...] = ()
    entities: tuple[tuple[str, str | None, int], ...] = ()
    properties: tuple[tuple[str, int], ...] = ()
    phrases: int = 0


_Key = tuple[str | None, str, str]


class _Phrase(NamedTuple):
    entity: str
    entity_id: str | None
    sentence: str
    text: str
    start: int
    record_id: str
    person: bool


class GapFinder:
    """Gathers the phrases of a stream of records, and tells at the end what they ask for."""

    def __init__(self) -> None:
        self._phrases: list[_Phrase] = []
        self._total = 0
        self._properties: Counter[str] = Counter()
        self._values: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, record: Record) -> None:
        """Look at one more record."""
        for item in record.answer.evidence:
            if isinstance(item, Triple):
                name = property_name(item.property)
                self._properties[name] += 1
                if len(self._values) < MOST_PHRASES:
                    self._values[fold(item.value)][name] += 1
        self._total += sum(
            span.kind is SpanKind.NA
            for sentence in record.answer.judged
            if sentence.category is not None
            for span in sentence.spans
        )
        for phrase in _phrases(record):
            if len(self._phrases) < MOST_PHRASES:
                self._phrases.append(phrase)

    def result(self, most: int = 100) -> Gaps:
        """The facts asked for most.

        Args:
            most: Length of each list.
        """
        namer = _PropertyNamer(self._properties, self._values)
        records: dict[_Key, dict[str, None]] = defaultdict(dict)
        texts: dict[_Key, Counter[str]] = defaultdict(Counter)
        certain: dict[_Key, float] = defaultdict(float)
        for phrase in self._phrases:
            name, certainty = namer.name(phrase)
            key = (phrase.entity_id, phrase.entity, name)
            records[key][phrase.record_id] = None
            texts[key][phrase.text] += 1
            certain[key] = max(certain[key], certainty)
        counts = {key: len(ids) for key, ids in records.items()}
        # Of what is asked for as often, the surest guess comes first.
        facts = sorted(counts, key=lambda key: (-counts[key], -certain[key], key[1:]))
        entities: Counter[tuple[str, str | None]] = Counter()
        properties: Counter[str] = Counter()
        for (entity_id, entity, name), count in counts.items():
            entities[(entity, entity_id)] += count
            properties[name] += count
        return Gaps(
            facts=tuple(
                Gap(
                    entity=key[1],
                    entity_id=key[0],
                    property=key[2],
                    count=counts[key],
                    phrases=tuple(text for text, _ in texts[key].most_common(PHRASES_KEPT)),
                    record_id=next(reversed(records[key])),
                )
                for key in facts[:most]
            ),
            entities=tuple((*key, count) for key, count in entities.most_common(most)),
            properties=tuple(properties.most_common(most)),
            phrases=self._total,
        )


def _phrases(record: Record) -> Iterator[_Phrase]:
    links = record.answer.entities
    main = links[0] if links else None
    topic = main
    for sentence in record.answer.judged:
        if sentence.category is None:
            continue
        about = _subject(sentence, links, topic)
        topic = about or topic
        missing = [span for span in sentence.spans if span.kind is SpanKind.NA]
        for span in missing:
            found = about or topic
            label = found.entity.label if found else _leading_name(sentence.text, span.text)
            if label is None:
                continue
            yield _Phrase(
                entity=label,
                entity_id=found.entity.id if found else None,
                sentence=sentence.text,
                text=span.text,
                start=span.start - sentence.start,
                record_id=record.id,
                person=found is not None and found.mention.ner == "PERSON",
            )


def _subject(
    sentence: Sentence, links: Sequence[LinkedEntity], topic: LinkedEntity | None
) -> LinkedEntity | None:
    """Who a sentence is about: the entity whose facts it cites, else the first that it names."""
    by_id = {link.entity.id: link for link in links}
    by_label = {fold(link.entity.label): link for link in links}
    for span in sentence.spans:
        fact = span.triple
        if fact is not None:
            cited = by_id.get(fact.subject_id or "") or by_label.get(fold(fact.subject))
            if cited is not None:
                return cited
    text = fold(sentence.text)
    missing = [_place(span, sentence) for span in sentence.spans if span.kind is SpanKind.NA]
    whole = any(end - start >= len(sentence.text) for start, end in missing)
    named: list[tuple[int, LinkedEntity]] = []
    for link in links:
        for name in {fold(link.mention.text), fold(link.entity.label)}:
            place = text.find(name) if name else -1
            inside = not whole and any(start <= place < end for start, end in missing)
            if place >= 0 and not inside:
                named.append((place, link))
    first = min(named, key=lambda item: item[0], default=None)
    if first is None:
        return topic
    leading = re.match(r"\w+", text)
    points = leading is not None and leading[0] in lexicon_set("function_words", "third_persons")
    return topic if topic is not None and points else first[1]


def _place(span: Span, sentence: Sentence) -> tuple[int, int]:
    return span.start - sentence.start, span.end - sentence.start


def _leading_name(sentence: str, phrase: str) -> str | None:
    """The first name of a sentence that is not the phrase itself."""
    for match in _name_runs().finditer(sentence):
        name = match.group().strip(".'’")
        if fold(name) in _stop_words() or (name in phrase and len(phrase) < len(sentence)):
            continue
        return name
    return None


@cache
def _name_runs() -> re.Pattern[str]:
    word = r"[A-Z][\w'’.-]*"
    particles = "|".join(sorted(lexicon_set("names", "particles")))
    return re.compile(rf"{word}(?:\s+(?:(?:{particles})\s+)*{word})*")


class _PropertyNamer:
    """Guesses the property a phrase is a value of.

    Args:
        seen: Properties of the log's evidence, with how often each was seen; those known to the
            package's own vocabulary are added.
        values: The properties that have a value, by the value's folded text.
    """

    def __init__(self, seen: Counter[str], values: Mapping[str, Counter[str]]) -> None:
        self._seen = seen
        self._values = values
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        self._label: dict[str, frozenset[str]] = {}
        for name in sorted({*seen, *lexicon("properties")["wording"]} - {""}):
            self._label[name] = _stems(name.split())
            for stem in (cues(name) | self._label[name]) - _stop_words():
                self._by_stem[stem].append(name)

    def name(self, phrase: _Phrase) -> tuple[str, float]:
        """The likeliest property and how sure that is, from 0.

        The relation's own word in quotation marks where no property fits.
        """
        tokens = tokenise(phrase.sentence)
        first, last = phrase.start, phrase.start + len(phrase.text)
        inside = [n for n, token in enumerate(tokens) if first <= token.start < last]
        low, high = (inside[0], inside[-1]) if inside else (0, len(tokens) - 1)
        whole = len(phrase.text) >= 0.9 * len(phrase.sentence)
        kind = _kind(phrase.text, tokens[low - 1].folded if low else "")
        # A word of relation, such as "born", names its property itself.
        whole = whole or (kind == "term" and low == high)
        scores = self._cued(tokens, low, high, whole, phrase.entity)
        # A bare number is a value of anything.
        values: Counter[str] = (
            Counter() if kind == "number" else self._values.get(fold(phrase.text), Counter())
        )
        for name, count in values.items():
            scores[name] += KNOWN_VALUE * count / values.total()
        for name in scores:
            scores[name] *= _fit(name, kind)
            if name not in self._seen and self._seen:
                scores[name] *= FOREIGN
        best = max(scores, key=lambda name: (scores[name], self._seen[name], name), default=None)
        if best is not None and scores[best] >= LEAST:
            return best, scores[best]
        if kind == "term" and phrase.person:
            return "occupation", LEAST
        return self._relation(tokens, low, kind), 0.0

    def _cued(
        self, tokens: Sequence[Token], low: int, high: int, whole: bool, entity: str
    ) -> dict[str, float]:
        """Properties by the words of the sentence that name them, near ones more."""
        subject = {token.stem for token in tokenise(entity)}
        present = {token.stem for token in tokens}
        scores: dict[str, float] = defaultdict(float)
        plain = [token.text[:1].islower() and token.folded != "and" for token in tokens]
        for place, token in enumerate(tokens):
            names = self._by_stem.get(token.stem)
            if not names or (low <= place <= high and not whole) or token.stem in subject:
                continue
            between = plain[place + 1 : low] if place < low else plain[high + 1 : place]
            away = 0.0 if whole else sum(between) / NEAR
            weight = (FOLLOWING if place > high else 1.0) / (1.0 + away * away)
            for name in names:
                scores[name] += weight / len(names) ** 0.5
        for name in scores:
            if self._label[name] and self._label[name] <= present:
                scores[name] += OWN_LABEL * min(1.0, scores[name])
        return scores

    def _relation(self, tokens: Sequence[Token], low: int, kind: str) -> str:
        """The last word of content before the phrase."""
        for token in reversed(tokens[:low]):
            if token.folded not in _stop_words() and token.text[:1].islower():
                return f"“{token.folded}”"
        return {"date": "date", "number": "number"}.get(kind, "“related to”")


def _kind(text: str, before: str) -> str:
    if find_dates(text):
        return "date"
    if text[:1].isdigit():
        return "number"
    if text[:1].islower():
        return "term"
    return "place" if before in lexicon_set("properties", "place_leads") else "name"


def _fit(name: str, kind: str) -> float:
    """How well values of a property are such phrases: 0 rules it out."""
    words = set(name.split())
    if name in lexicon_set("properties", "terms"):
        return 1.2 if kind == "term" else 0.3
    dated = bool(words & lexicon_set("properties", "date_words"))
    if kind == "date":
        return 2.0 if dated else 0.2
    if dated:
        return 0.0 if kind in ("name", "term", "place") else 0.5
    if kind == "number":
        return 1.5 if words & lexicon_set("properties", "number_words") else 0.7
    if words & lexicon_set("properties", "number_words"):
        return 0.2
    if words & lexicon_set("properties", "place_words"):
        return {"place": 1.5, "name": 0.7}.get(kind, 0.3)
    return 1.2 if kind == "name" and not is_single_valued(name) else 1.0


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(
        token.stem for word in words if word not in _stop_words() for token in tokenise(word)
    )


def _stop_words() -> frozenset[str]:
    return lexicon_set("function_words", "stop_words")
