"""Evidence prepared once: parsed, de-duplicated, cut into windows in canonical order, indexed.

The judge, the checks, correction, sessions and ranking all read evidence from here. The order of
the items and repeated items leave no trace, except in the numbers of untitled passages, with which
citations name them.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.text.names import NO_NAMES, by_words_alone, find_names, words_of_label
from guardrail.core.text.quantities import Quantity
from guardrail.core.text.words import CODE, Token, content_stems, copy_key, fold, property_words
from guardrail.core.types import Evidence, Triple
from guardrail.core.workers import stop_if_given_up
from guardrail.evidence.statements import Statement, as_spoken, statements_of
from judges.base import EVIDENCE_CHARS

if TYPE_CHECKING:
    from guardrail.core.text.values import TypedValue


class Window(NamedTuple):
    """What the judge encodes as one: the facts of one subject, or some sentences of a section.

    Attributes:
        head: Title and heading of the section; empty for facts, which name their subject.
        places: Places of its statements in ``PreparedEvidence.statements``.
        chars: Length of its text.
        section: Title and heading, or how a passage without any begins; empty for facts.
    """

    head: str
    places: tuple[int, ...]
    chars: int
    section: str


class Selection(NamedTuple):
    """The statements that one sentence is held against."""

    places: tuple[int, ...]
    priority: tuple[int, ...]
    windows: tuple[int, ...] = ()

    def only(self, wanted: Collection[int]) -> Selection:
        """The statements of some places alone."""
        kept = [number for number, place in enumerate(self.places) if place in wanted]
        where = {number: place for place, number in enumerate(kept)}
        return Selection(
            tuple([self.places[number] for number in kept]),
            tuple([where[number] for number in self.priority if number in where]),
            tuple([self.windows[number] for number in kept]),
        )


class _NameIndex(NamedTuple):
    """Subjects by each word and by the rarest word of a name, and those always looked for."""

    by_word: Mapping[str, Sequence[str]]
    by_rarest: Mapping[str, Sequence[tuple[str, frozenset[str]]]]
    always: frozenset[str]


@dataclass(eq=False)
class PreparedEvidence:
    """Immutable, numbered statements in windows; derived indexes are built when first needed.

    Attributes:
        statements: All statements, window by window.
        windows: The windows, in canonical order.
        names: Other names of subjects, by label.
        wider: Names of the places that contain the value of a triple, by the value's id.
        items: Number of items of evidence as given, which references such as ``[2]`` may count.
    """

    statements: tuple[Statement, ...]
    windows: tuple[Window, ...]
    names: Mapping[str, tuple[str, ...]]
    wider: Mapping[str, tuple[str, ...]]
    items: int

    def __post_init__(self) -> None:
        self._spoken: dict[frozenset[str], PreparedEvidence] = {}

    @cached_property
    def bytes(self) -> int:
        """Estimated memory, indexes included."""
        # Memory of prepared evidence per character of its statements, all indexes included: 118 for
        # 840 triples, 44 for 94 passages of invented handbooks, by tracemalloc
        return 120 * self.chars

    def spoken(self, text: str) -> PreparedEvidence:
        """The same evidence, with the other names that an answer uses written after the label."""
        if not self.names and not self.wider:
            return self
        used = frozenset(
            name
            for several in (*self.names.values(), *self.wider.values())
            for name in several
            if name in text
        )
        if not used:
            return self
        if used not in self._spoken:
            statements = tuple(
                as_spoken(item, self.names, self.wider, text) for item in self.statements
            )
            self._spoken[used] = replace(self, statements=statements)
        return self._spoken[used]

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of all words, headings and other names of subjects included."""
        found = {stem for statement in self.statements for stem in statement.stems}
        heads = {window.head for window in self.windows}
        return frozenset(found.union(*map(content_stems, (*self.all_names, *heads))))

    @cached_property
    def all_names(self) -> frozenset[str]:
        """All names of all subjects."""
        found = {name for item in self.statements for name in (item.subject, *item.names)}
        return frozenset(found - {""})

    @cached_property
    def entities(self) -> frozenset[str]:
        """Labels and ids of the subjects of triples, as markers cite them."""
        found = {
            name
            for item in self.statements
            if item.triple is not None
            for name in (item.triple.subject, item.triple.subject_id)
            if name
        }
        return frozenset(found)

    @cached_property
    def described(self) -> frozenset[str]:
        """The subjects of triples, by label."""
        return frozenset(item.triple.subject for item in self.statements if item.triple)

    @cached_property
    def values(self) -> dict[str, list[TypedValue]]:
        """All typed values by kind, those of subjects and properties included."""
        found: dict[str, list[TypedValue]] = {}
        for statement in self.statements:
            stop_if_given_up()
            for value in (*statement.values, *statement.label_values):
                found.setdefault(value.kind, []).append(value)
        return found

    @cached_property
    def folded_values(self) -> frozenset[str]:
        """The values of facts, folded."""
        return frozenset(fold(item.fact.value) for item in self.statements if item.fact)

    @cached_property
    def column_texts(self) -> dict[str, tuple[str, ...]]:
        """The different texts that a property or column has, by its label."""
        found: dict[str, dict[str, None]] = defaultdict(dict)
        for item in self.statements:
            if item.triple is not None and not item.is_typed and item.yes is None:
                found[item.triple.property][item.triple.value] = None
        return {label: tuple(values) for label, values in found.items()}

    @cached_property
    def columns(self) -> dict[tuple[str, str], list[tuple[int, Quantity]]]:
        """By property and kind, the amounts that the property has, each with its fact."""
        columns: dict[tuple[str, str], list[tuple[int, Quantity]]] = defaultdict(list)
        for number, statement in enumerate(self.statements):
            for item in statement.values if statement.is_typed else ():
                if statement.fact and isinstance(item.value, Quantity):
                    columns[statement.fact.property, item.kind].append((number, item.value))
        return columns

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The different subjects."""
        return tuple(dict.fromkeys([item.subject for item in self.statements if item.subject]))

    @cached_property
    def _facts_by_subject(self) -> dict[str, list[tuple[int, Statement]]]:
        found: dict[str, list[tuple[int, Statement]]] = defaultdict(list)
        for number, item in enumerate(self.statements):
            if item.fact and item.subject:
                found[item.subject].append((number, item))
        return found

    def facts_of(self, subjects: Collection[str]) -> list[tuple[int, Statement]]:
        """The facts about some subjects, each with its place."""
        found = [pair for subject in subjects for pair in self._facts_by_subject.get(subject, ())]
        return sorted(found, key=itemgetter(0))

    @cached_property
    def copies(self) -> dict[str, list[int]]:
        """Places of the statements by their own words, without marks and case."""
        found: dict[str, list[int]] = defaultdict(list)
        for number, statement in enumerate(self.statements):
            if not statement.quoted:
                for key in {copy_key(statement.words), copy_key(statement.text)}:
                    found[key].append(number)
        return found

    def before(self, number: int) -> list[str]:
        """What a sentence of a passage follows: its title, its heading and earlier sentences."""
        mine = self.statements[number]
        found = [mine.subject, mine.head]
        for other in reversed(self.statements[:number]):
            if (other.place, other.head) != (mine.place, mine.head) or len(found) > 5:
                break
            found.append(other.text)
        return found

    def mentions(self, name: str) -> bool:
        """True if a statement contains a name, its code, or all its words if it has no figures."""
        if code := CODE.search(name):
            name = code.group()
        known = content_stems(name) <= self.stems and not any(map(str.isdigit, name))
        return known or any(fold(name) in fold(item.text) for item in self.statements)

    @cached_property
    def value_names(self) -> tuple[str, ...]:
        """Names that occur only as values of facts, and in no passage."""
        values = dict.fromkeys([item.triple.value for item in self.statements if item.triple])
        found = [value for value in values if find_names(value) == [(0, len(value))]]
        if not found:
            return ()
        prose = " ".join([item.text for item in self.statements if item.triple is None])
        return tuple([name for name in found if name not in self.all_names and name not in prose])

    def labels_in(self, tokens: Sequence[Token]) -> list[str]:
        """The subjects that a text may name in full: all words of a name are among its words."""
        words = {token.folded for token in tokens}
        found = set(self.name_index.always)
        for word in self.name_index.by_rarest.keys() & words:
            for label, rest in self.name_index.by_rarest[word]:
                if rest <= words:
                    found.add(label)
        return [label for label in self.labels if label in found] if found else []

    def labels_sharing(self, tokens: Sequence[Token]) -> list[str]:
        """The subjects with a word that a text writes with a capital."""
        words = {token.folded for token in tokens if token.text[:1].isupper()}
        found: set[str] = set()
        for word in words & self.name_index.by_word.keys():
            found.update(self.name_index.by_word[word])
        return [label for label in self.labels if label in found] if found else []

    @cached_property
    def name_index(self) -> _NameIndex:
        """The subjects by the words of their names."""
        by_word: dict[str, list[str]] = defaultdict(list)
        names = [
            (label, words_of_label(name))
            for label in self.labels
            for name in (label, *self.names.get(label, ()))
        ]
        for label, words in names:
            for word in words:
                by_word[word].append(label)
        by_rarest: dict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
        rarity = {word: len(labels) for word, labels in by_word.items()}
        for label, words in names:
            if words:
                rarest = min(words, key=rarity.__getitem__)
                by_rarest[rarest].append((label, frozenset(words)))
        always = frozenset(label for label in self.labels if not by_words_alone(label))
        return _NameIndex(by_word, by_rarest, always)

    # --- selection -----------------------------------------------------------------------

    def select(
        self,
        sentence: str,
        asked: str = "",
        context: str = "",
        subjects: Collection[str] = (),
        *,
        chars: int = EVIDENCE_CHARS,
    ) -> Selection:
        """Choose the windows that one sentence is held against, the most relevant ones first.

        Args:
            sentence: The sentence.
            asked: The question, whose words weigh more the shorter the sentence is.
            context: Earlier sentences, whose words weigh less.
            subjects: What the sentence is about; facts about it that share a word with it go first.
            chars: Room for the windows' texts.
        """
        scores = self._scores(sentence, context, asked)
        stems = content_stems(sentence)
        for number, statement in self.facts_of(subjects):
            assert statement.fact is not None
            if not stems.isdisjoint(content_stems(statement.fact.property)):
                scores[number] += 6.0
        best = [max(map(scores.__getitem__, window.places)) for window in self.windows]
        chosen: set[int] = set()
        room, heads = chars, set[str]()
        for number in sorted(range(len(best)), key=best.__getitem__, reverse=True):
            head, _, size, _ = self.windows[number]
            # What shares no word with the sentence is read with the rest of its section alone
            near = best[number] > 0.0 or (head and head in heads)
            if not chosen or (near and size <= room):
                chosen.add(number)
                heads.add(head)
                room -= size
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        pairs = [(w, place) for w in sorted(chosen) for place in self.windows[w].places]
        where = {place: number for number, (_, place) in enumerate(pairs)}
        return Selection(
            tuple([place for _, place in pairs]),
            tuple([where[place] for place in order if place in where]),
            tuple([window for window, _ in pairs]),
        )

    def subjects_read(self, selection: Selection) -> tuple[frozenset[str], frozenset[str]]:
        """The titles of chosen passages, and the subjects of chosen facts; untitled ones are ''."""
        chosen = [self.statements[place] for place in selection.places]
        prose, facts = (
            frozenset(item.subject for item in chosen if (item.triple is None) is passages)
            for passages in (True, False)
        )
        return prose, facts

    @cached_property
    def whole(self) -> tuple[str, ...]:
        """All statements as the judge reads them."""
        pairs = [(n, place) for n, window in enumerate(self.windows) for place in window.places]
        windows, places = zip(*pairs, strict=True) if pairs else ((), ())
        return self.texts(Selection(places, (), windows))

    def texts(self, selection: Selection) -> tuple[str, ...]:
        """Chosen statements as the judge reads them: the first of a window with its heading."""
        found = []
        last = None
        for window, place in zip(selection.windows, selection.places, strict=True):
            head = self.windows[window].head if window != last else ""
            text = self.statements[place].text
            found.append(f"{head}: {text}" if head else text)
            last = window
        return tuple(found)

    @cached_property
    def chars(self) -> int:
        """Length of all statements."""
        return sum([window.chars for window in self.windows])

    @cached_property
    def _postings(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for window in self.windows:
            head = content_stems(window.head)
            for place in window.places:
                stop_if_given_up()
                for stem in self.statements[place].stems | head:
                    found[stem].append(place)
        return found

    def _scores(self, sentence: str, context: str, asked: str) -> list[float]:
        """How much each statement has to do with a sentence, by shared words."""
        own = content_stems(sentence)
        wanted = dict.fromkeys(content_stems(context), 0.3)
        # Of a short sentence, such as *Half past five*, the question says what it is about
        wanted |= dict.fromkeys(content_stems(asked), max(0.3, min(1.0, 2 / max(1, len(own)))))
        wanted |= dict.fromkeys(own, 1.0)
        related = self._related(wanted)
        scores = [0.0] * len(self.statements)
        for stem, weight in sorted(wanted.items()):  # sums are the same in every process
            postings = related.intersection(self._postings.get(stem, ()))
            rarity = math.log(1 + (len(related) - len(postings) + 0.5) / (len(postings) + 0.5))
            for place in postings:
                # BM25 with k1 = 1.2, of a word that stands once (Robertson and Zaragoza 2009)
                scores[place] += weight * rarity / 2.2
        return scores

    def _related(self, wanted: Mapping[str, float]) -> set[int]:
        """Places of facts, and of the sections that share over half the words that the best does.

        What other sections say changes nothing: neither the choice nor how much a word weighs. A
        single letter or figure counts for nothing: words may be spelled out.
        """
        shared = [0.0] * len(self.windows)
        for stem, weight in sorted(wanted.items()):
            for number in {self._window_of[place] for place in self._postings.get(stem, ())}:
                shared[number] += weight if len(stem) > 1 else 0.0
        least, both = max(shared, default=0.0) / 2, zip(self.windows, shared, strict=True)
        near = {"", *(w.section for w, weight in both if weight > least or not least)}
        return {place for w in self.windows if w.section in near for place in w.places}

    @cached_property
    def _window_of(self) -> tuple[int, ...]:
        return tuple([number for number, window in enumerate(self.windows) for _ in window.places])


def prepare(
    evidence: Sequence[Evidence],
    names: Mapping[str, tuple[str, ...]] = NO_NAMES,
    wider: Mapping[str, tuple[str, ...]] = NO_NAMES,
) -> PreparedEvidence:
    """Prepare evidence.

    Args:
        evidence: Triples and passages, in any order, with or without duplicates.
        names: Other names of subjects, by label.
        wider: Names of the places that contain the value of a triple, by the value's id, the
            nearest first.
    """
    names = _with_names_of_rows(evidence, names)
    windows = sorted(_windows(statements_of(evidence, names)))
    statements: list[Statement] = []
    found = []
    for _, head, members, section in windows:
        places = range(len(statements), len(statements) + len(members))
        statements += members
        chars = len(head) + len(members) + sum([len(item.text) for item in members])
        found.append(Window(head, tuple(places), chars, section))
    return PreparedEvidence(tuple(statements), tuple(found), names, wider, len(evidence))


def _with_names_of_rows(
    evidence: Sequence[Evidence], names: Mapping[str, tuple[str, ...]]
) -> Mapping[str, tuple[str, ...]]:
    """The other names of subjects, with those in a column such as *bell name* of the table *bells*.

    Such a column names its rows where all its texts differ; *customer name* names others.
    """
    columns: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for item in evidence:
        if isinstance(item, Triple) and item.row is not None:
            words = content_stems(property_words(item.property))
            if "name" in words and words <= {"name", *content_stems(item.row.table)}:
                columns[item.row.table, item.property][item.subject] = item.value
    found = dict(names)
    for column in columns.values():
        if len({*column.values()}) == len(column):
            for subject, name in column.items():
                found[subject] = (*found.get(subject, ()), name)
    return found


class _Part(NamedTuple):
    """A window before it is numbered; sorts by its content."""

    key: tuple[object, ...]
    head: str
    members: list[Statement]
    section: str


def _windows(statements: Sequence[Statement]) -> list[_Part]:
    """Cut statements into windows by size; equal windows become one."""
    facts: dict[str, dict[tuple[object, ...], Statement]] = defaultdict(dict)
    sections: dict[tuple[int, str], list[Statement]] = defaultdict(list)
    for statement in statements:
        if statement.triple is None:
            sections[statement.place, statement.head].append(statement)
        else:
            row = statement.triple.row
            place = (statement.text, row.table if row else "", row.number if row else 0)
            facts[statement.subject].setdefault(place, statement)
    found: dict[tuple[object, ...], _Part] = {}
    for subject, by_key in facts.items():
        members = [by_key[key] for key in sorted(by_key)]
        for part in _cut(members):
            key = (0, subject, tuple([item.text for item in part]))
            found[key] = _Part(key, "", part, "")
    for (_, head), members in sections.items():
        for part in _cut(members):
            content = (1, head, tuple((item.text, item.above, item.quoted) for item in part))
            one = _Part(content, head, part, head or members[0].text)
            found[content] = min(found.get(content, one), one, key=attrgetter("section"))
    return list(found.values())


def _cut(statements: Sequence[Statement]) -> list[list[Statement]]:
    parts: list[list[Statement]] = []
    room = 0
    for statement in statements:
        size = len(statement.text) + 1
        if size > room:
            parts.append([])
            # Characters of a window, some 75 of a judge's tokens
            room = 300
        parts[-1].append(statement)
        room -= size
    return parts


class EvidenceCache:
    """Prepared evidence by its content, bounded in bytes; may be used from many threads."""

    def __init__(self, most_bytes: int = 64 * 2**20) -> None:
        self._room = most_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, PreparedEvidence] = OrderedDict()
        self._bytes = 0
        self._last: tuple[object, object, PreparedEvidence] | None = None

    def prepare(
        self,
        evidence: Sequence[Evidence],
        names: Mapping[str, tuple[str, ...]] = NO_NAMES,
        wider: Mapping[str, tuple[str, ...]] = NO_NAMES,
    ) -> PreparedEvidence:
        """``prepare``, or what it returned before for the same content."""
        last = self._last  # the sentences of a stream ask with the very same tuple
        if last is not None and last[0] is evidence and last[1] == (names, wider):
            return last[2]
        key = _digest(evidence, names, wider)
        with self._lock:
            prepared = self._kept.get(key)
        prepared = prepared or prepare(evidence, names, wider)
        with self._lock:
            if key not in self._kept:
                self._bytes += prepared.bytes
            self._kept[key] = prepared
            self._kept.move_to_end(key)
            while self._bytes > self._room and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1].bytes
            self._last = evidence, (names, wider), prepared
        return prepared


def _digest(
    evidence: Sequence[Evidence],
    names: Mapping[str, tuple[str, ...]],
    wider: Mapping[str, tuple[str, ...]],
) -> bytes:
    """A hash of everything that ``prepare`` reads."""
    digest = hashlib.blake2b(digest_size=16)
    for item in evidence:
        if isinstance(item, Triple):
            row = item.row
            place = (row.table, row.number) if row else ()
            fields: tuple[object, ...] = (
                item.subject, item.property, item.value, item.subject_id, item.value_id, *place
            )  # fmt: skip
        else:
            fields = (item.text, item.id, item.title)
        digest.update(repr(fields).encode("utf-8", "surrogatepass"))
    digest.update(
        repr((sorted(names.items()), sorted(wider.items()))).encode("utf-8", "surrogatepass")
    )
    return digest.digest()
