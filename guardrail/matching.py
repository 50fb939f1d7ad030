"""Exact evidence for one sentence: which triples' values, subjects and relations stand in it.

No model takes part. What is found here decides the easy cases, proposes the pairs that the NLI
judge is asked about, and tells which words of the sentence a cited triple covers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from guardrail.naming import (
    NO_NAMES,
    Name,
    SentenceTokens,
    Span,
    initials,
    name_of,
    named_in,
    numeral,
    runs,
)
from guardrail.types import Triple
from guardrail.values import (
    Agreement,
    Date,
    Token,
    agreement,
    number_of,
    same_number,
    word_set,
)
from guardrail.vocabulary import (
    RECORDS,
    STOP_WORDS,
    cues,
    describes_entity,
    inverse_cues,
    property_words,
)

__all__ = ["EvidenceIndex", "Match"]

ABOUT = word_set("about around approximately nearly almost over circa roughly some ca c")
YES = frozenset({"yes", "true"})
NO = frozenset({"no", "false"})

FIRST_SURE_YEAR = 1000
"""Smaller numbers are read as years only where a held date and the word before them say so."""

BEFORE_YEARS = frozenset({"in", "c", "ca", "around", "about", "circa", "year", "ad", "of", "since"})

NOT_THE_HEAD = word_set("vice deputy assistant associate acting honorary former pseudo anti ex sub")
"""Words before a noun that make something else of it: a vice president is no president."""

MIN_VALUE_SHARE = 0.5
"""Share of a value's content words that must stand in a sentence for the value to count."""


class Match(NamedTuple):
    """How a triple stands in a sentence.

    Attributes:
        triple: The triple.
        number: Its place in the evidence.
        value_share: Share of the value's content words found, 1.0 for a full or equivalent value.
        value_spans: Where they stand.
        finer: A date that the sentence tells more precisely than the triple holds.
        cue_spans: Where words stand that name the property.
        subject: ``explicit``, ``antecedent`` (a pronoun or the answer's topic), ``open`` (the
            sentence names no subject) or ``foreign`` (it speaks of something else).
        subject_spans: Where the subject stands.
        inverse: The sentence speaks of the value and names the subject.
    """

    triple: Triple
    number: int
    value_share: float
    value_spans: tuple[Span, ...]
    finer: Date | None
    cue_spans: tuple[Span, ...]
    subject: str
    subject_spans: tuple[Span, ...]
    inverse: bool = False

    @property
    def spans(self) -> tuple[Span, ...]:
        """All places in the sentence that the triple accounts for."""
        return self.value_spans + self.cue_spans + self.subject_spans


class EvidenceIndex:
    """Triples made ready to be looked for in sentences.

    Args:
        triples: The evidence, in the caller's order.
        names: Other names of entities by label.
    """

    def __init__(
        self, triples: Sequence[Triple], names: Mapping[str, tuple[str, ...]] = NO_NAMES
    ) -> None:
        self.triples = tuple(triples)
        self._names = names
        self._values = [name_of(triple.value) for triple in self.triples]
        self._subjects = [name_of(triple.subject) for triple in self.triples]
        self._by_word: dict[str, set[int]] = defaultdict(set)
        for number, (value, triple) in enumerate(zip(self._values, self.triples, strict=True)):
            words = {token.stem for token in value.tokens} | value.other_stems
            for name in (self._subjects[number], *map(name_of, names.get(triple.subject, ()))):
                words |= {token.stem for token in name.tokens}
            for word in words | cues(triple.property):
                self._by_word[word].add(number)
        self._dated = {number for number, value in enumerate(self._values) if value.date}

    @property
    def subjects(self) -> dict[str, None]:
        """The labels that triples are about, in order, without repeats."""
        return dict.fromkeys(triple.subject for triple in self.triples)

    def matches(
        self,
        sentence: SentenceTokens,
        *,
        topic: str | None,
        foreign: bool = False,
        pronoun: bool = False,
    ) -> list[Match]:
        """Look for every triple in a sentence.

        Args:
            sentence: The prepared sentence.
            topic: Label of the entity that a pronoun or an unnamed subject stands for.
            foreign: The sentence's own subject is none of the evidence's entities.
            pronoun: A pronoun stands for the topic, so that nobody unnamed can be meant.

        Returns:
            Triples with at least a value or a property word in the sentence, in evidence order.
        """
        near: set[int] = set(self._dated) if sentence.dates else set()
        for word in sentence.by_stem:
            near |= self._by_word.get(word, set())
        subjects = dict.fromkeys(self.triples[number].subject for number in sorted(near))
        named = named_in(sentence, subjects, self._names)
        found = []
        for number in sorted(near):
            match = self._match(sentence, number, topic, foreign, named)
            if match is not None:
                found.append(match)
        if named or (pronoun and topic in self.subjects):
            return found
        return [
            match._replace(subject="open")
            if match.subject == "other" and self._near_topic(match.triple, topic)
            else match
            for match in found
        ]

    def _near_topic(self, triple: Triple, topic: str | None) -> bool:
        """Whether a fact of an unnamed subject may be meant where the sentence has a topic.

        A fact of an entity that no fact joins to the topic speaks of somebody else who happens
        to share a value.
        """
        if topic is None or topic not in self.subjects:
            return True
        return triple.value == topic or any(
            one.value == triple.subject for one in self.triples if one.subject == topic
        )

    def _match(
        self,
        sentence: SentenceTokens,
        number: int,
        topic: str | None,
        foreign: bool,
        named: dict[str, tuple[Span, ...]],
    ) -> Match | None:
        triple, value = self.triples[number], self._values[number]
        subject_spans = named.get(triple.subject, ())
        subject = "explicit" if subject_spans else "other"
        if not subject_spans:
            if topic == triple.subject:
                subject = "antecedent"
            elif foreign:
                subject = "foreign"
        itself = triple.value == triple.subject or property_words(triple.property) in RECORDS
        share, spans, finer = _find_value(sentence, value, triple, () if itself else subject_spans)
        inverse = False
        if share < 1.0 and subject == "explicit" and topic is not None and triple.value == topic:
            share, spans, inverse = 1.0, (), True
        wanted = cues(triple.property) | inverse_cues(triple.property)
        period = sentence.lifetime(property_words(triple.property))
        cue_spans: tuple[Span, ...] = ((period[0], period[0]),) if period else ()
        cue_spans += tuple(
            (sentence.tokens[place].start, sentence.tokens[place].end)
            for word in sorted(wanted)
            for place in sentence.by_stem.get(word, ())
            if not _inside(sentence.tokens[place], subject_spans)
        )
        if share < MIN_VALUE_SHARE:
            share, spans = 0.0, ()
        if share == 0.0 and not cue_spans:
            return None
        return Match(
            triple, number, share, spans, finer, cue_spans, subject, subject_spans, inverse
        )


def _find_value(
    sentence: SentenceTokens, value: Name, triple: Triple, subject_spans: tuple[Span, ...]
) -> tuple[float, tuple[Span, ...], Date | None]:
    """How much of a value stands in a sentence: share, places, finer date."""
    if value.date is not None:
        dated = _find_date(sentence, value.date)
        if dated[1] or value.number is None:
            return dated
        return _find_number(sentence, value.number)
    word = triple.value.strip().lower()
    if word in YES or word in NO:
        return _find_truth(sentence, triple, word in YES)
    if not value.tokens:
        return 0.0, (), None
    whole = tuple(
        span
        for span in runs(sentence, value.tokens) or initials(sentence, value.tokens)
        if not _within(span, subject_spans)
    )
    if whole:
        return 1.0, whole, None
    if value.number is not None:
        return _find_number(sentence, value.number)
    other = tuple(
        (token.start, token.end)
        for name in value.others
        for place in sentence.by_folded.get(name, ())
        if not _inside(token := sentence.tokens[place], subject_spans)
        and (name != "us" or token.text.isupper())
        and not _opens_name(sentence, place)
    )
    if other:
        return 1.0, other, None
    part_of_name = _name_part(sentence, value, subject_spans)
    if part_of_name:
        return 1.0, part_of_name, None
    head = _head(sentence, value, triple)
    if head:
        return 1.0, head, None
    spans: list[Span] = []
    hits = 0.0
    for number, part in enumerate(value.tokens):
        places = [
            place
            for place in sentence.by_stem.get(part.stem, ())
            if not _inside(sentence.tokens[place], subject_spans)
            and not (
                len(value.tokens) == 1
                and sentence.tokens[place].folded != part.folded
                and _opens_name(sentence, place)
            )
        ]
        if not places and numeral(part, number):
            return 0.0, (), None  # Bahram III is not Bahram I in part
        if places:
            hits += 1.0
            found = [sentence.tokens[place] for place in places]
            spans += [(token.start, token.end) for token in found]
    return hits / len(value.tokens), tuple(sorted(set(spans))), None


def _opens_name(sentence: SentenceTokens, place: int) -> bool:
    """Whether a capitalised word follows: the *Italian Socialist Party* makes nobody Italian."""
    here, after = sentence.tokens[place], sentence.tokens[place + 1 : place + 2]
    return bool(after) and after[0].start - here.end == 1 and after[0].text[:1].isupper()


def _head(sentence: SentenceTokens, value: Name, triple: Triple) -> tuple[Span, ...]:
    """Where the noun stands that a description specifies: a *travel writer* is a *writer*."""
    words = triple.value.split()
    if (
        len(words) < 2
        or not triple.value.islower()
        or not all(word.isalpha() for word in words)
        or not describes_entity(triple.property)
        or NOT_THE_HEAD & set(words)
    ):
        return ()
    noun = value.tokens[-1].folded
    return tuple(
        (token.start, token.end)
        for form in (noun, f"{noun}s")
        for place in sentence.by_folded.get(form, ())
        if (token := sentence.tokens[place]).text.islower()
    )


def _name_part(
    sentence: SentenceTokens, value: Name, subject_spans: tuple[Span, ...]
) -> tuple[Span, ...]:
    """Where the first or last name of a person stands alone: ``Orazio`` or ``Gentileschi``."""
    if not 2 <= len(value.tokens) <= 4 or not all(part.text[:1].isupper() for part in value.tokens):
        return ()
    names = {part.folded for part in value.tokens}
    spans = []
    for part in (value.tokens[-1], value.tokens[0]):
        if numeral(part, value.tokens.index(part)):
            continue
        for place in sentence.by_folded.get(part.folded, ()):
            token = sentence.tokens[place]
            beside = sentence.tokens[max(0, place - 1) : place + 2]
            alone = all(
                one.folded in names or one.folded in STOP_WORDS or not one.text[:1].isupper()
                for one in beside
            )
            if token.text[:1].isupper() and alone and not _inside(token, subject_spans):
                spans.append((token.start, token.end))
    return tuple(spans)


def _find_date(sentence: SentenceTokens, held: Date) -> tuple[float, tuple[Span, ...], Date | None]:
    for date in sentence.dates:
        relation = agreement(date, held)
        if relation is not Agreement.CONFLICT:
            finer = date if relation is Agreement.FINER else None
            return 1.0, ((date.start, date.end),), finer
    if 0 < held.year < FIRST_SURE_YEAR:
        for place in sentence.by_folded.get(str(held.year), ()):
            if place and sentence.tokens[place - 1].folded in BEFORE_YEARS:
                token = sentence.tokens[place]
                return 1.0, ((token.start, token.end),), None
    return 0.0, (), None


def _find_number(
    sentence: SentenceTokens, held: float
) -> tuple[float, tuple[Span, ...], Date | None]:
    for place, token in enumerate(sentence.tokens):
        for length in (3, 2, 1):
            run = sentence.tokens[place : place + length]
            told = number_of(run)
            if told is None:
                continue
            before = sentence.tokens[max(0, place - 2) : place]
            about = any(word.folded in ABOUT for word in before)
            if same_number(told, held, about=about):
                return 1.0, ((token.start, run[-1].end),), None
    return 0.0, (), None


def _find_truth(
    sentence: SentenceTokens, triple: Triple, holds: bool
) -> tuple[float, tuple[Span, ...], Date | None]:
    spans = tuple(
        (sentence.tokens[place].start, sentence.tokens[place].end)
        for word in sorted(cues(triple.property))
        for place in sentence.by_stem.get(word, ())
    )
    if spans and sentence.negated != holds:
        return 1.0, spans, None
    return 0.0, (), None


def _inside(token: Token, spans: Iterable[Span]) -> bool:
    return any(start <= token.start and token.end <= end for start, end in spans)


def _within(span: Span, spans: Iterable[Span]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in spans)
