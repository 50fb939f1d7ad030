"""OpenAI's chat completions: messages of tools, and the field ``guardrail``."""

from chains.evidence import Source
from tests.chains.hosts.asking import GUIDE, NOTES, PRICES, Asked, found, pages, recorded
from tests.chains.hotel import ITEMS, SECRET


def test_results_of_tools_the_newest_first():
    evidence, sources = found(recorded("openai_chat"))
    assert evidence == [
        ("Breakfast costs 12 euros.", *PRICES),
        ("The Kestrel Hotel has 42 rooms.", *GUIDE),
    ]
    assert sources == (Source.TOOLS,)


async def test_citations_have_title_and_url(empty, monkeypatch):
    asked = Asked(empty, monkeypatch)
    message = await asked.chat(recorded("openai_chat"))
    assert message["content"] == NOTES
    assert pages(message) == [GUIDE, PRICES]
    assert message["guardrail"]["evidence"]["from"] == ["tool results", "graph"]
    assert SECRET not in str(message)
    assert asked.sent == recorded("openai_chat")


async def test_what_the_caller_hands_over_goes_first(empty, monkeypatch):
    asked = Asked(empty, monkeypatch)
    body = recorded("openai_chat") | {"guardrail": {"evidence": ITEMS}}
    message = await asked.chat(body)
    assert pages(message) == [GUIDE, PRICES]
    assert message["guardrail"]["evidence"] == {"from": ["caller", "tool results"], "count": 7}
    assert "guardrail" not in asked.sent
