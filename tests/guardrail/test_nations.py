"""Peoples of the world stand for their states, with and without a judge."""

from collections.abc import Sequence

import pytest

from guardrail.attribution import AttributionRequest, Attributor
from guardrail.markers.grammar import parse
from guardrail.nations import NATIONS, OTHERS, PROPER, nation
from guardrail.types import NLIScores, Sentence, Triple
from guardrail.vocabulary import property_words
from judges.base import NLIJudge, Pair

ROWS = [line.partition("|") for line in NATIONS.splitlines()]
NAMES = [name.strip() for names, _, _ in ROWS for name in names.split(";")]


class Doubting:
    """A judge that finds nothing entailed, as small ones do with *Monet was French*."""

    name = "doubting"

    def warm_up(self) -> None:
        """Nothing to load."""

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        return [NLIScores(entailment=0.01, neutral=0.98, contradiction=0.01) for _ in pairs]


def told(text: str, country: str, judge: NLIJudge | None = None) -> Sentence:
    triples = (
        Triple(subject="Anna Berg", property="country of citizenship", value=country),
        Triple(subject="Anna Berg", property="occupation", value="engineer"),
    )
    request = AttributionRequest("Who was Anna Berg?", parse(text, triples), triples)
    (answer,), problems = Attributor(judge, None).attribute([request])
    assert problems == []
    return answer.sentences[0]


def cites_country(one: Sentence) -> bool:
    return any(citation.property == "country of citizenship" for citation in one.citations)


def test_every_entry_is_well_formed() -> None:
    assert len(NAMES) == len(set(NAMES))
    assert not set(NAMES) & set(OTHERS)
    for names, bar, words in ROWS:
        assert bar, names
        assert words.split(), names
        assert all(word.replace("_", "").isalpha() and word.islower() for word in words.split())
    for name in NAMES:
        assert name == property_words(name)
        assert nation(name)
    assert all(any(word in nation(name) for name in NAMES) for word in PROPER)


@pytest.mark.parametrize(
    ("country", "people"),
    [
        ("Australia", "an Australian"),
        ("Cuba", "a Cuban"),
        ("Republic of Colombia", "a Colombian"),
        ("Nigeria", "a Nigerian"),
        ("Romania", "a Romanian"),
        ("Kingdom of Bulgaria", "a Bulgarian"),
        ("Croatia", "a Croat"),
        ("Serbia", "a Serb"),
        ("Indonesia", "an Indonesian"),
        ("Malaysia", "a Malaysian"),
        ("Morocco", "a Moroccan"),
        ("Slovenia", "a Slovene"),
        ("Lebanon", "a Lebanese"),
        ("Denmark", "a Dane"),
        ("Sweden", "a Swede"),
        ("United Kingdom", "a Briton"),
        ("Poland", "a Pole"),
        ("Türkiye", "a Turk"),
        ("Philippines", "a Filipino"),
        ("South Africa", "a South African"),
        ("New Zealand", "a New Zealander"),
        ("Côte d'Ivoire", "an Ivorian"),
        ("Kingdom of the Netherlands", "a Dutch"),
        ("United States of America", "an American"),
        ("People's Republic of China", "a Chinese"),
        ("Austria-Hungary", "an Austro-Hungarian"),
    ],
)
@pytest.mark.parametrize("judge", [None, Doubting()])
def test_a_people_stands_for_its_state(country: str, people: str, judge: NLIJudge | None) -> None:
    assert cites_country(told(f"Anna Berg was {people} engineer.", country, judge))


@pytest.mark.parametrize(
    ("country", "text"),
    [
        ("Australia", "Anna Berg was an Austrian engineer."),
        ("Niger", "Anna Berg was a Nigerian engineer."),
        ("Sudan", "Anna Berg was a South Sudanese engineer."),
        ("South Korea", "Anna Berg was a North Korean engineer."),
        ("Slovakia", "Anna Berg was a Slovenian engineer."),
        ("Poland", "Anna Berg was an engineer who could polish glass."),
        ("Italy", "Anna Berg was an engineer in an Italian Renaissance castle."),
        ("Egypt", "Anna Berg was an engineer in Egypt."),
    ],
)
@pytest.mark.parametrize("judge", [None, Doubting()])
def test_another_people_does_not(country: str, text: str, judge: NLIJudge | None) -> None:
    assert not cites_country(told(text, country, judge))
