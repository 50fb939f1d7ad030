"""Spans and metrics of the guardrail, seen by the OpenTelemetry SDK's in-memory exporters."""

from itertools import count

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from guardrail import Action, Guardrail, GuardrailConfig, Triple
from guardrail.config import GraphConfig
from guardrail.core.errors import KnowledgeGraphError
from guardrail.log.records import SQLiteLog
from guardrail.policy import BEST_OF_N, STRICT
from tests.guardrail.models.endpoint import serve

QUESTION = "Who was Wolfgang Amadeus Mozart?"


def test_a_check(telemetry, tmp_path):
    with (
        SQLiteLog(tmp_path / "log.sqlite") as log,
        Guardrail(GuardrailConfig(judge="none"), log=log) as guard,
    ):
        guard.check(question=QUESTION, answer="Mozart was born in Salzburg.", id="one")
    assert telemetry.tree() == [
        "guardrail.check", "  guardrail.parse", "  retrieval", "  guardrail.attribute",
        "  guardrail.score", "  guardrail.record",
    ]  # fmt: skip
    (check,) = telemetry.named("guardrail.check")
    assert check.status.status_code is StatusCode.UNSET
    scores = {
        event.attributes["gen_ai.evaluation.name"]: event.attributes
        for event in check.events
        if event.name == "gen_ai.evaluation.result"
    }
    assert scores["overall"]["gen_ai.evaluation.score.value"] == 1.0
    assert scores["overall"]["gen_ai.evaluation.score.label"] == "pass"
    assert scores["overall"]["guardrail.answer.id"] == "one"
    (retrieval,) = telemetry.named("retrieval")
    assert retrieval.attributes["gen_ai.operation.name"] == "retrieval"
    assert telemetry.points("guardrail.sentences")["supportive"] >= 1
    assert telemetry.points("guardrail.score")["overall"] >= 1
    assert telemetry.points("guardrail.stage.duration")["attribute"] >= 1


def test_an_ask_with_regeneration(telemetry, monkeypatch):
    """The first answer has no support, so the model is asked again, with what was wrong."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    policy = BEST_OF_N.model_copy(update={"candidates": 1, "attempts": 2, "deadline_s": None})
    replies = count()
    facts = [Triple(subject="Mozart", property="place of birth", value="Salzburg")]
    with serve() as endpoint:
        reply = endpoint.reply

        def scripted(path, request):
            wrong = next(replies) == 0
            endpoint.text = f"Mozart was born in {'Paris' if wrong else 'Salzburg'}."
            return reply(path, request)

        endpoint.reply = scripted
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        with Guardrail(GuardrailConfig(judge="none", model="openai:scripted")) as guard:
            answer = guard.ask(question=QUESTION, evidence=facts, policy=policy)
    assert (answer.text, answer.attempts) == ("Mozart was born in Salzburg.", 2)
    attempt = [
        "  guardrail.attempt", "    chat scripted", "    guardrail.parse", "    retrieval",
        "    guardrail.attribute", "    guardrail.score",
    ]  # fmt: skip
    assert telemetry.tree() == ["guardrail.ask", *attempt, *attempt]
    (ask,) = telemetry.named("guardrail.ask")
    reported = [event.attributes["guardrail.answer.id"] for event in ask.events]
    assert set(reported) == {answer.id}, "nothing of the candidate that lost"
    assert ask.attributes["guardrail.score.overall"] == 1.0
    chat = telemetry.named("chat scripted")[0]
    assert chat.kind is SpanKind.CLIENT
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "scripted",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.choice.count": 1,
    }
    attempts = telemetry.named("guardrail.attempt")
    assert [span.attributes["guardrail.number"] for span in attempts] == [1, 2]
    assert telemetry.points("gen_ai.client.operation.duration")["chatscriptedopenai"] == 2


def test_a_graph_that_fails(telemetry):
    config = GuardrailConfig(judge="none", graph=GraphConfig(location="/no/such/graph"))
    with Guardrail(config) as guard:
        answer = guard.check(question=QUESTION, answer="Mozart was born in Salzburg.")
    assert answer.action is Action.UNVERIFIED
    (retrieval,) = telemetry.named("retrieval")
    assert retrieval.status.status_code is StatusCode.ERROR
    assert retrieval.status.description == "KnowledgeGraphError"
    assert retrieval.attributes["error.type"] == "KnowledgeGraphError"
    assert [(event.name, dict(event.attributes)) for event in retrieval.events] == [
        ("exception", {"exception.type": "KnowledgeGraphError"})
    ]
    assert "no graph at" in answer.errors[0].message
    # The answer came back all the same, so the check itself did not fail.
    assert telemetry.named("guardrail.check")[0].status.status_code is StatusCode.UNSET
    assert telemetry.points("guardrail.problems")["kg"] >= 1


@pytest.mark.parametrize("unavailable", ["refuse", "raise"])
def test_no_span_holds_what_an_error_says(telemetry, unavailable):
    """A retriever's error may hold the question, and so may the traceback of its cause."""

    def fails(question):
        raise ValueError(f"nothing found for {question!r}")

    policy = STRICT.changed(unavailable=unavailable)
    with Guardrail(GuardrailConfig(judge="none"), policy=policy, retriever=fails) as guard:
        try:
            reported = guard.check(QUESTION, "Mozart was born in Salzburg.").errors[0].message
        except KnowledgeGraphError as error:
            reported = str(error)
    assert QUESTION in reported
    assert telemetry.named("retrieval")[0].attributes["error.type"] == "KnowledgeGraphError"
    written = "".join(span.to_json() for span in telemetry.spans())
    assert "Mozart" not in written
