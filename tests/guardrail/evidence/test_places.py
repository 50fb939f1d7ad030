"""Places told by wider ones: *born in London*, where the graph says Somers Town."""

from collections.abc import Sequence

import pytest

from guardrail import Action, Category, GuardedAnswer, Guardrail, GuardrailConfig
from guardrail.attribution import AttributionRequest, Attributor
from guardrail.errors import KnowledgeGraphError
from guardrail.evidence.places import tells_place, with_wider
from guardrail.evidence.retrieval import Knowledge
from guardrail.markers.grammar import parse
from guardrail.types import (
    Entity,
    Judgement,
    LinkedEntity,
    Mention,
    NLIScores,
    Sentence,
    SpanKind,
    Triple,
)
from judges.base import AttributionItem, NLIJudge, Pair
from kg import OxigraphGraph
from tests.guardrail.test_attribution import phrases
from tests.guardrail.test_stated import Denying

MARY = "Mary Shelley"
BORN = Triple(
    subject=MARY, property="place of birth", value="Somers Town", subject_id="Q1", value_id="Q2"
)
FACTS = (
    BORN,
    Triple(subject=MARY, property="date of birth", value="1797-08-30"),
    Triple(subject=MARY, property="sex or gender", value="female"),
    Triple(subject=MARY, property="place of death", value="Paris", value_id="Q3"),
)
WIDER = {
    "Q2": ("Borough of St Pancras", "Camden", "London", "England", "United Kingdom", "UK", "IN"),
    "Q3": ("France",),
}
TURTLE = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
wd:Q1 rdfs:label "Mary Shelley"@en ; wdt:P31 wd:Q5 ; wdt:P21 wd:Q6 ; wdt:P19 wd:Q2 .
wd:Q5 rdfs:label "human"@en . wd:Q6 rdfs:label "female"@en .
wd:Q2 rdfs:label "Somers Town"@en ; wdt:P131 wd:Q3 .
wd:Q3 rdfs:label "Camden"@en ; wdt:P131 wd:Q4 .
wd:Q4 rdfs:label "London"@en ; wdt:P131 wd:Q7 .
wd:Q7 rdfs:label "England"@en .
wd:P19 rdfs:label "place of birth"@en .
wd:P21 rdfs:label "sex or gender"@en .
wd:P31 rdfs:label "instance of"@en .
wd:P131 rdfs:label "located in the administrative territorial entity"@en .
"""


def told(text: str, facts: Sequence[Triple] = FACTS, judge: NLIJudge | None = None) -> Sentence:
    """The last sentence, judged by whoever finds a contradiction everywhere."""
    triples = tuple(facts)
    answer = parse(f"Mary Shelley wrote novels. {text}", triples)
    request = AttributionRequest("Who was Mary Shelley?", answer, triples, wider=WIDER)
    (attributed,), problems = Attributor(judge or Denying(), None).attribute([request])
    assert problems == []
    return attributed.sentences[-1]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("She was born in London.", "London"),
        ("She was born in Camden.", "Camden"),
        ("She was born in the UK.", "UK"),
        ("She was born in the United Kingdom.", "United Kingdom"),
        ("Her birthplace was London.", "London"),
        ("London is the city in which she was born.", "London"),
        ("She was born in London, England.", "London"),
        ("She was born in London but never lived there.", "London"),
    ],
)
def test_a_wider_place_supports_the_triple(text: str, place: str) -> None:
    one = told(text)
    assert one.citations == (BORN.citation,)
    assert [(span.text, span.triple) for span in one.spans if span.triple] == [(place, BORN)]
    assert phrases(one, SpanKind.CONTRADICTED) == []
    assert "England" not in phrases(one, SpanKind.NA)
    assert one.note
    assert one.note.startswith(f"Somers Town lies in {place}")


@pytest.mark.parametrize(
    "text",
    [
        "She lived in London.",
        "She studied at the University of London.",
        "Her mother was born in London.",
        "She was born in North London.",
        "She was born in a ukulele factory.",
        "She was born in london.",
        "In May she was born.",
        "She was born to a camden merchant.",
        "William Godwin was born in London.",
    ],
)
def test_other_words_and_other_names_do_not(text: str) -> None:
    assert BORN.citation not in told(text).citations


def test_a_place_that_does_not_hold_it_contradicts_the_triple() -> None:
    for text in ("She was born in Rome.", "She was born in Rome and died in London."):
        one = told(text, [BORN])
        assert one.category is Category.CONTRADICTORY
        assert phrases(one, SpanKind.CONTRADICTED) == ["Rome"]
        assert one.citations == ()


@pytest.mark.parametrize("place", ["North London", "St Pancras"])
def test_what_may_be_a_part_of_a_wider_place_is_not_contradicted(place: str) -> None:
    one = told(f"She was born in {place}.", [BORN])
    assert one.category is Category.IRRELEVANT
    assert phrases(one, SpanKind.NA) == [place]


def test_a_name_that_only_shares_a_word_with_a_wider_place_is() -> None:
    assert told("She was born in the United States.", [BORN]).category is Category.CONTRADICTORY


def test_denying_a_wider_place_denies_the_triple() -> None:
    one = told("She was not born in London.")
    assert phrases(one, SpanKind.CONTRADICTED) == ["London"]
    assert one.note == f"contradicted by: {BORN.text}; Somers Town lies in London"


def test_each_place_goes_with_its_own_verb() -> None:
    one = told("She was born in London and died in France.")
    assert {(c.property, c.value) for c in one.citations} == {
        ("place of birth", "Somers Town"),
        ("place of death", "Paris"),
    }
    assert told("She was born in France and died in London.").citations == ()


def test_a_wrong_year_beside_a_wider_place_is_told() -> None:
    one = told("She was born in London in 1932.")
    assert one.category is Category.CONTRADICTORY
    assert phrases(one, SpanKind.SUPPORTED) == ["London"]
    assert phrases(one, SpanKind.CONTRADICTED) == ["1932"]


def test_a_wider_place_behind_the_place_itself_is_held_too() -> None:
    one = told("She was born in Somers Town, London.")
    assert phrases(one, SpanKind.NA) == []
    assert phrases(told("She was born in Somers Town, Ontario."), SpanKind.NA) == ["Ontario"]


def test_the_place_itself_is_cited_before_one_that_only_lies_there() -> None:
    london = Triple(subject=MARY, property="place of birth", value="London", value_id="Q4")
    (cited,) = told("She was born in London.", [BORN, london], Agreeing()).citations
    assert cited == london.citation


class Agreeing(Denying):
    """A back end that finds everything entailed."""

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        return [NLIScores(entailment=1.0, neutral=0.0, contradiction=0.0) for _ in pairs]


class Reader:
    """An attribution judge that keeps what it is given to read."""

    name = "reader"

    def __init__(self) -> None:
        self.read: list[str] = []

    def warm_up(self) -> None:
        """Nothing to load."""

    def attribute(self, items: Sequence[AttributionItem]) -> list[Judgement]:
        self.read += [text for item in items for text in item.evidence]
        scores = {one: float(one is Category.SUPPORTIVE) for one in Category}
        return [Judgement(category=Category.SUPPORTIVE, scores=scores) for _ in items]


def test_the_attribution_judge_reads_which_place_lies_where() -> None:
    reader = Reader()
    request = AttributionRequest(
        "", parse("Mary Shelley was born in London, England."), (BORN,), wider=WIDER
    )
    Attributor(None, reader).attribute([request])
    assert reader.read == [f"{MARY}, place of birth: Somers Town, London, England."]


def test_verbatim_citations_leave_the_triple_out() -> None:
    answer = parse("Mary Shelley was born in London.")
    request = AttributionRequest("", answer, (BORN,), wider=WIDER)
    (told_so,), _ = Attributor(None, None, verbatim=True).attribute([request])
    assert told_so.sentences[0].category is Category.SUPPORTIVE
    assert told_so.sentences[0].citations == ()


# --- what the graph is asked ---------------------------------------------------------------------


def known(*facts: Triple) -> Knowledge:
    link = LinkedEntity(
        mention=Mention(text=MARY, start=0, end=len(MARY)),
        entity=Entity(id="Q1", label=MARY),
        matched="label",
    )
    return Knowledge(entities=(link,), evidence=facts)


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        ("She was born in London.", True),
        ("She was born in Somers Town, London.", True),
        ("She was born in Somers Town. She died in London.", False),
        ("She was a novelist from London.", False),
        ("", False),
    ],
)
def test_the_graph_is_asked_only_where_a_wider_place_may_be_told(answer: str, asked: bool) -> None:
    graph = OxigraphGraph.from_text(TURTLE, profile="wikidata")
    (one,) = with_wider(graph, [answer], [known(BORN)])
    assert one.wider == ({"Q2": ("Camden", "London", "England")} if asked else {})


def test_evidence_of_the_callers_own_is_not_looked_up() -> None:
    graph = OxigraphGraph.from_text(TURTLE, profile="wikidata")
    own = Knowledge(evidence=(BORN,))
    assert with_wider(graph, ["She was born in London."], [own]) == [own]


@pytest.mark.parametrize(
    ("label", "place"),
    [
        ("place of birth", True),
        ("birthPlace", True),
        ("residence", True),
        ("work location", True),
        ("headquarters location", True),
        ("headquarter", True),
        ("born in", True),
        ("located in the administrative territorial entity", True),
        ("located in or next to body of water", False),
        ("capital", False),
        ("father", False),
    ],
)
def test_properties_that_tell_a_place(label: str, place: bool) -> None:
    assert tells_place(label) is place


# --- from the graph to the reader ----------------------------------------------------------------


def checked(graph: OxigraphGraph, text: str, policy: str = "strict") -> GuardedAnswer:
    config = GuardrailConfig(judge="none")
    with Guardrail(config, graph=graph, nli=Denying()) as guard:
        return guard.check(question="Who was Mary Shelley?", answer=text, policy=policy)


def test_a_true_sentence_passes_and_a_false_one_does_not() -> None:
    graph = OxigraphGraph.from_text(TURTLE, profile="wikidata")
    true = checked(graph, "Mary Shelley was born in London.")
    assert true.action is Action.PASS
    assert true.marked == "Mary Shelley was born in London [Q1, place of birth: Somers Town]."
    assert true.sentences[0].category is Category.SUPPORTIVE
    assert true.errors == ()
    false = checked(graph, "Mary Shelley was born in Paris.", "annotate")
    assert false.sentences[0].category is Category.CONTRADICTORY
    assert false.sentences[0].spans[-1].text == "Paris"


class Unplaced(OxigraphGraph):
    """A graph that fails when asked what lies where."""

    def wider(self, ids: Sequence[str]) -> list[list[Entity]]:
        raise KnowledgeGraphError("no answer within 30 s")


def test_without_containment_the_rest_of_the_answer_is_still_judged() -> None:
    text = "Mary Shelley was born in London. Mary Shelley was born in Somers Town."
    answer = checked(Unplaced.from_text(TURTLE, profile="wikidata"), text, "annotate")
    assert answer.action is Action.ANNOTATE
    assert answer.sentences[1].citations == (BORN.citation,)
    (problem,) = answer.errors
    assert problem.part == "places"
    assert problem.message.startswith("no answer within 30 s; which places lie in which")
