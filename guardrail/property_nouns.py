"""Nouns that name a property of something, whatever the graph calls its own.

A value that such a noun is told of belongs to that property: *the headquarters of Apple* is nobody
by whom it is led. Most of them are the one-word labels of Wikidata's properties (CC0). Nouns that
only word another's label, as *boss* does that of a chief executive officer, are not among them.
"""

from __future__ import annotations

from typing import Final

from guardrail.cue_words import CUES
from guardrail.text.values import stem, word_set
from guardrail.vocabulary import property_words

__all__ = ["names_other_property"]

NOUNS: Final = word_set(
    "abbreviation acronym address affiliation age allegiance altitude anthem architect area "
    "author award birthday birthplace brand budget bureau candidate capacity capital captain cast "
    "category ceo chairman chairperson chairwoman champion chancellor child choreographer "
    "cinematographer city class club coach code color colour composer conductor conflict "
    "continent contractor coordinates cost country county course court creator critic cuisine "
    "curator currency daughter demonym depth deputy designer destination developer director "
    "discipline discoverer distributor district division dosage duration editor elevation email "
    "employees employer endowment engineer enrollment family father fee flag format founder "
    "frequency funder gender genre governor grade ground headquarters height heir hometown "
    "husband illustrator incumbent industry influence ingredient instrument inventor investor "
    "isbn judge jurisdiction language latitude lawyer league length librettist licence license "
    "longitude lyricist magazine manager manufacturer mascot mass mayor members mentor minister "
    "model mother motto mouth movement narrator nationality newspaper nickname nominee occupation "
    "officeholder operator opponent orbit order organiser organizer orientation owner parent "
    "partner party patron performer period permit phone photographer pilot playwright population "
    "port postcode predecessor premiere presenter president price principal producer profession "
    "programmer provider province pseudonym publisher rank ranking rating ratio rector referee "
    "region religion residence result river runtime runway salary school score screenwriter "
    "season sector series sister size slogan son source speaker species speed spokesman "
    "spokesperson spokeswoman sponsor sport spouse stadium state status student style subsidiary "
    "successor supervisor surname teacher team telephone temperature tenant tonnage trainer "
    "translator treasurer treatment tributary university vehicle venue victim village voltage "
    "volume warranty wavelength weight widow width wife winner writer year"
)

GENERIC: Final = {
    "creator": "author writer composer designer developer architect screenwriter playwright",
    "location": "city region country state county district province village address venue",
    "place": "city region country state county district province village venue",
    "based": "city region country state headquarters",
    "headquarters": "city region country state address",
    "leader": "president chairman chairperson chairwoman ceo mayor governor minister director "
    "chancellor captain coach manager",
    "head": "president chairman chairperson chairwoman ceo mayor governor minister director "
    "chancellor coach manager",
    "officer": "ceo president director manager",
    "chairperson": "chairman chairwoman president",
    "maker": "manufacturer producer developer",
    "manufacturer": "brand producer",
    "developer": "creator author publisher designer programmer",
    "cast": "performer",
    "relative": "father mother parent child son daughter sister husband wife spouse",
    "parent": "father mother owner",
    "child": "son daughter heir",
    "sibling": "sister",
    "spouse": "husband wife partner widow",
    "teacher": "mentor supervisor trainer",
    "advisor": "supervisor mentor teacher",
    "team": "club",
    "club": "team",
    "coach": "trainer manager",
    "citizenship": "nationality country",
    "occupation": "profession",
    "inception": "year",
    "architect": "designer",
    "designer": "architect",
    "cost": "price fee",
    "price": "cost fee",
    "founder": "creator",
    "founded": "creator",
    "duration": "length runtime",
    "runtime": "length duration",
    "area": "size",
    "length": "size",
    "height": "elevation size",
    "population": "size",
    "telephone": "phone",
    "phone": "telephone",
    "origin": "country region city",
    "date": "year birthday",
    "time": "year duration",
    "studio": "producer",
    "company": "manufacturer publisher producer developer owner employer",
}
"""Words of labels that take in properties with names of their own, with the nouns for these."""


def names_other_property(name: str, label: str) -> bool:
    """Whether a noun is the name of another property than a label's.

    Args:
        name: A folded noun, with what specifies it or without, of none of the words that the
            vocabulary knows for the label.
        label: The property's label in any spelling.
    """
    noun = name.rpartition(" ")[2]
    if noun not in NOUNS and noun.removesuffix("s") not in NOUNS and name not in CUES:
        return False
    return not any(
        stem(noun) in {stem(one) for one in GENERIC.get(word, "").split()}
        for word in property_words(label).split()
    )
