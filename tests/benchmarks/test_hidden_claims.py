"""Rows of the newcomer, evasion, opposites and notations benchmarks are read and counted."""

import json

import pytest

from benchmarks.evasion.__main__ import read_hidden
from benchmarks.newcomer.domains import DOMAINS, Domain
from benchmarks.outcomes import outcome, untouched
from guardrail import Guardrail, GuardrailConfig
from guardrail.core.types import Grounding, Passage
from tests.guardrail.scripted import Scripted


@pytest.mark.parametrize("name", sorted(path.name for path in DOMAINS.iterdir() if path.is_dir()))
def test_a_domain_has_evidence_for_each_answer(name):
    answers = Domain(name).answers
    assert len(answers) == 60
    for labelled in answers:
        assert labelled.request.evidence
        for sentence in labelled.sentences:
            assert labelled.request.answer[sentence.start : sentence.end].strip()


def test_a_claim_stands_in_its_answer(tmp_path):
    row = {
        "id": "a", "form": "aside", "question": "", "evidence": [["A", "b", "c"], "A passage."],
        "answer": "It is new (and red).", "claim": "and red", "true": False,
    }  # fmt: skip
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    (hidden,) = read_hidden(tmp_path)
    assert hidden.request.answer[hidden.start : hidden.end] == "and red"


def test_what_a_reader_gets_of_each_sentence():
    sentences = ("Dogs are welcome.", "Cats pay twice.", "Birds sing at noon.")
    scores = ((0.97, 0.02, 0.01), (0.01, 0.01, 0.98), (0.02, 0.97, 0.01))
    groundings = (
        Grounding(supported=a, unsupported=b, contradicted=c, no_claim=0.0) for a, b, c in scores
    )
    judge = Scripted(dict(zip(sentences, groundings, strict=True)))
    text = " ".join(sentences)
    with Guardrail(GuardrailConfig(policy="strict"), grounding=judge) as guard:
        answer = guard.check("", text, evidence=[Passage("Dogs are welcome. Cats pay once.")])
    places = [(text.index(sentence), text.index(sentence) + 1) for sentence in sentences]
    true, against, missing = (outcome(answer, text, *place) for place in places)
    assert (true.supported, true.unmarked) == (True, True)
    assert (against.contradicted, against.removed) == (True, True)
    assert (missing.marked, missing.removed) == (True, False)
    assert not untouched(answer, text)
