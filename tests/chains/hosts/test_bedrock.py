"""Amazon Bedrock: ``guardContent`` with its qualifiers, search results and documents."""

from chains.evidence import EvidenceSettings, RequestField, Source
from chains.evidence.openai import chat_evidence
from tests.chains.hosts.asking import GUIDE, Asked, found, pages, recorded
from tests.chains.hotel import HOTEL_QUESTION, MORE, RIGHT, SECRET


def test_sources_in_order_and_the_question():
    evidence, sources = found(recorded("bedrock"))
    assert evidence == [
        ("The Kestrel Hotel has 42 rooms.", *GUIDE),
        ("Breakfast costs 12 euros.", "Prices", None),
        ("Dogs are welcome.", None, None),
        ("The pool is open daily.", None, None),
    ]
    assert sources == (Source.PARTS,)
    held = chat_evidence(recorded("bedrock"), RequestField(), EvidenceSettings())
    assert held.question == HOTEL_QUESTION


async def test_citations_have_what_the_payload_tells(empty, monkeypatch):
    said = f"{RIGHT} The Kestrel Hotel has 97 rooms in {SECRET}. {MORE} Dogs are welcome."
    asked = Asked(empty, monkeypatch, said)
    message = await asked.chat(recorded("bedrock"))
    assert pages(message) == [GUIDE, ("Prices", ""), ("passage 3", "")]
    assert SECRET not in str(message)
    texts = [part["text"] for part in asked.sent["messages"][0]["content"]]
    assert texts == [
        "The Kestrel Hotel has 42 rooms.", "Breakfast costs 12 euros.", "Dogs are welcome.",
        "The pool is open daily.", HOTEL_QUESTION, "Answer in a sentence.",
    ]  # fmt: skip
