"""A sentence's verdict and its judge never part without a finding that says why."""

import json
from itertools import product
from pathlib import Path

import pytest

from guardrail import CheckRequest, Guardrail, GuardrailConfig, Passage, Strictness, Triple
from guardrail.core.types import Grounding
from tests.guardrail.scripted import Scripted

VERDICTS = Path(__file__).parents[1] / "verdict"
ROWS = [
    json.loads(line)
    for path in sorted(VERDICTS.glob("*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
]
TENTHS = [
    dict(zip(("supported", "unsupported", "contradicted", "no_claim"), parts, strict=True))
    for parts in product((0.0, 0.1, 0.3, 0.5, 0.7, 0.9), repeat=4)
    if abs(sum(parts) - 1.0) < 1e-9
]
"""What a judge may say of a sentence, over its whole range."""


def request(row):
    evidence = tuple(
        Passage(text=item) if isinstance(item, str) else Triple(*item) for item in row["evidence"]
    )
    text = f"{row['before']} {row['sentence']}" if row.get("before") else row["sentence"]
    return CheckRequest(question=row.get("question", ""), answer=text, evidence=evidence)


def sentences(told, rows):
    config = GuardrailConfig(graph={"location": "none"})
    judge = Scripted({name: Grounding.model_validate(scores) for name, scores in told.items()})
    with Guardrail(config, grounding=judge) as guard:
        for answer in guard.check_batch([request(row) for row in rows], policy="annotate"):
            assert [error.part for error in answer.errors] in (
                [],
                ["question"],
                ["evidence"],
                ["question", "evidence"],
            )
            yield from answer.sentences


def agree(sentence):
    """Whether verdict, judgement and what the judge finds likeliest are the same."""
    judgement = sentence.judgement
    if judgement is None or sentence.category is None:
        return judgement is None
    best = max(judgement.scores.values())
    return judgement.category is sentence.category and (
        judgement.scores[sentence.category] == pytest.approx(best)
    )


def test_every_recorded_row():
    for row in ROWS:
        told = {row["sentence"]: row["scores"]} if row.get("scores") else {}
        found = list(sentences(told, [row]))
        assert found
        for item in found:
            assert agree(item) or item.findings, item


@pytest.mark.parametrize("scores", TENTHS, ids=lambda item: " ".join(map(str, item.values())))
def test_every_row_whatever_the_judge_says(scores):
    held = [row.get("scores") or {} for row in ROWS]
    told = {row["sentence"]: {**item, **scores} for row, item in zip(ROWS, held, strict=True)}
    parted = [sentence for sentence in sentences(told, ROWS) if not agree(sentence)]
    for item in parted:
        assert item.findings, item
        assert item.findings[-1].check == "judge"
        because = item.findings[-1].because
        assert f"and has {item.support:.2f}; contradiction" in because
        assert because.endswith(f"and has {item.contradiction:.2f}")


@pytest.mark.parametrize("strictness", list(Strictness))
def test_the_finding_names_the_thresholds_that_were_used(strictness):
    told = Grounding(supported=0.3, unsupported=0.25, contradicted=0.45, no_claim=0.0)
    config = GuardrailConfig(graph={"location": "none"}, strictness=strictness)
    sentence = "The pool is warm."
    with Guardrail(config, grounding=Scripted({sentence: told})) as guard:
        (one,) = guard.check("", sentence, evidence=[Passage("The pool is cold.")]).sentences
    (finding,) = one.findings
    at = strictness.thresholds
    assert (finding.check, finding.effect) == ("judge", "missing")
    assert finding.because == (
        f"support takes a probability of {at.support:.2f} and has 0.30; "
        f"contradiction takes {at.contradiction:.2f} and has 0.45"
    )
