"""Sample answers from a language model and rank them by their support.

Run: OPENAI_BASE_URL=http://127.0.0.1:8080/v1 python examples/rerank_answers.py ["question"]
Works with any OpenAI-compatible server; OPENAI_MODEL names its model.
"""

import sys

from guardrail import BEST_OF_N, Guardrail

question = sys.argv[1] if len(sys.argv) > 1 else "Who was Ada Lovelace, and who was her father?"
policy = BEST_OF_N.changed(attempts=1, deadline_s=None)

with Guardrail() as guard:
    ranked = guard.ask_ranked(question=question, n=3, policy=policy)
    for place, answer in enumerate(ranked, start=1):
        score = answer.scorecard.overall
        shown = "–" if score.value is None else f"{score.value:.2f}"
        print(f"{place}. {shown}  {'; '.join(answer.reasons[:1])}")
        print(f"   {answer.marked}\n")
