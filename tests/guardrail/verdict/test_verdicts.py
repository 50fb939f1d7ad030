"""Verdicts, many values, and values in another notation."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from guardrail import ANNOTATE, Guardrail, GuardrailConfig, Passage, Triple
from guardrail.core.types import Effect, Grounding, SpanKind
from guardrail.evidence.prepared import prepare
from guardrail.markers.grammar import ParsedText
from guardrail.verdict.checks.typed_values import COMPARED
from guardrail.verdict.claims import GroundingRequest
from guardrail.verdict.grounder import Grounder
from tests.guardrail.scripted import Overlap, Scripted


def rows() -> Iterator[Any]:
    for path in sorted(Path(__file__).parent.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            yield pytest.param(json.loads(line), id=f"{path.stem}-{number}")


@pytest.mark.parametrize("row", list(rows()))
def test_a_sentence_gets_its_verdict(row: dict[str, Any]) -> None:
    evidence = tuple(
        Passage(text=item)
        if isinstance(item, str)
        else Triple(subject=item[0], property=item[1], value=item[2])
        for item in row["evidence"]
    )
    judge = None
    if row.get("scores"):
        judge = Scripted(
            {row.get("read", row["sentence"]): Grounding.model_validate(row["scores"])}
        )
    text = f"{row['before']} {row['sentence']}" if row.get("before") else row["sentence"]
    request = GroundingRequest(
        row.get("question", ""), ParsedText(clean=text, marked=text), prepare(evidence)
    )
    (answer,), _, problems = Grounder(judge).ground([request])
    assert problems == []
    one = answer.sentences[-1]
    assert (one.category and one.category.value) == row["category"]
    if "findings" in row:
        stated = [[f.check, f.effect.value, text[f.start : f.end]] for f in one.findings]
        assert stated == row["findings"]
    if "cited" in row:
        assert [citation.value for citation in one.citations] == row["cited"]
    for kind in (SpanKind.NA, SpanKind.CONTRADICTED):
        if kind.value in row:
            assert [s.text for s in one.spans if s.kind is kind] == row[kind.value]
    for span in one.spans:
        assert text[span.start : span.end] == span.text
    if one.judgement is not None:
        assert one.judgement.category is one.category
    if one.judgement is not None and not one.findings:
        assert max(one.judgement.scores.values()) == one.judgement.scores[one.category]


MANY = 2 * COMPARED
SECONDS = 20.0  # of the processor; all with all took minutes
STATED = " ".join(f"{1_000 + 7 * number} km" for number in range(MANY))
HELD = [f"{900_000 + 11 * number} km" for number in range(MANY)]
EVIDENCE = {
    "prose": [Passage(f"The Fjell 3 has a range of {' '.join(HELD)}.")],
    "facts": [Triple("Fjell 3", "range", held) for held in HELD],
}


@pytest.fixture
def guard():
    with Guardrail(GuardrailConfig(graph={"location": "none"}), grounding=Overlap()) as guard:
        yield guard


@pytest.mark.parametrize("evidence", EVIDENCE.values(), ids=EVIDENCE)
def test_many_values_take_bounded_time(guard, evidence):
    begin = time.process_time()
    guard.check("", f"The Fjell 3 has a range of {STATED}.", evidence=evidence, policy="annotate")
    assert time.process_time() - begin < SECONDS


def test_values_behind_the_bound_are_missing(guard):
    stated = " ".join(f"{1_000 + 7 * number} km" for number in range(COMPARED + 2))
    evidence = [Triple("depot", "range", value) for value in stated.split(" km") if value]
    answer = guard.check("", f"The depot has a range of {stated}.", evidence=evidence)
    (missing,) = [
        item
        for item in answer.sentences[0].findings
        if item.effect is Effect.MISSING and "were not compared" in item.because
    ]
    assert missing.because.startswith("2 values")
    assert answer.text[missing.start : missing.end] == stated[-len("1000 km 1000 km") :].strip()


FACTS = [Triple("Korva", "price", "2490 euros"), Triple("Korva", "range", "110 km")]


def test_the_judge_reads_the_notation_of_the_evidence_and_a_reader_the_own_one() -> None:
    judge = Overlap()
    text = "Korva has the price €2,490 and the range 110,000 m in **bronze**."
    with Guardrail(GuardrailConfig(policy=ANNOTATE), grounding=judge) as guard:
        answer = guard.check("", text, evidence=FACTS)
    (asked,) = judge.asked
    assert asked.sentence == "Korva has the price 2490 euros and the range 110 km in   bronze  ."
    assert answer.text == text
    (sentence,) = answer.sentences
    spans = {span.text: span.kind for span in sentence.spans}
    assert spans == {
        "€2,490": SpanKind.SUPPORTED,
        "110,000 m": SpanKind.SUPPORTED,
        "bronze": SpanKind.NA,
    }
    assert all(text[span.start : span.end] == span.text for span in sentence.spans)


def test_a_shared_unit_is_no_reason_to_cite_a_fact() -> None:
    rule = Passage("The Korva may be sent back if it has been ridden less than 50 km.")
    text = "The Korva may be sent back if it has been ridden less than 50 km."
    with Guardrail(GuardrailConfig(policy=ANNOTATE), grounding=Overlap()) as guard:
        alone = guard.check("", f"It has 110 km. {text}", evidence=[*FACTS, rule]).sentences[1]
        compared = guard.check(
            "", f"{text[:-1]}, and its range is longer.", evidence=[*FACTS, rule]
        )
    assert [citation.property for citation in alone.citations] == ["passage"]
    assert {"passage", "range"} == {item.property for item in compared.sentences[0].citations}


def test_a_value_in_another_notation_is_supported_and_another_value_is_not() -> None:
    with Guardrail(GuardrailConfig(judge="onnx")) as guard:
        true = guard.check("", "The Korva costs €2,490.", evidence=FACTS)
        false = guard.check("", "The Korva costs €2,190.", evidence=FACTS)
    assert [item.category.value for item in true.sentences if item.category] == ["supportive"]
    assert [item.category.value for item in false.judged if item.category] == ["contradictory"]


def test_a_correction_writes_the_notation_of_the_sentence() -> None:
    with Guardrail(GuardrailConfig(judge="onnx", policy="strict-correct")) as guard:
        price = guard.check("", "The Korva costs €2,190.", evidence=FACTS)
        reach = guard.check("", "The Korva has a range of 100,000 m.", evidence=FACTS)
    assert price.text == "The Korva costs €2,490."
    assert reach.text == "The Korva has a range of 110,000 m."
