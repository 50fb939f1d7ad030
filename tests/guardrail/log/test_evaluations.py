"""Each judged sentence, verdict and score as an event of the conventions, on its answer's span."""

from opentelemetry.trace import get_tracer

from guardrail import STRICT, Guardrail
from guardrail.log.tracing import evaluations_of

RANGE = "The range of the Fjell 3 is 110 km."
PRICE = "The price of the Fjell 3 is 2,490 euros."
WRONG = "The Fjell 3 costs 2,190 euros."
EVENT = "gen_ai.evaluation.result"


def test_every_judged_sentence_is_an_evaluation_with_its_position(guard: Guardrail) -> None:
    answer = guard.check("", f"{RANGE} {WRONG}", evidence=[RANGE, PRICE], policy=STRICT)
    assert len(answer.removed) == 1
    kept, removed = (item for item in evaluations_of(answer) if item.name == "groundedness")
    assert (kept.label, kept.sentence, kept.start, kept.end) == ("supported", 0, 0, len(RANGE))
    assert (removed.label, removed.sentence, removed.start) == ("contradicted", 1, len(RANGE) + 1)
    assert kept.value is not None
    assert removed.value is not None
    assert kept.value > 0.5 > removed.value
    (verdict,) = (item for item in evaluations_of(answer) if item.name == "verdict")
    assert (verdict.label, verdict.value) == ("filter", None)
    assert verdict.explanation == "1 supported; 1 contradicted"


def test_events_stand_on_the_span_of_their_answer_below_the_caller_s(telemetry, guard) -> None:
    with get_tracer("bot").start_as_current_span("answer") as own:
        answer = guard.check("", f"{RANGE} {WRONG}", evidence=[RANGE, PRICE], id="one")
    (check,) = telemetry.named("guardrail.check")
    assert check.parent.span_id == own.get_span_context().span_id
    events = [event.attributes for event in check.events if event.name == EVENT]
    assert len(events) == len(evaluations_of(answer))
    reported = [event for event in events if event["gen_ai.evaluation.name"] == "groundedness"]
    labels = [event["gen_ai.evaluation.score.label"] for event in reported]
    assert labels == ["supported", "contradicted"]
    assert [event["guardrail.sentence.index"] for event in reported] == [0, 1]
    assert {event["gen_ai.response.id"] for event in events} == {"one"}
    assert check.attributes["openinference.span.kind"] == "GUARDRAIL"
    assert check.attributes["guardrail.action"] == "annotate"
    assert check.attributes["guardrail.score.supported_share"] == 0.5


def test_the_same_events_are_log_records_with_the_ids_of_the_span(telemetry, guard) -> None:
    guard.check("", RANGE, evidence=[RANGE])
    (check,) = telemetry.named("guardrail.check")
    records = [item.log_record for item in telemetry.records()]
    assert {record.event_name for record in records} == {EVENT}
    assert {record.span_id for record in records} == {check.context.span_id}
    assert {record.trace_id for record in records} == {check.context.trace_id}
    assert [dict(record.attributes) for record in records] == [
        dict(event.attributes) for event in check.events
    ]


def test_no_word_of_question_answer_or_evidence_is_traced(telemetry, guard) -> None:
    guard.check("How far?", f"{RANGE} {WRONG}", evidence=[RANGE, PRICE], policy=STRICT)
    traced = " ".join(span.to_json() for span in telemetry.spans())
    for word in ("Fjell", "110 km", "2,190", "2,490", "How far"):
        assert word not in traced
