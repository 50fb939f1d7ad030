"""Guard the final answers of a LangChain agent; its tool calls are left alone.

Run: OPENAI_API_KEY=… python examples/langchain_agent.py
Needs, from a clone: pip install ".[langchain]" langchain-openai
"""

import os
import sys

from guardrail import Guardrail
from kg import open_graph

try:
    from langchain.agents import create_agent
    from langchain_core.messages import HumanMessage
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    from chains import GuardrailMiddleware
except ImportError as missing:
    sys.exit(f'{missing}; run in the clone: pip install ".[langchain]" langchain-openai')

if not os.environ.get("OPENAI_API_KEY"):
    sys.exit("set OPENAI_API_KEY, and OPENAI_BASE_URL where the endpoint is not OpenAI's")

graph = open_graph()


@tool
def look_up(name: str) -> str:
    """Look up what the knowledge graph says of a person."""
    found = graph.find([name])[0]
    if not found:
        return f"The graph does not know {name}."
    facts = graph.subgraphs([found[0].id])[0].triples
    return "; ".join(f"{fact.property}: {fact.value}" for fact in facts)


with Guardrail(graph=graph) as guard:
    agent = create_agent(
        ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini")),
        [look_up],
        middleware=[GuardrailMiddleware(guard)],
    )
    question = "Who was Mary Shelley, the wife of Percy Bysshe Shelley?"
    state = agent.invoke({"messages": [HumanMessage(question)]})
    print(state["messages"][-1].text)
    print(f"\naction: {state['guardrail']['action']}")
