from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.biokalma.evolve import ChatEvolver
from benchmarks.biokalma.pairs import (
    NamePair,
    PersonPair,
    disambiguate,
    pairs_from_csv,
    pairs_from_graph,
)
from benchmarks.biokalma.rounds import Draft, construct, problems_of
from benchmarks.biokalma.templates import TemplateEvolver
from guardrail.core.errors import InputError, ModelError
from guardrail.core.types import Triple
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


def test_pairs_are_two_persons_that_the_stated_relation_connects(
    graph: OxigraphGraph, pairs: list[PersonPair]
) -> None:
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


def test_pairs_from_a_table(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text('first,relation,second\n"Ann, Lady Bell",spouse,Bob Bell\n')
    (pair,) = pairs_from_csv(table)
    assert pair == NamePair(first="Ann, Lady Bell", relation="spouse", second="Bob Bell")
    table.write_text("Ann Bell,spouse\n")
    with pytest.raises(InputError, match="three columns"):
        pairs_from_csv(table)


def test_six_rounds_leave_a_minimum_set_that_the_answer_states(
    graph: OxigraphGraph, pairs: list[PersonPair]
) -> None:
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


def test_construction_is_deterministic_and_resumes(
    graph: OxigraphGraph, pairs: list[PersonPair]
) -> None:
    whole = list(construct(graph, pairs, TemplateEvolver(), n=6, seed=1))
    rest = construct(
        graph, pairs[::-1], TemplateEvolver(), n=6, seed=1, done=[q.id for q in whole[:4]]
    )
    assert list(rest) == whole[4:]
    other = construct(graph, pairs, TemplateEvolver(), n=6, seed=2)
    assert [question.id for question in other] != [question.id for question in whole]


PAINTER = Triple(subject="Ann", subject_id="Q10", property="date of birth", value="1593-07-08")


@pytest.mark.parametrize(
    ("answer", "question", "problem"),
    [
        ("Born in 1593.", "Who was {first}?", "lacks date of birth"),
        ("Born on July 8, 1593.", "Who was {first}? And when?", "one single question"),
        ("Born on 8 July 1593.", "Who was she?", "names neither"),
        ("1593-07-08, says Q10.", "Who was {first}?", "leaked"),
        ("1593-07-08 [NA].", "Who was {first}?", "leaked"),
    ],
)
def test_drafts_are_validated(
    pairs: list[PersonPair], answer: str, question: str, problem: str
) -> None:
    draft = Draft(answer=answer, question=question.format(first=pairs[0].first.label))
    (found,) = problems_of(draft, pairs[0], [PAINTER])
    assert problem in found


def test_a_chat_model_writes_drafts_and_is_asked_again(pairs: list[PersonPair]) -> None:
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
