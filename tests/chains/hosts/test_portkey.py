"""Portkey's ``default.webhook``: the request's tool results, and the reply in its own form."""

from chains.evidence import Source
from tests.chains.hosts.asking import GUIDE, NOTES, PRICES, Asked, found, pages, recorded
from tests.chains.hotel import SECRET

PATH = "http://gateway/portkey/webhook"


def test_results_of_tools_in_order():
    evidence, sources = found(recorded("portkey")["request"]["json"])
    assert evidence == [
        ("The Kestrel Hotel has 42 rooms.", *GUIDE),
        ("Breakfast costs 12 euros.", *PRICES),
    ]
    assert sources == (Source.TOOLS,)


async def test_citations_have_title_and_url(empty, monkeypatch):
    asked = Asked(empty, monkeypatch, protocols="portkey")
    reply = await asked.http.post(PATH, json=recorded("portkey"))
    told = reply.json()
    assert told["verdict"] is True
    changed = told["transformedData"]["response"]["json"]
    assert changed["id"] == "chatcmpl-9"
    message = changed["choices"][0]["message"]
    assert message["content"] == NOTES
    assert pages(message) == [GUIDE, PRICES]
    assert SECRET not in reply.text
