from __future__ import annotations

import pytest

from benchmarks.biokalma.evolve import ChatEvolver
from benchmarks.biokalma.pairs import NamePair, PersonPair, disambiguate, pairs_from_graph
from benchmarks.biokalma.rounds import construct, problems_of
from benchmarks.biokalma.templates import TemplateEvolver
from guardrail.core.errors import ModelError
from guardrail.models import OpenAIModel
from kg import OxigraphGraph, open_graph
from tests.guardrail.models.endpoint import serve


@pytest.fixture(scope="module")
def graph() -> OxigraphGraph:
    people = open_graph()
    assert isinstance(people, OxigraphGraph)
    return people


@pytest.fixture(scope="module")
def pairs(graph: OxigraphGraph) -> list[PersonPair]:
    return disambiguate(graph, pairs_from_graph(graph))


def test_pairs_are_two_persons_that_the_stated_relation_connects(graph, pairs):
    assert len(pairs) > 200
    for pair in pairs[:20]:
        assert pair.link.subject_id == pair.first.id
        assert pair.link.value_id == pair.second.id
        assert pair.link in graph.links([pair.first.id, pair.second.id])
    first = pairs[0]
    right = NamePair(
        first=first.first.label, relation=first.link.property, second=first.second.label
    )
    wrong = right.model_copy(update={"relation": "place of birth"})
    single = right.model_copy(update={"second": "Nobody"})
    assert disambiguate(graph, [right, right]) == [first]
    assert disambiguate(graph, [wrong, single]) == []


def test_six_rounds_leave_a_minimum_set_that_the_answer_states(graph, pairs):
    questions = list(construct(graph, pairs, TemplateEvolver(), n=12, seed=3))
    assert len({question.id for question in questions}) == 12
    by_id = {f"{pair.first.id}-{pair.second.id}": pair for pair in pairs}
    for question in questions:
        injected = [step.injected for step in question.rounds]
        assert [step.number for step in question.rounds] == [1, 2, 3, 4, 5, 6]
        assert [fact.value for fact in question.minimum] == [triple.value for triple in injected]
        assert len(set(question.minimum)) == 6
        last = question.rounds[-1].draft
        assert problems_of(last, by_id[question.id], injected) == []
        for earlier, later in zip(question.rounds, question.rounds[1:], strict=False):
            assert later.draft.answer.startswith(earlier.draft.answer)  # answers only grow


def test_a_chat_model_writes_drafts_and_is_asked_again(pairs):
    pair = pairs[0]
    good = (
        f"Answer: {pair.link.subject} and {pair.link.value} were kin.\n"
        f"Question: How was {pair.first.label} related to {pair.second.label}?"
    )
    with serve() as endpoint:
        evolver = ChatEvolver(OpenAIModel("m", base_url=endpoint.url, api_key="k"))
        endpoint.text = good
        draft = evolver.evolve(pair, [pair.link], None, seed=1)
        assert draft.question.endswith("?")
        assert len(endpoint.requests) == 1
        endpoint.text = "I would rather not."
        with pytest.raises(ModelError, match="3 attempts"):
            evolver.evolve(pair, [pair.link], draft, seed=1)
        assert len(endpoint.requests) == 4
        assert pair.link.value in endpoint.requests[1]["messages"][1]["content"]
