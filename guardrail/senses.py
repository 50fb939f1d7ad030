"""Senses: what sort of fact the words round a value tell, where the same value is another's.

A judge takes *the hotel has 84 employees* for a hotel of 84 rooms and *the firm was dissolved in
1998* for one that was founded then: subject and value agree, and they are most of the sentence.
Words and properties of one sense may stand for each other; where those of both are known and they
share none, the sentence tells something else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from guardrail.matching import Match
from guardrail.naming import Span
from guardrail.quantities import UNITS, quantity_of
from guardrail.support import touches
from guardrail.syntax import COMPLEMENTS, MODIFIERS, SUBJECTS, end_of
from guardrail.text.values import fold, parse_date, stem, word_set, words
from guardrail.vocabulary import property_words

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Token as ParsedToken

__all__ = ["told_in_another_sense"]

EVENTS: Final = {
    "birth": "born birth birthday",
    "death": "died death deceased passed killed",
    "beginning": "founded founding founder founders foundation cofounded inception beginning began "
    "begun begins begin established establishes establishment formed formation started starts "
    "start launched launch created creation creator opened opening opens incorporated set "
    "inaugurated commissioned introduced debut origin originated",
    "end": "dissolved dissolution closed closing closes closure ended ending ends disbanded "
    "abolished abolition shut demolished demolition discontinued ceased bankrupt bankruptcy "
    "destroyed defunct",
    "release": "released release releases publication published publishes premiered premiere "
    "premieres aired airs air broadcast issued issue appeared debuted debut launched launch "
    "introduced opened",
    "shooting": "filmed filming shot recorded recording",
    "building": "built build building construction constructed erected completed completion",
    "discovery": "discovered discovery",
    "ascent": "climbed climb climbing ascent ascended ascents summited conquered scaled",
    "wedding": "married marriage wed wedding",
    "divorce": "divorced divorce",
    "election": "elected election appointed appointment inaugurated",
    "listing": "listed listing ipo flotation floated",
    "burial": "buried burial interred",
}
"""What happens on a day, and who does it or where."""

MEASURES: Final = {
    "height": "height high highest tall elevation elevated altitude rises rise rising stands "
    "towers tower reaches peaks",
    "length": "length long runs stretches extends stretching",
    "width": "width wide broad span",
    "depth": "depth deep",
    "weight": "weight weighs weigh weighing weighed mass heavy",
    "duration": "duration long lasts lasted lasting runs running runtime length",
    "surface": "area covers covering surface spans spread",
    "speed": "speed fast",
    "sales": "revenue revenues sales turnover earned earns earnings earning takings income gross "
    "grossed made makes generated generates took",
    "profit": "profit profits net earned earns earnings income made makes",
    "loss": "lost loses loss losses deficit",
    "debt": "debt debts owes owed",
    "budget": "budget budgeted cost spent",
    "worth": "worth valued valuation value capitalisation capitalization assets",
    "price": "price priced prices cost costs fee charges",
}
"""What is measured."""

COUNTS: Final = {
    "population": "population inhabitants inhabitant residents resident people persons citizens "
    "live lives living souls populous populated home",
    "staff": "employees employee employs employ employed employing staff workers workforce "
    "headcount people persons",
    "visitors": "visitors visitor tourists guests attendance attended spectators crowd people",
    "students": "students student pupils children enrolment enrollment enrolled people",
    "capacity": "capacity places chairs seats seat seating holds hold accommodates spectators "
    "guests people passengers",
    "rooms": "rooms room suites bedrooms",
    "members": "members member membership people",
    "episodes": "episodes episode",
    "floors": "floors floor storeys storey levels",
    "customers": "customers customer clients subscribers users",
    "shops": "shops branches outlets",
    "injured": "injured injuries wounded",
    "victims": "killed dead deaths died fatalities casualties victims",
}
"""What is counted."""

MAKERS: Final = {
    "leading": "led lead leads leader head heads headed ceo chief chair chaired chairs chairman "
    "chairwoman chairperson president runs run boss governs governed mayor captain captained "
    "managed manages manager coach coached commanded commander conducted conductor directed "
    "director presided",
    "owning": "owned owns owner bought acquired sold belongs",
    "writing": "wrote written writes author writer penned created creator screenwriter",
    "directing": "directed directs director made filmed",
    "composing": "composed composes composer music",
    "designing": "designed designs designer architect created creator",
    "making": "made makes maker manufactured manufactures manufacturer produced produces producer "
    "built builds developed developer created creator invented inventor",
    "publishing": "published publishes publisher issued released",
    "acting": "starred starring stars star cast actor actress acted played plays portrayed",
    "seat": "headquarters headquartered based seat",
}
"""What somebody does or is to something."""

LABELS: Final = {
    "inception": "beginning building making writing shooting",
    "service entry": "beginning release",
    "date of official opening": "beginning",
    "first performance": "release",
    "country of origin": "",
    "place of origin": "",
    "original language": "",
    "record label": "",
    "position played on team": "",
    "author": "writing publishing release",
    "developer": "making designing writing release",
    "performer": "acting composing writing publishing release shooting",
    "producer": "making directing",
    "total produced": "",
    "box office": "sales",
    "staff size": "staff",
    "academic staff size": "staff",
    "office held by head of government": "leading",
}
"""Senses of properties where the words of their labels do not tell them."""

LIGHT: Final = word_set(
    "is was are were be been being has had have having with became become becomes totals totalled "
    "amounts amounted comes hit exceeds exceeded boasts features counts offers"
)
"""Verbs that leave it to a noun to tell the sense."""

CLAUSE: Final = frozenset({"VERB", "AUX"})
COUNTED: Final = frozenset({"NNS", "NNPS"})
"""Tags of nouns in the plural."""

PARTS: Final = frozenset({"prt", "acomp", "oprd"})
"""What completes a verb: *set up*, *went public*."""


def told_in_another_sense(doc: Doc, match: Match) -> bool:
    """Whether every place of a match's value tells a fact of another sense than the property's.

    Never where a word for the property stands in the sentence.

    Args:
        doc: The parsed answer.
        match: A triple whose value stands in one of its sentences.
    """
    if not match.value_spans or match.cue_spans or match.asked or match.inverse:
        return False
    value = match.triple.value
    figures = quantity_of(value) is not None and parse_date(value) is None
    held = _of_label(match.triple.property, figures)
    names = match.subject_spans
    return bool(held) and all(
        _is_other(doc, span, names, held, figures) for span in match.value_spans
    )


def _is_other(doc: Doc, span: Span, names: Sequence[Span], held: Set[str], figures: bool) -> bool:
    """Whether the words round a value, less names, tell another sense than the property's.

    Things in the plural of no known sense are not what a property counts or measures.
    """
    value = doc.char_span(*span, alignment_mode="expand")
    told = [] if value is None else list(_telling(value.root, figures=figures))
    told = [one for one in told if not touches((one.idx, end_of(one)), names)]
    senses = frozenset[str]().union(*(_of_word(one.lower_, figures) for one in told))
    if senses:
        return senses.isdisjoint(held)
    return figures and bool(told) and told[0].tag_ in COUNTED


def _telling(value: ParsedToken, *, figures: bool) -> Iterator[ParsedToken]:
    """Yield the words that tell what a value is to its subject, up to the next verb."""
    one = value
    while one.dep_ in ("nummod", "quantmod", "conj") or (one.dep_ in MODIFIERS and _is_figure(one)):
        one = one.head
        if one.pos_ == "NOUN" and figures and not _is_figure(one):
            yield one
    while one.head.i != one.i:
        above = one.head
        if above.pos_ in CLAUSE:
            if above.lower_ not in LIGHT:
                yield above
            yield from (child for child in above.children if child.dep_ in PARTS)
            if above.lower_ in LIGHT:
                yield from (
                    child
                    for child in above.children
                    if child.pos_ == "NOUN"
                    and child.i != one.i
                    and child.dep_ in SUBJECTS | COMPLEMENTS | {"dobj"}
                )
            return
        if above.pos_ in ("NOUN", "ADJ", "ADV"):
            yield above
            if _of_word(above.lower_, figures):
                return
        one = above


def _is_figure(token: ParsedToken) -> bool:
    """Whether a word is a number, its sign or its unit."""
    return token.lower_ in UNITS or token.pos_ in ("NUM", "SYM")


@lru_cache(maxsize=16_384)
def _of_label(label: str, figures: bool) -> frozenset[str]:
    """The senses of a property, as far as they tell figures, or anything else."""
    name = property_words(label)
    if name in LABELS:
        return _fitting(LABELS[name].split(), figures)
    told = name.split()
    # What *customer rating* or *staff turnover* counts or measures, its last word tells.
    senses = [_of_word(word, figures) for word in (told[-1:] if figures else told)]
    return frozenset[str]().union(*senses)


@lru_cache(maxsize=16_384)
def _of_word(word: str, figures: bool) -> frozenset[str]:
    """The senses of a word in any form, as far as they tell figures, or anything else."""
    return _fitting(_SENSES.get(stem(fold(word)), ()), figures)


def _fitting(senses: Iterable[str], figures: bool) -> frozenset[str]:
    return frozenset(one for one in senses if figures or one in EVENTS or one in MAKERS)


def _by_stem() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for table in (EVENTS, MEASURES, COUNTS, MAKERS):
        for sense, told in table.items():
            for word in words(told):
                found[stem(word)].add(sense)
    return {word: frozenset(senses) for word, senses in found.items()}


_SENSES: Final = _by_stem()
