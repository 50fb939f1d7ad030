"""Sample answers from the local model and put them in order of their support.

Run: python examples/rerank_answers.py ["question"]
Needs, from a clone: pip install ".[local]"
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
