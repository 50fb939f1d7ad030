"""A RAG chain over five documents: its answer is judged against the documents it was shown.

Run: OPENAI_API_KEY=… python examples/rag_chain.py
Needs, from a clone: pip install ".[langchain]" langchain-openai
"""

import os
import sys
from typing import Any

from guardrail import Guardrail

try:
    from langchain_core.documents import Document
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough

    from chains import GuardrailRunnable
except ImportError as missing:
    sys.exit(f'{missing}; run in the clone: pip install ".[langchain]" langchain-openai')

DOCUMENTS = [
    Document(text, metadata={"title": title, "source": f"https://hotel.example/{title.lower()}"})
    for title, text in {
        "Rooms": "The Kestrel Hotel is in Bergen. The Kestrel Hotel has 42 rooms.",
        "Breakfast": "Breakfast costs 12 euros. It is served until 10:30.",
        "Pool": "The pool is open daily from 7:00 to 21:00.",
        "Dogs": "Dogs are welcome.",
        "Sauna": "The sauna is closed in July.",
    }.items()
]
PROMPT = ChatPromptTemplate.from_template("Answer from this: {context}\n\n{question}")


def retrieve(question: str) -> list[Document]:
    """The documents that share most words with the question; a vector store in real life."""
    words = set(question.lower().strip("?").split())
    return sorted(DOCUMENTS, key=lambda item: -len(words & set(item.page_content.lower().split())))[
        :3
    ]


def build(guard: Guardrail, model: Any) -> GuardrailRunnable[dict[str, Any], dict[str, Any]]:
    """Question in, guarded answer out; documents are fetched once, and judged against."""
    chain = RunnablePassthrough.assign(
        context=RunnableLambda(lambda asked: retrieve(asked["question"]))
    ).assign(answer=PROMPT | model)
    return GuardrailRunnable(guard, chain, evidence="context", answer_key="answer")


if __name__ == "__main__":
    if not os.environ.get("OPENAI_API_KEY"):
        sys.exit("set OPENAI_API_KEY, and OPENAI_BASE_URL where the endpoint is not OpenAI's")
    from langchain_openai import ChatOpenAI

    with Guardrail() as guard:
        guarded = build(guard, ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini")))
        answer = guarded.invoke({"question": "How many rooms does the Kestrel Hotel have?"})
    message = answer["answer"]
    print(message.content)
    print(f"\naction: {message.response_metadata['guardrail']['action']}")
