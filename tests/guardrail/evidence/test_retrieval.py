"""Bounds of evidence, and places that lie in wider ones."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from guardrail import Action, GuardedAnswer, Guardrail, GuardrailConfig, Passage, Triple
from guardrail.core.errors import InputError, KnowledgeGraphError
from guardrail.core.types import Category, Entity, LinkedEntity, Mention, Sentence, TableRow
from guardrail.evidence import retrieval
from guardrail.evidence.prepared import prepare
from guardrail.evidence.retrieval import MOST_CHARS, Knowledge, with_wider
from guardrail.markers.grammar import parse
from guardrail.verdict.claims import GroundingRequest
from guardrail.verdict.grounder import Grounder
from kg import OxigraphGraph
from tests.guardrail.scripted import Overlap

TRUE = "The Fjell 3 costs 40 euros."
LONG = "x" * (MOST_CHARS + 1)
FACT = {"subject": "Fjell 3", "property": "price", "value": "40 euros"}


@pytest.fixture(scope="module")
def guard():
    with Guardrail(GuardrailConfig(graph={"location": "none"}), grounding=Overlap()) as guard:
        yield guard


@pytest.mark.parametrize(
    ("name", "item"),
    [
        *((name, Passage(text=TRUE, **{name: LONG})) for name in ("id", "title", "url")),
        *(
            (name, Triple(**{**FACT, name: LONG}))
            for name in ("subject", "property", "subject_id", "property_id", "value_id")
        ),
        ("row.table", Triple(**FACT, row=TableRow(table=LONG, number=1))),
    ],
)
def test_a_name_that_is_too_long_is_reported(guard, name, item) -> None:
    with pytest.raises(InputError, match=rf"evidence\[1\].{name} has 2,001 characters.* 2,000"):
        guard.check("Price?", TRUE, evidence=[Passage(TRUE), item])
    with pytest.raises(InputError, match=name):
        guard.session("Price?", evidence=[Passage(TRUE), item])


def test_what_a_retriever_names_has_the_same_bound() -> None:
    def found(question: str) -> list[Passage]:
        return [Passage(text=TRUE, title=LONG)]

    config = GuardrailConfig(graph={"location": "none"})
    with (
        Guardrail(config, grounding=Overlap(), retriever=found) as guard,
        pytest.raises(InputError, match=r"evidence\[0\].title"),
    ):
        guard.check("Price?", TRUE)


def test_texts_and_values_of_any_length_and_names_at_the_bound_are_judged(guard) -> None:
    evidence = [
        Passage(text=f"{TRUE} {'It is green. ' * 2_000}", title="x" * MOST_CHARS),
        Triple("Fjell 3", "notes", "green " * 2_000),
    ]
    answer = guard.check("Price?", TRUE, evidence=evidence)
    assert answer.sentences[0].category == "supportive"


def test_of_much_text_the_longest_passages_are_cut_behind_a_sentence(monkeypatch) -> None:
    monkeypatch.setattr(retrieval, "EVIDENCE_CHARS", 120)
    config = GuardrailConfig(graph={"location": "none"})
    long = "The Fjell 3 costs 40 euros. The Fjell 3 is sold with a lamp, which is no lie. " * 9
    evidence = [Passage(long, id="a"), Triple(**FACT), Passage(TRUE), Triple("It", "is", LONG)]
    with Guardrail(config, grounding=Overlap()) as guard:
        answer = guard.check("Price?", TRUE, evidence=evidence)
        session = guard.session("Price?", evidence=evidence)
        session.add(TRUE)
        grown = session.finish()
    assert answer.evidence == (Passage(TRUE, id="a"), *evidence[1:3])
    assert answer.evidence == grown.evidence
    [stated] = [problem.message for problem in answer.errors if problem.part == "evidence"]
    assert stated.startswith("2 triples and passages were left out or cut; raise limits.evidence")
    assert answer.sentences[0].category == "supportive"


def test_a_retrievers_evidence_and_that_of_a_megabyte_have_a_bound() -> None:
    config = GuardrailConfig(graph={"location": "none"}, judge="none")
    with Guardrail(config, retriever=lambda question: [TRUE, "It is green. " * 200_000]) as guard:
        found = guard.retrieve("Price?")
    assert found.left_out == 1
    assert 450_000 < sum(len(item.text) for item in found.evidence) <= 500_000


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


def stated(text: str, judge: Overlap | None = None, *, verbatim: bool = False) -> Sentence:
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
    one = stated(text)
    assert one.category is Category.SUPPORTIVE
    assert one.citations == (BORN.citation,)
    assert [(span.text, span.triple) for span in one.spans if span.triple] == [(place, BORN)]
    assert one.note == f"Somers Town lies in {place}"


@pytest.mark.parametrize(
    "text",
    ["She was born in a ukulele factory.", "She was born in london.", "In May she was born."],
)
def test_other_words_do_not(text: str) -> None:
    assert BORN.citation not in stated(text).citations


def test_the_judge_reads_which_place_lies_where() -> None:
    judge = Overlap()
    one = stated("Her place of birth was London.", judge)
    assert f"{MARY}, place of birth: Somers Town, London." in judge.asked[-1].statements
    assert one.category is Category.SUPPORTIVE


def test_verbatim_citations_leave_the_triple_out() -> None:
    one = stated("She was born in London.", verbatim=True)
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
def test_the_graph_is_asked_only_where_a_wider_place_may_be_named(answer: str, asked: bool) -> None:
    graph = OxigraphGraph.from_text(TURTLE, profile="wikidata")
    (one,) = with_wider(graph, [answer], [known(BORN)])
    assert one.wider == ({"Q2": ("Camden", "London", "England")} if asked else {})


def test_evidence_of_the_callers_own_is_not_looked_up() -> None:
    graph = OxigraphGraph.from_text(TURTLE, profile="wikidata")
    own = Knowledge(evidence=(BORN,))
    assert with_wider(graph, ["She was born in London."], [own]) == [own]


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
