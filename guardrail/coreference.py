"""Who a sentence is about: pronouns and unnamed subjects traced to an entity of the evidence.

Biographies name their subject once and go on with "she" and "his". The tracing is cheap and
visible: the last entity named as a sentence's subject, checked against the gender that the
evidence tells; nobody where the last subject is another person or one of several. Where a pronoun
may as well mean somebody told beside that subject, the sentence may be borne out by facts of
either and contradicts neither.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from guardrail.descriptions import Description, Kin, described, other_than_subject
from guardrail.mentions import persons_of, unnamed_in
from guardrail.naming import NO_NAMES, SentenceTokens, Span, named_in
from guardrail.text.sentences import Stretch
from guardrail.text.values import fold
from guardrail.types import Triple
from guardrail.vocabulary import STOP_WORDS, property_words

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Span as ParsedSpan

__all__ = ["Subject", "subjects_of"]

PRONOUN = re.compile(
    r"\b(?P<subject>he|she|it|they|him|them)\b|\b(?P<possessive>his|its|their)\b|\b(?P<her>her)\b"
    r"(?=\s+(?P<next>[\w'’-]+))?",
    re.IGNORECASE,
)
PARENTS = {"father": "male", "mother": "female"}
GENDER = {"he": "male", "him": "male", "his": "male", "she": "female", "her": "female"}

NO_SEXES: Mapping[str, str] = MappingProxyType({})
"""Where the evidence tells nobody's gender."""


class Subject(NamedTuple):
    """Who a sentence is about.

    Attributes:
        topic: Label of the entity that pronouns and an unnamed subject stand for.
        resolved: The sentence with its first pronoun replaced by that label.
        foreign: True where the sentence's subject is a name that the evidence does not know.
        pronoun: True where *he* or *she*, or *his* or *her*, stands for the topic.
        owner: Label of the entity that a pronoun stands for beside a named subject, as in *Bruno
            was her father*.
        told: The persons that the sentence tells by their relation, as in *her father was born*.
        unfit: Labels of entities that no pronoun of the sentence can stand for, by their gender, or
            because it stands for one of a few others.
        doubtful: Where a pronoun stands that may mean one of several persons.
        sexes: The gender that the evidence tells of entities, by label.
    """

    topic: str | None
    resolved: str
    foreign: bool
    pronoun: bool = False
    owner: str | None = None
    told: tuple[Description, ...] = ()
    unfit: frozenset[str] = frozenset()
    doubtful: int | None = None
    sexes: Mapping[str, str] = NO_SEXES


def _genders(triples: Sequence[Triple]) -> dict[str, str]:
    """The gender that the evidence tells of each entity, ``male`` or ``female``."""
    found = {}
    for triple in triples:
        words = property_words(triple.property)
        if words in PARENTS:
            found[triple.value] = PARENTS[words]
    for triple in triples:
        if property_words(triple.property) in ("sex or gender", "gender"):
            found[triple.subject] = triple.value.lower()
    return found


def subjects_of(
    doc: Doc,
    stretches: Sequence[Stretch],
    tokens: Sequence[SentenceTokens],
    *,
    triples: Sequence[Triple],
    known_words: frozenset[str],
    asked: str | None,
    names: Mapping[str, tuple[str, ...]] = NO_NAMES,
    values: frozenset[str] = frozenset(),
) -> list[Subject]:
    """Trace the subject of each sentence of an answer.

    Args:
        doc: The parsed answer.
        stretches: Its n sentences.
        tokens: The same, tokenised.
        triples: The evidence.
        known_words: Folded words of the evidence and the question.
        asked: The entity that the question is about, where it is known.
        names: Other names of entities by label.
        values: Folded values of the evidence that are no labels of its subjects: a sentence about
            one of them is about somebody else, however much of a name they share.
    """
    tracing = _Tracing(triples, asked)
    traced = []
    for stretch, sentence in zip(stretches, tokens, strict=True):
        named = named_in(sentence, tracing.subjects, names)
        persons = named_in(sentence, tracing.persons, names)
        parsed = doc.char_span(stretch.start, stretch.end, alignment_mode="contract")
        traced.append(tracing.next(stretch, parsed, named, persons, known_words, values))
    return traced


class _Tracing:
    """Who was spoken of, sentence by sentence.

    Args:
        triples: The evidence.
        asked: The entity that the question is about, where it is known.
    """

    def __init__(self, triples: Sequence[Triple], asked: str | None) -> None:
        self.subjects = list(dict.fromkeys(triple.subject for triple in triples))
        self.persons = persons_of(triples)
        self._sexes = _genders(triples)
        self._kin = Kin(triples, self._sexes)
        self._main = asked or (self.subjects[0] if len(self.subjects) == 1 else None)
        self._current = self._main
        self._told = asked is not None
        self._latest: dict[str, str] = {}  # by gender, the one named last
        self._unfit = {
            sex: frozenset(one for one, known in self._sexes.items() if known != sex)
            for sex in ("male", "female")
        }
        self._fitting = {
            sex: [one for one in self.subjects if self._sexes.get(one) == sex]
            for sex in ("male", "female")
        }
        self._another: str | None = None  # gender of a person whom the evidence does not know
        self._heard: dict[str, str] = {}  # gender by the pronouns of the answer
        self._beside: list[str] = []  # who was told beside the topic
        self._unnamed: frozenset[str] = frozenset()  # genders of others told so, without a fact

    def next(
        self,
        stretch: Stretch,
        parsed: ParsedSpan | None,
        named: Mapping[str, tuple[Span, ...]],
        persons: Mapping[str, tuple[Span, ...]],
        known_words: frozenset[str],
        values: frozenset[str],
    ) -> Subject:
        """The subject of the sentence that follows."""
        pronoun = PRONOUN.search(stretch.text)
        sex = GENDER.get(pronoun.group().lower()) if pronoun else None
        before = self._antecedent(sex)
        order = sorted(named, key=lambda label: named[label][0][0])
        first = order[0] if order else None
        leads = first is not None and (
            pronoun is None or named[first][0][0] - stretch.start < pronoun.start()
        )
        topic = first if leads else before
        place = stretch.start + pronoun.start() if pronoun is not None else 0
        several = self._several(before, sex, persons if leads else None, place)
        stranger = None
        if parsed is not None and not leads and pronoun is None:
            stranger = _foreign(parsed, known_words, values)
        owner = None
        if leads and pronoun and parsed is not None and before != topic:
            other = other_than_subject(parsed)
            if other is not None and GENDER.get(other.lower_) == sex:
                owner = before
        doubted = several is not None
        told = () if several and not leads else self._described(parsed, named, topic, owner)
        unfit = self._unfit[sex] if sex else frozenset()
        if several and not leads:
            unfit = frozenset(self.subjects) - several
        resolved = _resolve(stretch, pronoun, owner or topic, leads and not owner, bool(stranger))
        if several and not leads:
            resolved = stretch.text
        if told and not owner:
            resolved = _without_description(stretch, told[0], pronoun, resolved)
        if sex is not None and topic is not None and not (leads or doubted):
            self._heard.setdefault(topic, sex)
        self._notice(parsed, persons, told, topic, leads=leads, doubted=doubted)
        self._remember(order, told, topic, stranger, leads or pronoun is not None)
        if leads and len(order) > 1 and self._together(stretch, named, order):
            self._current = None
        stands = sex is not None and not leads and not several
        at = place if doubted else None
        return Subject(topic, resolved, bool(stranger), stands, owner, told, unfit, at, self._sexes)

    def _antecedent(self, sex: str | None) -> str | None:
        """Whom a pronoun of a gender, or an unnamed subject, stands for; None where it is open."""
        if sex is None:
            return self._current
        if self._another in (sex, "unknown"):
            return None
        found = self._by_gender(sex)
        if found is not None and found == self._current:
            return found
        others = [one for one in self._beside if one != found and self._fits(one, sex)]
        if found is None and self._current is not None and len(others) == 1:
            return others[0]  # *Anna married Carl. He*: so Anna is known to be no man
        return None if others else found

    def _by_gender(self, sex: str) -> str | None:
        """Who was spoken of last, or named last, or is known alone, of a gender."""
        if self._current is None or self._fits(self._current, sex):
            return self._current
        if sex in self._latest:
            return self._latest[sex]
        if self._main is not None and self._sexes.get(self._main) == sex:
            return self._main
        fitting = self._fitting[sex]
        return fitting[0] if len(fitting) == 1 else None

    def _fits(self, label: str, sex: str) -> bool:
        """Whether a pronoun of a gender may stand for an entity."""
        return self._sexes.get(label, self._heard.get(label, sex)) == sex

    def _several(
        self,
        antecedent: str | None,
        sex: str | None,
        ahead: Mapping[str, tuple[Span, ...]] | None,
        place: int,
    ) -> frozenset[str] | None:
        """Of which entities a pronoun may mean any; None where it can mean but one.

        Args:
            antecedent: For whom it would stand by what was told before.
            sex: Its gender.
            ahead: The persons whom its own sentence names, where it begins with a name.
            place: Where the pronoun stands.

        Returns:
            An empty set where it may mean somebody besides of whom the evidence has no fact.
        """
        if sex is None:
            return None
        if ahead is not None:
            known = [one for one, spans in ahead.items() if spans[0][0] < place]
            fitting = frozenset(one for one in known if self._fits(one, sex))
            return fitting if len(fitting) > 1 else None
        if antecedent is None:
            return None
        others = frozenset(one for one in self._beside if self._fits(one, sex)) - {antecedent}
        if others.intersection(self.subjects):
            return others | {antecedent}
        certain = not others and self._unnamed.isdisjoint((sex, "unknown"))
        return None if certain else frozenset()

    def _notice(
        self,
        parsed: ParsedSpan | None,
        persons: Mapping[str, tuple[Span, ...]],
        told: Sequence[Description],
        topic: str | None,
        *,
        leads: bool,
        doubted: bool,
    ) -> None:
        """Keep in mind who else than its topic a sentence tells of."""
        unnamed = frozenset[str]() if parsed is None else unnamed_in(parsed, persons, told)
        mentioned = [*persons, *(one.label for one in told)]
        if not leads and (doubted or not mentioned):
            mentioned += self._beside
            unnamed |= self._unnamed
        if not leads and self._current is not None and self._current != topic:
            mentioned.append(self._current)  # who was the topic before
        self._beside = [one for one in dict.fromkeys(mentioned) if one != topic]
        self._unnamed = unnamed

    def _described(
        self,
        parsed: ParsedSpan | None,
        named: Mapping[str, tuple[Span, ...]],
        topic: str | None,
        owner: str | None,
    ) -> tuple[Description, ...]:
        if parsed is None:
            return ()

        def whom(pronoun: str) -> str | None:
            fitting = (
                one
                for one in (owner, topic)
                if one and self._sexes.get(one, GENDER[pronoun]) == GENDER[pronoun]
            )
            return next(fitting, None)

        return tuple(described(parsed, self._kin, named, whom))

    def _remember(
        self,
        order: Sequence[str],
        told: Sequence[Description],
        topic: str | None,
        stranger: str | None,
        followed: bool,
    ) -> None:
        for label in (*(one.label for one in told), *reversed(order)):
            if label in self._sexes:
                self._latest[self._sexes[label]] = label
        if stranger and not self._told:
            self._main = self._current = None  # the answer began with somebody else
        elif followed and (topic is not None or self._another is None):
            self._current = topic
        if stranger:
            self._another = self._sexes.get(stranger, "unknown")
        elif order:
            self._another = None
        self._told = self._told or bool(order)
        self._main = self._main or (None if stranger else topic)

    def _together(
        self, stretch: Stretch, named: Mapping[str, tuple[Span, ...]], order: Sequence[str]
    ) -> bool:
        """Whether two persons whom one pronoun fits are named side by side: *Anna and Clara*."""
        (_, end), (start, _) = named[order[0]][0], named[order[1]][0]
        first, second = map(self._sexes.get, order[:2])
        between = stretch.text[end - stretch.start : start - stretch.start]
        return between.strip(" ,") == "and" and (not first or not second or first == second)


def _resolve(
    stretch: Stretch, pronoun: re.Match[str] | None, topic: str | None, leads: bool, foreign: bool
) -> str:
    text = stretch.text
    if topic is None or leads or foreign:
        return text
    if pronoun is None:
        return text if fold(topic) in fold(text) else f"{topic}: {text}"
    following = (pronoun.group("next") or "").lower()
    possessive = pronoun.group("possessive") or (
        pronoun.group("her") and following and following not in STOP_WORDS
    )
    name = f"{topic}'s" if possessive else topic
    return text[: pronoun.start()] + name + text[pronoun.end() :]


def _without_description(
    stretch: Stretch, told: Description, pronoun: re.Match[str] | None, resolved: str
) -> str:
    """The sentence with a person's name in place of a description that it begins with."""
    start = told.start - stretch.start
    if pronoun is not None and pronoun.start() < start:
        return resolved
    return stretch.text[:start] + told.label + stretch.text[told.noun[1] - stretch.start :]


def _foreign(
    sentence: ParsedSpan, known_words: frozenset[str], values: frozenset[str]
) -> str | None:
    """The name of a sentence's subject that is nobody whom the evidence is about."""
    for token in sentence:
        if token.dep_ in ("nsubj", "nsubjpass") and token.head.dep_ == "ROOT":
            if token.pos_ != "PROPN":
                return None
            name = [part for part in token.subtree if part.pos_ == "PROPN"]
            whole = " ".join(part.text for part in name)
            known = any(fold(part.text) in known_words for part in name)
            return whole if fold(whole) in values or not known else None
    return None
