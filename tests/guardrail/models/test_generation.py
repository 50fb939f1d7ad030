from __future__ import annotations

import asyncio

from guardrail.core.types import Entity, FailedSentence, Subgraph, Triple
from guardrail.markers.grammar import parse
from guardrail.models import LangChainModel
from guardrail.models.facts import flatten, relevant_triples
from guardrail.models.generation import generate
from guardrail.models.prompts import DEMONSTRATION_ANSWER, DEMONSTRATION_FACTS, answer_prompt


def subgraph(entity: str, label: str, **facts: str) -> Subgraph:
    triples = tuple(
        Triple(subject=label, subject_id=entity, property=name.replace("_", " "), value=value)
        for name, value in facts.items()
    )
    return Subgraph(entity=Entity(id=entity, label=label), triples=triples)


ANN = subgraph(
    "Q1", "Ann", instance_of="human", place_of_birth="Rome", occupation="painter", father="Bob"
)
BOB = subgraph("Q2", "Bob", place_of_death="London")


def test_the_demonstration_cites_only_its_facts_and_admits_what_is_missing() -> None:
    parsed = parse(DEMONSTRATION_ANSWER, DEMONSTRATION_FACTS)
    given = {triple.citation for triple in DEMONSTRATION_FACTS}
    assert set(parsed.citations) == given
    assert sum(marker.na for marker in parsed.markers) == 4


def test_facts_are_flat_text_most_relevant_first() -> None:
    shown = relevant_triples("Where was Ann the painter born, and who was Bob?", [ANN, BOB])
    assert flatten(shown) == (
        "{Q1, name: Ann, occupation: painter, father: Bob, place of birth: Rome, "
        "instance of: human}\n{Q2, name: Bob, place of death: London}"
    )


def test_the_prompt_has_a_chat_and_a_completion_form() -> None:
    prompt = answer_prompt(
        "Who\nwas Ann?", ANN.triples, failed=[FailedSentence(text="A.", reason="B")]
    )
    assert [message.role for message in prompt.messages] == ["system", "user", "assistant", "user"]
    assert prompt.text.endswith(
        "Do not repeat these mistakes:\n- A. (B)\nQuestion: Who was Ann?\nAnswer:"
    )
    assert prompt.messages[-1].content in prompt.text


def test_answers_keep_only_retrieved_citations_unless_prompted_plainly() -> None:
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    reply = "Ann sang [Q9, a: b]. Ann was born in Rome [Q1, place of birth: Rome]. Ann sang [NA]."
    model = LangChainModel(FakeListChatModel(responses=[reply]))
    held, again = asyncio.run(generate("Who was Ann?", [ANN], model, 2))
    assert held == again == "Ann sang [NA]. Ann was born in Rome [Q1, place of birth: Rome]."
    (free,) = asyncio.run(generate("Who was Ann?", [ANN], model, constrained=False))
    assert free == "Ann sang [Q9, a: b]. Ann was born in Rome [Q1, place of birth: Rome]."
