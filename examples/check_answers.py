"""Check answers against your own facts, without any graph or model.

Run: python examples/check_answers.py
"""

from guardrail import CheckRequest, Guardrail, Triple

facts = (
    Triple(subject="Sydney Harbour Bridge", property="opened", value="1932-03-19"),
    Triple(subject="Sydney Harbour Bridge", property="architect", value="John Bradfield"),
)
answers = [
    "The Sydney Harbour Bridge was opened on 19 March 1932.",
    "The Sydney Harbour Bridge was opened in 1923.",
    "The Sydney Harbour Bridge was designed by John Bradfield and painted by Lin Chen.",
]

with Guardrail() as guard:
    requests = [
        CheckRequest(question="What of the bridge?", answer=answer, evidence=facts)
        for answer in answers
    ]
    for checked in guard.check_batch(requests):
        (sentence,) = checked.sentences
        print(f"{sentence.category}: {checked.marked}")
