"""Evidence in the requests of each host, and citations in the replies."""

import pytest

from chains.conversation import standalone_question
from chains.evidence.base import EvidenceSettings, RequestField, Source
from chains.evidence.openai import request_evidence, request_turns
from tests.chains.hosts.asking import GUIDE, NOTES, PRICES, answered, pages, recorded
from tests.chains.hotel import HOTEL_QUESTION, ITEMS, MORE, RIGHT, SAID, SECRET

NOT_CITED = ("The pool is open daily.", "Pool", None)
REQUESTS = {
    "openai_chat": (  # results of tools, the newest first
        [(MORE, *PRICES), (RIGHT, *GUIDE)],
        (Source.TOOLS,),
        SAID,
        [GUIDE, PRICES],
    ),
    "anthropic": (
        [
            ("Dogs are welcome.", "Dogs", None), NOT_CITED,
            ("The Kestrel Hotel stands in Bergen.", *GUIDE), (RIGHT, *GUIDE), (MORE, *PRICES),
        ],
        (Source.PARTS, Source.TOOLS),
        f"{RIGHT} Dogs are welcome. The Kestrel Hotel has 97 rooms in {SECRET}. {MORE}",
        [GUIDE, ("Dogs", ""), PRICES],
    ),
    "bedrock": (
        [
            (RIGHT, *GUIDE),
            (MORE, "Prices", None),
            ("Dogs are welcome.", None, None),
            ("The pool is open daily.", None, None),
        ],
        (Source.PARTS,),
        f"{RIGHT} The Kestrel Hotel has 97 rooms in {SECRET}. {MORE} Dogs are welcome.",
        [GUIDE, ("Prices", ""), ("passage 3", "")],
    ),
    "litellm": ([(RIGHT, *GUIDE), (MORE, *PRICES)], (Source.PARTS,), SAID, [GUIDE, PRICES]),
    "azure": (  # bare texts, with neither title nor url
        [(RIGHT, None, None), (MORE, None, None)],
        (Source.PARTS,),
        SAID,
        [("passage 1", ""), ("passage 2", "")],
    ),
}  # fmt: skip


TEXTS = {
    "anthropic": ["Dogs are welcome.", "The pool is open daily.",
        f"The Kestrel Hotel stands in Bergen.\n\n{RIGHT}", HOTEL_QUESTION],
    "bedrock": [RIGHT, MORE, "Dogs are welcome.", "The pool is open daily.", HOTEL_QUESTION,
        "Answer in a sentence."],
    "litellm": [RIGHT, MORE, HOTEL_QUESTION],
}  # fmt: skip
"""What the upstream gets of content parts: plain text."""


@pytest.mark.parametrize(("name", "row"), REQUESTS.items(), ids=list(REQUESTS))
async def test_evidence_is_read_in_order_and_cited_with_its_page(empty, monkeypatch, name, row):
    evidence, sources, said, cited = row
    settings = EvidenceSettings()
    if name == "litellm":  # its hook repeats the messages of a chat request
        body = {"model": "plain", "messages": recorded("litellm_request")["structured_messages"]}
    else:
        body = recorded(name)
    held = request_evidence(body, RequestField(), settings)
    assert [(item.text, item.title, item.url) for item in held.evidence] == evidence
    assert held.sources == sources
    if Source.TOOLS not in sources or name == "anthropic":
        question = standalone_question(request_turns(body, settings))
        assert (held.question or question) == HOTEL_QUESTION
    reply, sent = await answered(empty, monkeypatch, body, said)
    message = reply["choices"][0]["message"]
    assert pages(message) == cited
    assert SECRET not in str(message)
    last, (title, url) = len(cited), cited[-1]
    note = evidence[last - 1][0] if title.startswith("passage ") else title
    assert message["content"].endswith(f"[{last}] {note} ({url})" if url else f"[{last}] {note}")
    if name in TEXTS:
        parts = [{"type": "text", "text": text} for text in TEXTS[name]]
        assert sent["messages"][0]["content"] == parts
    assert not {"groundingSources", "qna"} & sent.keys()


async def test_responses(empty, monkeypatch):
    body, settings = recorded("openai_responses"), EvidenceSettings()
    held = request_evidence(body, RequestField(), settings, responses=True)
    assert [(item.text, item.title) for item in held.evidence] == [
        (RIGHT, GUIDE[0]),
        (MORE, PRICES[0]),
    ]
    assert (held.evidence[0].id, held.sources) == ("file-7", (Source.TOOLS,))
    turns = request_turns(body, settings, responses=True)
    assert standalone_question(turns) == HOTEL_QUESTION
    reply, _ = await answered(empty, monkeypatch, body, path="responses")
    message = next(item for item in reply["output"] if item["type"] == "message")
    (part,) = message["content"]
    assert part["text"] == NOTES
    assert [(item["title"], item["url"]) for item in part["annotations"]] == [GUIDE, PRICES]


async def test_evidence_of_the_caller_goes_first(empty, monkeypatch):
    body = recorded("openai_chat")
    for brought, evidence in (
        ({}, {"from": ["tool results", "graph"], "count": 2}),
        ({"guardrail": {"evidence": ITEMS}}, {"from": ["caller", "tool results"], "count": 7}),
    ):
        reply, sent = await answered(empty, monkeypatch, body | brought)
        assert reply["choices"][0]["message"]["guardrail"]["evidence"] == evidence
        assert sent == body
