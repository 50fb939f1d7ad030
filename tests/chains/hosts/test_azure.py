"""Azure's groundedness detection: ``groundingSources`` and ``qna.query`` beside the messages."""

from chains.evidence import EvidenceSettings, RequestField, Source
from chains.evidence.openai import chat_evidence
from tests.chains.hosts.asking import Asked, found, pages, recorded
from tests.chains.hotel import HOTEL_QUESTION, SECRET


def test_sources_in_order_and_the_question():
    evidence, sources = found(recorded("azure"))
    assert evidence == [
        ("The Kestrel Hotel has 42 rooms.", None, None),
        ("Breakfast costs 12 euros.", None, None),
    ]
    assert sources == (Source.PARTS,)
    held = chat_evidence(recorded("azure"), RequestField(), EvidenceSettings())
    assert held.question == HOTEL_QUESTION


async def test_citations_number_the_sources(empty, monkeypatch):
    """Azure's sources are bare texts: they have neither title nor url."""
    asked = Asked(empty, monkeypatch)
    message = await asked.chat(recorded("azure"))
    assert pages(message) == [("passage 1", ""), ("passage 2", "")]
    assert message["content"].endswith("[1] passage 1  \n[2] passage 2")
    assert SECRET not in str(message)
    for field in ("groundingSources", "qna"):
        assert field not in asked.sent
