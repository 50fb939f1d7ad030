"""Passages that a LangChain retriever finds."""

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from guardrail import Guardrail, GuardrailConfig
from guardrail.core.types import Category
from tests.guardrail.scripted import Overlap

OPENED = "The bridge was opened in 1932."


class Library(BaseRetriever):
    """A LangChain retriever over one document."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(page_content=OPENED, metadata={"title": "City guide"})]


def test_a_retriever_of_langchain_supports_a_part_too() -> None:
    with Guardrail(GuardrailConfig(), retriever=Library(), grounding=Overlap()) as guard:
        answer = guard.check(
            question="When was the bridge opened?",
            answer="The bridge was opened in 1932 by the king.",
        )
    assert answer.sentences[0].category is Category.PARTIALLY_SUPPORTIVE
    assert answer.marked.endswith("1932 [City guide, passage: " + OPENED + "] by the king [NA].")
    supported = answer.scorecard.overall.value
    assert supported is not None
    assert 0.0 < supported < 1.0
