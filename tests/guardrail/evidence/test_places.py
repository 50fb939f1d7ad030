"""Places told by wider ones: *born in London*, where the graph says Somers Town."""

from collections.abc import Sequence

import pytest

from guardrail import Action, GuardedAnswer, Guardrail, GuardrailConfig
from guardrail.core.errors import KnowledgeGraphError
from guardrail.core.text.units import tells_place
from guardrail.core.types import Category, Entity, LinkedEntity, Mention, Sentence, Triple
from guardrail.evidence.prepared import prepare
from guardrail.evidence.retrieval import Knowledge, with_wider
from guardrail.markers.grammar import parse
from guardrail.verdict.claims import GroundingRequest
from guardrail.verdict.grounder import Grounder
from kg import OxigraphGraph
from tests.guardrail.scripted import Overlap

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


def told(text: str, judge: Overlap | None = None, *, verbatim: bool = False) -> Sentence:
    answer = parse(f"Mary Shelley wrote novels. {text}", FACTS)
    request = GroundingRequest("Who was Mary Shelley?", answer, prepare(FACTS, wider=WIDER))
    (attributed,), _, problems = Grounder(judge, verbatim=verbatim).ground([request])
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
    ],
)
def test_a_wider_place_supports_the_triple(text: str, place: str) -> None:
    one = told(text)
    assert one.category is Category.SUPPORTIVE
    assert one.citations == (BORN.citation,)
    assert [(span.text, span.triple) for span in one.spans if span.triple] == [(place, BORN)]
    assert one.note == f"Somers Town lies in {place}"


@pytest.mark.parametrize(
    "text",
    ["She was born in a ukulele factory.", "She was born in london.", "In May she was born."],
)
def test_other_words_do_not(text: str) -> None:
    assert BORN.citation not in told(text).citations


def test_the_judge_reads_which_place_lies_where() -> None:
    judge = Overlap()
    one = told("Her place of birth was London.", judge)
    assert f"{MARY}, place of birth: Somers Town, London." in judge.asked[-1].statements
    assert one.category is Category.SUPPORTIVE


def test_verbatim_citations_leave_the_triple_out() -> None:
    one = told("She was born in London.", verbatim=True)
    assert one.category is Category.SUPPORTIVE
    assert one.citations == ()


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
    with Guardrail(GuardrailConfig(judge="none"), graph=graph) as guard:
        return guard.check(question="Who was Mary Shelley?", answer=text, policy=policy)


def test_a_true_sentence_passes_and_a_false_one_does_not() -> None:
    graph = OxigraphGraph.from_text(TURTLE, profile="wikidata")
    true = checked(graph, "Mary Shelley was born in London.")
    assert true.action is Action.PASS
    assert true.marked == "Mary Shelley was born in London [Q1, place of birth: Somers Town]."
    assert true.sentences[0].category is Category.SUPPORTIVE
    assert true.errors == ()
    false = checked(graph, "Mary Shelley was born in Paris.", "annotate")
    assert false.sentences[0].category is Category.IRRELEVANT
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
