"""A gateway that holds evidence of its own, for requests that bring none."""

import httpx
import pytest

from chains.evidence import EvidenceMode, Found, Source, case_of
from chains.evidence.earlier import grounds_of
from chains.gateway import GatewaySettings, create_app
from guardrail import ANNOTATE, Guardrail, GuardrailConfig, Passage

ASKED = {
    "question": "What does the Lathe 2 cost?",
    "answer": "The Lathe 2 costs 5200 euros.",
}
ADA = "When was Ada Lovelace born?"


@pytest.fixture(scope="module")
def guard(tmp_path_factory):
    file = tmp_path_factory.mktemp("own") / "machines.csv"
    file.write_text("name,price_eur\nLathe 2,5200\nDrill 7,900\n", "utf-8")
    with Guardrail(GuardrailConfig(evidence=(file,), judge="none")) as made:
        yield made


async def test_checks_and_rank_are_judged_by_the_files(guard):
    transport = httpx.ASGITransport(create_app(guard, GatewaySettings()))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        own = (await client.post("/v1/checks", json=ASKED)).json()
        brought = {"evidence": ["A Lathe 2 is heavy."]}
        other = (await client.post("/v1/checks", json=ASKED | brought)).json()
        ranked = await client.post("/v1/rank", json={**brought, "answers": ["A.", "B."]})
    assert (own["evidence_from"], own["errors"]) == (["files"], [])
    assert own["sentences"][0]["citations"][0]["value"] == "5200"
    assert len(own["evidence"]) == 2
    assert (other["evidence_from"], len(other["evidence"])) == (["caller"], 1)
    assert ranked.status_code == 200


@pytest.mark.parametrize("mode", EvidenceMode)
async def test_the_graph_stands_beside_them_in_both_alone(guard, mode):
    case = await case_of(guard, ADA, Found(), mode)
    answer = await case.check(guard, "Ada Lovelace was born in 1815.", ANNOTATE)
    both = mode is EvidenceMode.BOTH
    assert answer.evidence_from == (("files", "graph") if both else ("files",))
    subjects = {item.subject for item in answer.evidence}
    assert {"Lathe 2", "Drill 7"} <= subjects
    assert ("Ada Lovelace" in subjects) is both


async def test_what_a_tool_returned_counts_beside_them(guard):
    found = Found.of(Source.TOOLS, [Passage("The Lathe 2 is sold out.")])
    case = await case_of(guard, ASKED["question"], found, EvidenceMode.GIVEN)
    assert case.sources == (Source.TOOLS, Source.FILES)
    assert len(case.evidence) == 3
    handed = Found.of(Source.CALLER, [Passage("The Lathe 2 is sold out.")])
    case = await case_of(guard, ASKED["question"], handed, EvidenceMode.GIVEN)
    assert case.sources == (Source.CALLER,)
    case = await case_of(guard, ADA, handed, EvidenceMode.BOTH)
    assert case.sources == (Source.CALLER, Source.FILES, Source.GRAPH)


async def test_an_earlier_answer_keeps_nothing_that_is_there_again(guard):
    case = await case_of(guard, ASKED["question"], Found(), EvidenceMode.GIVEN)
    answer = await case.check(guard, ASKED["answer"], ANNOTATE)
    assert answer.sentences[0].citations
    assert grounds_of(answer) == ()
