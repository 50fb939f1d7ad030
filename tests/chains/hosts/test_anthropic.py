"""Anthropic's content: documents, search results and results of tools."""

from chains.evidence import EvidenceSettings, Source
from chains.evidence.openai import chat_question
from tests.chains.hosts.asking import GUIDE, PRICES, Asked, found, pages, recorded
from tests.chains.hotel import HOTEL_QUESTION, MORE, RIGHT, SECRET


def test_documents_in_order_then_results_of_tools():
    evidence, sources = found(recorded("anthropic"))
    assert evidence == [
        ("Dogs are welcome.", "Dogs", None),
        ("The pool is open daily.", "Pool", None),
        ("The Kestrel Hotel stands in Bergen.", *GUIDE),
        ("The Kestrel Hotel has 42 rooms.", *GUIDE),
        ("Breakfast costs 12 euros.", *PRICES),
    ]
    assert sources == (Source.PARTS, Source.TOOLS)
    assert chat_question(recorded("anthropic"), EvidenceSettings()) == HOTEL_QUESTION


async def test_citations_have_title_and_url(empty, monkeypatch):
    said = f"{RIGHT} Dogs are welcome. The Kestrel Hotel has 97 rooms in {SECRET}. {MORE}"
    asked = Asked(empty, monkeypatch, said)
    message = await asked.chat(recorded("anthropic"))
    assert pages(message) == [GUIDE, ("Dogs", ""), PRICES]
    assert SECRET not in str(message)
    assert message["content"].endswith(
        "[1] Kestrel guide (https://h.example/guide)  \n[2] Dogs  \n"
        "[3] Prices (https://h.example/prices)"
    )


async def test_a_server_that_knows_no_documents_gets_texts(empty, monkeypatch):
    asked = Asked(empty, monkeypatch)
    await asked.chat(recorded("anthropic"))
    assert asked.sent["messages"][0]["content"] == [
        {"type": "text", "text": text}
        for text in (
            "Dogs are welcome.", "The pool is open daily.",
            "The Kestrel Hotel stands in Bergen.\n\nThe Kestrel Hotel has 42 rooms.",
            HOTEL_QUESTION,
        )
    ]  # fmt: skip
    kept = Asked(empty, monkeypatch, keep_parts=True)
    await kept.chat(recorded("anthropic"))
    assert kept.sent == recorded("anthropic")
