"""Citations in a host's text: three styles, offsets into the returned text, readable titles."""

import json

import pytest

from chains import GuardrailRunnable
from chains.options import MarkerStyle
from chains.rendering import details, render
from guardrail import STRICT, GuardrailConfig, Passage, Triple
from tests.chains import fake_openai
from tests.chains.conftest import ANSWER, CANARY, QUESTION, scripted_guard
from tests.chains.fake_openai import FakeOpenAI, client_over
from tests.chains.hotel import DOCUMENTS
from tests.chains.models import model, run

WRITER = "[Q47152, occupation: writer]"
MOTHER = "[Q47152, mother: Mary Wollstonecraft]"
NOTES = "[1] Mary Shelley, occupation: writer  \n[2] Mary Shelley, mother: Mary Wollstonecraft"
PLAIN = "Mary Shelley was a writer{}. Her mother was Mary Wollstonecraft{}."
STYLES = {
    MarkerStyle.KALMA: PLAIN.format(f" {WRITER}", f" {MOTHER}"),
    MarkerStyle.FOOTNOTES: f"{PLAIN.format(' [1]', ' [2]')}\n\n{NOTES}",
    MarkerStyle.NONE: PLAIN.format("", ""),
}


@pytest.fixture(scope="module")
def answer(guard):
    return guard.check(question=QUESTION, answer=ANSWER, policy=STRICT)


@pytest.mark.parametrize(("style", "expected"), STYLES.items())
def test_styles(answer, style, expected):
    text, citations = render(answer, style)
    assert text == expected
    cited = [text[citation.start : citation.end] for citation in citations]
    assert cited == ["writer", "Mary Wollstonecraft"]


BOTH = "Mary Shelley was a writer and Mary Wollstonecraft was her mother."
SAILOR = BOTH.replace("writer", "sailor")


@pytest.mark.parametrize(
    ("said", "numbered"),
    [
        (BOTH, "Mary Shelley was a writer and Mary Wollstonecraft was her mother [1][2]."),
        # The place tells which part is supported.
        (SAILOR, "Mary Shelley was a sailor [NA] and Mary Wollstonecraft [1] was her mother."),
    ],
)
def test_numbers_stand_at_the_end_of_a_sentence_that_is_supported_as_a_whole(guard, said, numbered):
    found = guard.check(question=QUESTION, answer=said, policy="annotate")
    assert render(found, MarkerStyle.FOOTNOTES).text.partition("\n")[0] == numbered
    assert found.marked.count("[Q47152") == numbered.count("[") - numbered.count("[NA]")


def test_a_contradicted_sentence_has_one_mark_at_its_end_for_readers_of_a_chat(guard):
    price = Triple("The pool", "price", "4 euros")
    found = guard.check(
        "", "The price is 5 euros at the pool.", evidence=[price], policy="annotate"
    )
    kalma, footnotes = (render(found, MarkerStyle(style)).text for style in ("kalma", "footnotes"))
    assert kalma == "The price is 5 euros [NA] at the pool."
    assert footnotes == "The price is 5 euros at the pool [NA]."


@pytest.mark.parametrize(
    ("passage", "note"),
    [
        (Passage("The pool\nis open."), "The pool is open."),
        (Passage("The pool is open.", title="Pool"), "Pool"),
        (Passage("The pool is open.", url="https://h.x/"), "The pool is open. (https://h.x/)"),
    ],
)
def test_a_note_names_a_passage_by_its_title_or_else_by_what_it_says(guard, passage, note):
    found = guard.check(question="", answer="The pool is open.", evidence=[passage])
    assert render(found, MarkerStyle.FOOTNOTES).text == f"The pool is open [1].\n\n[1] {note}"


def test_details_are_json_without_what_was_removed(guard, answer):
    [removed] = answer.removed
    assert CANARY in removed.text
    text = json.dumps(details(answer))
    assert CANARY not in text
    assert json.loads(text)["action"] == "filter"
    found = guard.check(question=QUESTION, answer="She was born in Peru.", policy="annotate")
    assert "Peru" in details(found)["reasons"][0]


# --- a graph whose ids are IRIs ----------------------------------------------------------

GRAPH = """
@prefix : <http://example.org/thing/> .
@prefix p: <http://example.org/property/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:1 rdfs:label "Merlin Hotel"@en ; p:rooms "42" ; p:chef <urn:staff:9> .
<urn:staff:9> rdfs:label "Otto Vik"@en ; p:cooks "fish" .
p:rooms rdfs:label "rooms"@en . p:chef rdfs:label "chef"@en . p:cooks rdfs:label "cooks"@en .
"""
HOTEL_QUESTION = "How many rooms does the Merlin Hotel have, and who is Otto Vik?"
SAID = "The Merlin Hotel has 42 rooms. Otto Vik cooks fish. Dogs are welcome."
DOGS = [document for document in DOCUMENTS if document.title == "Dogs"]
KALMA = (
    "The Merlin Hotel has 42 rooms [Merlin Hotel, rooms: 42]. Otto Vik cooks fish "
    "[Otto Vik, cooks: fish]. Dogs are welcome [1].\n\n[1] Dogs (https://h.example/dogs)"
)
FOOTNOTES = (
    "The Merlin Hotel has 42 rooms [1]. Otto Vik cooks fish [2]. Dogs are welcome [3].\n\n"
    "[1] Merlin Hotel, rooms: 42  \n[2] Otto Vik, cooks: fish  \n[3] Dogs (https://h.example/dogs)"
)
CITED = [
    ("Merlin Hotel, rooms: 42", "http://example.org/thing/1"),
    ("Otto Vik, cooks: fish", ""),
    ("Dogs", "https://h.example/dogs"),
]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "own.ttl"
    path.write_text(GRAPH)
    config = GuardrailConfig(graph={"location": str(path)}, policy=STRICT)
    with scripted_guard(config=config, retriever=None) as guard:
        yield guard


@pytest.mark.parametrize(("style", "text"), [("kalma", KALMA), ("footnotes", FOOTNOTES)])
@pytest.mark.parametrize("way", ["invoke", "stream"])
async def test_readers_of_a_chain_see_labels_and_pages(own, style, text, way):
    given = {"evidence": lambda _: DOGS, "evidence_mode": "both", "style": style}
    message = await run(GuardrailRunnable(own, model(SAID), **given), HOTEL_QUESTION, way)
    assert message.content == text
    cited = message.response_metadata["guardrail"]["citations"]
    assert [(item["title"], item.get("url") or "") for item in cited] == CITED


async def test_readers_of_openai_see_labels_and_pages(own, monkeypatch):
    monkeypatch.setattr(fake_openai, "ANSWER", SAID)
    client = client_over("client", own, FakeOpenAI().app, evidence_mode="both")
    extra = {"guardrail": {"evidence": [dog.model_dump() for dog in DOGS]}}
    asked = [{"role": "user", "content": HOTEL_QUESTION}]
    reply = await client.chat.completions.create(model="plain", messages=asked, extra_body=extra)
    message = reply.choices[0].message
    assert message.content == FOOTNOTES
    assert [(one.url_citation.title, one.url_citation.url) for one in message.annotations] == CITED
    reply = await client.responses.create(model="plain", input=HOTEL_QUESTION, extra_body=extra)
    assert reply.output_text == FOOTNOTES
    cited = reply.output[-1].content[0].annotations
    assert [(one.title, one.url) for one in cited] == CITED


RENUMBERED = (
    "Dogs are welcome [1]. Breakfast costs 12 euros [2]. The Kestrel Hotel has 42 rooms [3].\n\n"
    "[1] Dogs (https://h.example/dogs)  \n[2] Prices (https://h.example/prices)  \n"
    "[3] Kestrel guide (https://h.example/guide)"
)


@pytest.mark.parametrize("style", ["kalma", "footnotes"])
@pytest.mark.parametrize("way", ["invoke", "stream"])
@pytest.mark.parametrize(
    "said",
    [
        "Dogs are welcome [4]. Breakfast costs 12 euros [2]. The Kestrel Hotel has 42 rooms [1].",
        "Dogs are welcome[^4]. Breakfast costs 12 euros [2]. The Kestrel Hotel has 42 rooms.",
    ],
)
async def test_numbers_that_the_model_wrote_become_those_of_the_list(guard, said, style, way):
    chain = GuardrailRunnable(guard, model(said), evidence=lambda _: DOCUMENTS, style=style)
    message = await run(chain, "What about dogs, breakfast and rooms?", way)
    assert message.content == RENUMBERED


def test_a_person_of_the_shipped_graph_is_cited_with_a_page():
    with scripted_guard(config=GuardrailConfig(policy=STRICT), retriever=None) as guard:
        message = GuardrailRunnable(guard, model("Her mother was Mary Wollstonecraft.")).invoke(
            QUESTION
        )
    page = "https://www.wikidata.org/wiki/Q47152"
    cited = message.response_metadata["guardrail"]["citations"]
    hers = [item for item in cited if item["extras"]["triple"]["entity"] == "Q47152"]
    assert hers
    assert all(item["url"] == page for item in hers)
    assert f"{hers[0]['title']} ({page})" in message.content
    assert "urn:" not in str(message)
