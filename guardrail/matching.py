"""Exact evidence for one sentence: which triples' values, subjects and relations stand in it.

No model takes part. What is found here decides the easy cases, proposes the pairs that the NLI
judge is asked about, and tells which words of the sentence a cited triple covers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from guardrail.coreference import Subject
from guardrail.descriptions import Description
from guardrail.naming import NO_NAMES, SentenceTokens, Span, name_of, named_in, runs
from guardrail.occurrences import (
    find_value,
    in_institution,
    in_title,
    inside,
    names_value,
    within,
)
from guardrail.text.values import Date, stem, word_set
from guardrail.types import Triple
from guardrail.vocabulary import (
    RECORDS,
    STOP_WORDS,
    cues,
    inverse_cues,
    is_personal,
    is_tie,
    property_words,
)

__all__ = ["NEAR", "EvidenceIndex", "Match"]

NEAR = 25
"""Characters between a property's word and a value that stands beside it."""

MIN_VALUE_SHARE = 0.5
"""Share of a value's content words that must stand in a sentence for the value to count."""

GIVING = word_set("gave give given gives giving")


BORN = frozenset({stem("born")})
PARENTAL = frozenset({"father", "mother", "parent", "parents", "child", "children"})

LOSING = word_set("lost lose loses losing")
LIVES = word_set("life lives")


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
        denied: Where the sentence denies the whole value.
        wider: Where places stand that hold the value, one that tells a place.
        located: Whether it is known which wider places hold the value.
        asked: Whether the question asks for this property, and the sentence is a short answer.
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
    denied: tuple[Span, ...] = ()
    wider: tuple[Span, ...] = ()
    located: bool = False
    asked: bool = False

    @property
    def spans(self) -> tuple[Span, ...]:
        """All places in the sentence that the triple accounts for."""
        return self.value_spans + self.cue_spans + self.subject_spans + self.wider

    @property
    def by_wider(self) -> bool:
        """Whether nothing but wider places tells the value: *London*, for Somers Town."""
        return bool(self.wider) and self.value_spans == self.wider

    def told_of(self, subject: str, denied: tuple[Span, ...] = ()) -> Match:
        """The match without its value, which the sentence denies or tells of something else.

        Args:
            subject: ``foreign`` or ``other``.
            denied: Where the whole value is denied.
        """
        return self._replace(
            value_share=0.0,
            value_spans=(),
            finer=None,
            subject=subject,
            inverse=False,
            denied=denied,
        )


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

    def matches(self, sentence: SentenceTokens, subject: Subject) -> list[Match]:
        """Look for every triple in a sentence.

        Args:
            sentence: The prepared sentence.
            subject: Who it is about.

        Returns:
            Triples with at least a value or a property word in the sentence, in evidence order.
        """
        near: set[int] = set(self._dated) if sentence.dates else set()
        for word in sentence.by_stem:
            near |= self._by_word.get(word, set())
        subjects = dict.fromkeys(self.triples[number].subject for number in sorted(near))
        whole = self._whole_names(sentence, near)
        named = {
            label: kept
            for label, spans in named_in(sentence, subjects, self._names).items()
            if (kept := tuple(span for span in spans if not _opens(span, _others(whole, label))))
        }
        topic, pronoun = subject.topic, subject.pronoun
        named |= {one.label: (one.noun,) for one in subject.told}
        found = []
        for number in sorted(near):
            triple = self.triples[number]
            # *He was fathered by Wollert Konow*: the name is his father's, who was called like him.
            namesake = pronoun and topic == triple.subject == triple.value
            seen = {} if namesake and is_tie(triple.property) else named
            match = self._match(sentence, number, subject, seen, whole)
            if match is not None:
                found.append(match)
        found = _with_links(found, subject.told)
        if named or (pronoun and topic is not None):
            return found
        return [
            match._replace(subject="open")
            if match.subject == "other"
            and match.triple.subject not in subject.unfit
            and self._near_topic(match.triple, topic)
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

    def _whole_names(
        self, sentence: SentenceTokens, near: Iterable[int]
    ) -> dict[str, tuple[Span, ...]]:
        """Where names of two words or more stand as the evidence writes them, by label."""
        names = {self.triples[number].subject: self._subjects[number] for number in near}
        names |= {
            self.triples[number].value: self._values[number]
            for number in near
            if property_words(self.triples[number].property) not in RECORDS
        }
        return {
            label: spans
            for label, name in names.items()
            if len(name.tokens) > 1
            and name.tokens[0].text[:1].isupper()
            and (spans := runs(sentence, name.tokens))
        }

    def _match(
        self,
        sentence: SentenceTokens,
        number: int,
        about: Subject,
        named: dict[str, tuple[Span, ...]],
        whole: Mapping[str, tuple[Span, ...]],
    ) -> Match | None:
        triple, value = self.triples[number], self._values[number]
        subject_spans = named.get(triple.subject, ())
        subject = "explicit" if subject_spans else "other"
        tie = is_tie(triple.property)
        if not subject_spans:
            if about.topic == triple.subject or (tie and about.owner == triple.subject):
                subject = "antecedent"
            elif about.foreign:
                subject = "foreign"
        words = property_words(triple.property)
        itself = words in RECORDS or (triple.value == triple.subject and not tie)
        others = _others(whole, triple.value)
        # A piece of somebody's name is nobody else's; one of a place may be, or of a list.
        personal = tie or is_personal(triple.property)
        share, spans, finer = find_value(
            sentence, value, triple, () if itself else subject_spans, others if personal else ()
        )
        if personal and share < 1.0 and not names_value(sentence, spans, triple.value):
            share, spans = 0.0, ()
        inverse = False
        if share < 1.0 and subject == "explicit" and triple.value != triple.subject:
            meant = about.topic == triple.value or (tie and about.owner == triple.value)
            share, spans, inverse = (1.0, (), True) if meant else (share, spans, False)
        cue_spans = _cue_spans(sentence, triple.property, subject_spans)
        if spans:
            spans = tuple(
                span
                for span in spans
                if not in_title(sentence, span, value, triple.property)
                and not (personal and in_institution(sentence, span, triple.property))
                and not (
                    is_personal(triple.property)
                    and within(span, others)
                    and not _led_by(cue_spans, span)
                )
            )
            share = share if spans else 0.0
        if share < MIN_VALUE_SHARE:
            share, spans = 0.0, ()
        if share == 0.0 and not cue_spans:
            return None
        return Match(
            triple, number, share, spans, finer, cue_spans, subject, subject_spans, inverse
        )


def _with_links(matches: Sequence[Match], told: Sequence[Description]) -> list[Match]:
    """The matches, with those found that say who is meant by *her father*, where facts of his are.

    Who that is counts as told by the noun.
    """
    stated = {match.triple.subject for match in matches if match.value_spans}
    nouns = {(one.owner, one.label): one.noun for one in told if one.label in stated}
    return [
        match._replace(value_share=1.0, value_spans=(noun,))
        if (noun := nouns.get((match.triple.subject, match.triple.value)))
        and is_tie(match.triple.property)
        and noun in match.cue_spans
        else match
        for match in matches
    ]


def _others(whole: Mapping[str, tuple[Span, ...]], label: str) -> tuple[Span, ...]:
    """Where whole names of anything but one label stand."""
    return tuple(span for other, spans in whole.items() if other != label for span in spans)


def _opens(span: Span, whole: Iterable[Span]) -> bool:
    """Whether a name is, or opens, a whole one of something else: *Tokugawa shogunate*."""
    return any(start == span[0] and span[1] <= end for start, end in whole)


def _cue_spans(
    sentence: SentenceTokens, label: str, subject_spans: Sequence[Span]
) -> tuple[Span, ...]:
    """Where words stand that name a property, or a life span in brackets that gives its date."""
    period = sentence.lifetime(property_words(label))
    brackets: tuple[Span, ...] = ((period[0], period[0]),) if period else ()
    return brackets + tuple(
        (sentence.tokens[place].start, sentence.tokens[place].end)
        for word in sorted(cues(label) | inverse_cues(label) | _births(label))
        for place in sentence.by_stem.get(word, ())
        if word not in _births(label) or _leads_to_parents(sentence, place)
        if not inside(sentence.tokens[place], subject_spans) and not _means_another(sentence, place)
    )


def _births(label: str) -> frozenset[str]:
    """The stem of *born*, for ties between parents and children, which *born to* tells."""
    return BORN if property_words(label) in PARENTAL else frozenset()


def _leads_to_parents(sentence: SentenceTokens, place: int) -> bool:
    """Whether nothing but places and dates part *born* from *to*: *born in Rome to Anna*."""
    for token in sentence.tokens[place + 1 :]:
        if token.folded == "to":
            return True
        if not (token.folded in STOP_WORDS or token.text[0].isupper() or token.text[0].isdigit()):
            return False
    return False


def _means_another(sentence: SentenceTokens, place: int) -> bool:
    """Whether a word tells no birth or death of its subject's: *gave birth*, *lost her husband*."""
    word = sentence.tokens[place].folded
    if word == "birth":
        return any(one.folded in GIVING for one in sentence.tokens[max(0, place - 1) : place])
    after = sentence.tokens[place + 1 : place + 4]
    return word in LOSING and not any(one.folded in LIVES for one in after)


def _led_by(cue_spans: Sequence[Span], value: Span) -> bool:
    """Whether a property's word stands right before a value: *born in Memphis, Tennessee*."""
    return any(0 <= value[0] - end <= NEAR for _, end in cue_spans)
