"""An agent whose tool returns the facts: its answer is judged against what the tool said.

Run: OPENAI_API_KEY=… python examples/agent_tools.py
Needs, from a clone: pip install ".[langchain]" langchain-openai
"""

import json
import os
import sys
from typing import Any

from guardrail import Guardrail

try:
    from langchain.agents import create_agent
    from langchain_core.tools import tool

    from chains import GuardrailMiddleware
except ImportError as missing:
    sys.exit(f'{missing}; run in the clone: pip install ".[langchain]" langchain-openai')

SHEETS = {
    "Kestrel K3": {"weight": "1.2 kg", "battery life": "14 hours", "price": "899 euros"},
    "Merlin M1": {"weight": "2.4 kg", "battery life": "9 hours", "price": "649 euros"},
}


@tool
def product_sheet(name: str) -> str:
    """The facts of a laptop, by its name."""
    return json.dumps({"name": name, **SHEETS.get(name, {})})


def build(guard: Guardrail, model: Any) -> Any:
    """An agent that may repeat what its tool returned, and nothing else about products."""
    return create_agent(model, [product_sheet], middleware=[GuardrailMiddleware(guard)])


if __name__ == "__main__":
    if not os.environ.get("OPENAI_API_KEY"):
        sys.exit("set OPENAI_API_KEY, and OPENAI_BASE_URL where the endpoint is not OpenAI's")
    from langchain_openai import ChatOpenAI

    with Guardrail() as guard:
        agent = build(guard, ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini")))
        state = agent.invoke({"messages": [("user", "What does the Kestrel K3 weigh?")]})
    print(state["messages"][-1].content)
    print(f"\naction: {state['guardrail']['action']}")
