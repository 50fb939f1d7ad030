"""Ask the local model a question and get a grounded answer.

Run: python examples/ask_local.py ["question"]
Needs, from a clone: pip install ".[local]"
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
