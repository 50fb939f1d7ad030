"""OpenAI's responses: outputs of functions, and results of its file search."""

from chains.evidence import EvidenceSettings, RequestField, Source
from chains.evidence.openai import response_evidence, response_question
from tests.chains.hosts.asking import GUIDE, NOTES, PRICES, Asked, recorded
from tests.chains.hotel import HOTEL_QUESTION, SECRET


def test_results_the_newest_first():
    found = response_evidence(recorded("openai_responses"), RequestField(), EvidenceSettings())
    assert [(item.text, item.title, item.url) for item in found.evidence] == [
        ("The Kestrel Hotel has 42 rooms.", *GUIDE),
        ("Breakfast costs 12 euros.", *PRICES),
    ]
    assert found.evidence[0].id == "file-7"
    assert found.sources == (Source.TOOLS,)
    assert response_question(recorded("openai_responses"), EvidenceSettings()) == HOTEL_QUESTION


async def test_citations_have_title_and_url(empty, monkeypatch):
    asked = Asked(empty, monkeypatch)
    reply = await asked.http.post("/responses", json=recorded("openai_responses"))
    message = next(item for item in reply.json()["output"] if item["type"] == "message")
    (part,) = message["content"]
    assert part["text"] == NOTES
    assert [(item["title"], item["url"]) for item in part["annotations"]] == [GUIDE, PRICES]
    assert SECRET not in reply.text
