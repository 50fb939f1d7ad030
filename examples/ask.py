"""Ask a language model a question and get a grounded answer.

Run: OPENAI_BASE_URL=http://127.0.0.1:8080/v1 python examples/ask.py ["question"]
Works with any OpenAI-compatible server; OPENAI_MODEL names its model.
"""

import sys

from guardrail import STRICT, Guardrail

question = sys.argv[1] if len(sys.argv) > 1 else "Who was Wolfgang Amadeus Mozart?"
policy = STRICT.changed(deadline_s=None)

with Guardrail() as guard:
    answer = guard.ask(question=question, policy=policy)
    print(f"{answer.action}: {answer.marked}")
    for reason in answer.reasons:
        print(f"  {reason}")
