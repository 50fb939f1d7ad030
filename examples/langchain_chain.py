"""Guard a LangChain chain.

Run: OPENAI_API_KEY=… python examples/langchain_chain.py ["question"]
Needs, from a clone: pip install ".[langchain]" langchain-openai
"""

import os
import sys

from guardrail import Guardrail

try:
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_openai import ChatOpenAI

    from chains import GuardrailRunnable
except ImportError as missing:
    sys.exit(f'{missing}; run in the clone: pip install ".[langchain]" langchain-openai')

if not os.environ.get("OPENAI_API_KEY"):
    sys.exit("set OPENAI_API_KEY, and OPENAI_BASE_URL where the endpoint is not OpenAI's")

question = (
    sys.argv[1] if len(sys.argv) > 1 else "Who was Mary Shelley, the wife of Percy Bysshe Shelley?"
)
prompt = ChatPromptTemplate.from_template("Answer in a few sentences: {question}")
model = ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini"))

with Guardrail() as guard:
    chain = GuardrailRunnable(guard, prompt | model)
    for chunk in chain.stream({"question": question}):
        print(chunk.text, end="", flush=True)
        verdict = chunk.response_metadata.get("guardrail", {})
    print(f"\n\naction: {verdict['action']}")
    for citation in verdict["citations"]:
        print("  ", citation["title"], citation.get("url", ""))
