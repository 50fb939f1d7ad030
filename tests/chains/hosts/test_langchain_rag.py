"""A LangChain RAG chain: the documents that its retriever returned."""

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from chains import GuardrailRunnable
from chains.evidence import EvidenceSettings, RequestField, Source
from chains.evidence.langchain import chain_evidence
from tests.chains.hosts.asking import GUIDE, NOTES, PRICES, recorded
from tests.chains.hotel import HOTEL_QUESTION, SAID, SECRET

RETRIEVED = [Document.model_validate(item) for item in recorded("langchain_documents")]


def test_documents_in_order_with_title_and_url():
    found = chain_evidence(
        "context", {"context": RETRIEVED}, None, RequestField(), EvidenceSettings()
    )
    assert [(item.id, item.title, item.url) for item in found.evidence] == [
        ("d1", *GUIDE), ("d2", *PRICES), (None, None, "dogs.md"),
    ]  # fmt: skip
    assert found.sources == (Source.CALLER,)
    # As they come over HTTP or out of a store, before LangChain makes documents of them.
    plain = {"context": recorded("langchain_documents")}
    assert chain_evidence("context", plain, None, RequestField(), EvidenceSettings()) == found


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_an_lcel_chain(empty, way):
    model = GenericFakeChatModel(messages=iter([AIMessage(SAID)]))
    prompt = ChatPromptTemplate.from_template("Use this: {context}\n\n{question}")
    chain = RunnablePassthrough.assign(context=RunnableLambda(lambda _: RETRIEVED)).assign(
        answer=prompt | model
    )
    guarded = GuardrailRunnable(empty, chain, evidence="context", answer_key="answer")
    if way == "invoke":
        output = guarded.invoke({"question": HOTEL_QUESTION})
    else:
        first, *rest = guarded.stream({"question": HOTEL_QUESTION})
        output = sum(rest, first)
    message = output["answer"]
    assert message.content == NOTES
    cited = message.response_metadata["guardrail"]["citations"]
    assert [(item["title"], item["url"]) for item in cited] == [GUIDE, PRICES]
    assert SECRET not in str(message)
