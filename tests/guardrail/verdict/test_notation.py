"""Sentences with values in another notation than the evidence's, through the guardrail."""

from guardrail import ANNOTATE, Guardrail, GuardrailConfig
from guardrail.core.types import SpanKind, Triple
from tests.guardrail.scripted import Overlap

FACTS = [Triple("Korva", "price", "2490 euros"), Triple("Korva", "range", "110 km")]


def test_the_judge_reads_the_notation_of_the_evidence_and_a_reader_the_own_one() -> None:
    judge = Overlap()
    text = "Korva has the price €2,490 and the range 110,000 m in **bronze**."
    with Guardrail(GuardrailConfig(policy=ANNOTATE), grounding=judge) as guard:
        answer = guard.check("", text, evidence=FACTS)
    (asked,) = judge.asked
    assert asked.sentence == "Korva has the price 2490 euros and the range 110 km in **bronze**."
    assert answer.text == text
    (sentence,) = answer.sentences
    spans = {span.text: span.kind for span in sentence.spans}
    assert spans == {
        "€2,490": SpanKind.SUPPORTED,
        "110,000 m": SpanKind.SUPPORTED,
        "bronze": SpanKind.NA,
    }
    assert all(text[span.start : span.end] == span.text for span in sentence.spans)


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
