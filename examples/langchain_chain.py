"""Guard a LangChain chain.

Run: OPENAI_API_KEY=… python examples/langchain_chain.py ["question"]
Needs: pip install "kg-guardrail[langchain]" langchain-openai
"""

import os
import sys

from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

from chains import GuardrailRunnable
from guardrail import Guardrail

question = sys.argv[1] if len(sys.argv) > 1 else "Who was Mary Shelley, the wife of Percy Shelley?"
prompt = ChatPromptTemplate.from_template("Answer in a few sentences: {question}")
model = ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini"))

with Guardrail() as guard:
    chain = GuardrailRunnable(guard, prompt | model, style="footnotes")
    for chunk in chain.stream({"question": question}):
        print(chunk.text, end="", flush=True)
        verdict = chunk.response_metadata.get("guardrail", {})
    print(f"\n\naction: {verdict['action']}")
    for citation in verdict["citations"]:
        print(f"  {citation['title']}  <{citation['url']}>")
