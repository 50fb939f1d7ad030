"""Ask: retrieve, sample, check, rank, regenerate, against an endpoint that speaks the protocol."""

from collections.abc import Iterator
from typing import Any

import pytest

from guardrail import ANNOTATE, BEST_OF_N, Action, Guardrail, GuardrailConfig, InputError
from guardrail.log.records import open_log
from guardrail.models import open_model
from guardrail.policy import Unavailable
from guardrail.report.summary import summarise
from tests.guardrail.models.endpoint import Endpoint, serve

PATIENT = ANNOTATE.model_copy(update={"deadline_s": None})
BEST = BEST_OF_N.model_copy(update={"deadline_s": None})
QUESTION = "Where was Wolfgang Amadeus Mozart born?"
RIGHT = "Mozart was born in Salzburg [Q254, place of birth: Salzburg]."
WRONG = "Mozart was born on 27 January 1770 [Q254, date of birth: 1770-01-27]."


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serve() as endpoint:
        yield endpoint


@pytest.fixture
def asking(endpoint: Endpoint) -> Iterator[Guardrail]:
    model = open_model("openai:m", base_url=endpoint.url, api_key="k")
    with Guardrail(GuardrailConfig(judge="none", policy=PATIENT), model=model) as guard:
        yield guard


def says(endpoint: Endpoint, *texts: str) -> None:
    """Let the endpoint answer the n-th request with the n-th text, the last one from then on."""
    plain = endpoint.reply

    def reply(path: str, request: dict[str, Any]) -> dict[str, Any]:
        endpoint.text = texts[min(len(endpoint.requests), len(texts)) - 1]
        return plain(path, request)

    endpoint.reply = reply


def test_an_answer_is_sampled_from_the_graph_and_checked(asking, endpoint):
    says(endpoint, RIGHT)
    answer = asking.ask(question=QUESTION, id="q")
    assert answer.id == "q"
    assert answer.text == "Mozart was born in Salzburg."
    assert answer.marked == RIGHT
    assert answer.attempts == 1
    assert answer.entities[0].entity.id == "Q254"
    assert "place of birth: Salzburg" in str(endpoint.requests[0]["messages"])


def test_removed_sentences_are_reported_when_no_better_answer_comes(asking, endpoint):
    says(endpoint, f"{RIGHT} Mozart was born in 1770.")
    policy = PATIENT.changed(contradicted="regenerate", exhausted="filter")
    answer = asking.ask(question=QUESTION, policy=policy)
    assert answer.action is Action.FILTER
    assert answer.text == "Mozart was born in Salzburg."
    assert [item.text for item in answer.removed] == ["Mozart was born in 1770."]


def test_a_failed_answer_is_asked_for_again_with_what_was_wrong(asking, endpoint):
    says(endpoint, WRONG, RIGHT)
    ranked = asking.ask_ranked(question=QUESTION, n=2, policy=BEST)
    assert [item.text for item in ranked[:2]] == ["Mozart was born in Salzburg."] * 2
    assert ranked[0].attempts == 2
    assert len(ranked) == 4
    assert ranked[0].reasons[0].startswith("rank 1 of 4: grounded 1.00 (facts cited: 1")
    assert "1756-01-27" in str(endpoint.requests[1]["messages"][-1])


def test_the_log_states_why_each_candidate_was_rejected(endpoint, tmp_path):
    says(endpoint, WRONG, RIGHT)
    model = open_model("openai:m", base_url=endpoint.url, api_key="k")
    config = GuardrailConfig(judge="none", policy=PATIENT, log=tmp_path / "scores.sqlite")
    with Guardrail(config, model=model) as guard:
        answer = guard.ask(question=QUESTION, n=1, policy=BEST, id="q")
    with open_log(tmp_path / "scores.sqlite", read_only=True) as log:
        won, lost = sorted(log.records(), key=lambda record: len(record.tags))
        assert (won.answer.id, won.answer.reasons, won.tags) == ("q", answer.reasons, {})
        assert (lost.answer.id, lost.tags) == ("q.0", {"candidate": "lost"})
        assert lost.answer.reasons[0].startswith("rank 2 of 2: grounded 0.00 (facts cited: 0")
        assert "1756-01-27" in " ".join(lost.answer.reasons)
        assert "no better answer" not in " ".join(lost.answer.reasons)
        assert summarise(log).records == 1


def test_when_attempts_run_out_the_best_is_returned_with_the_reason(asking, endpoint):
    says(endpoint, "Mozart was fond of billiards.")
    answer = asking.ask(question=QUESTION, n=1, policy=BEST)
    assert answer.action is BEST_OF_N.exhausted
    assert answer.reasons[-1] == "no better answer within 2 attempts"
    refusing = BEST.model_copy(update={"exhausted": Action.REFUSE})
    assert asking.ask(question=QUESTION, n=1, policy=refusing).text == BEST_OF_N.refusal


def test_what_the_policy_removes_stays_removed_when_attempts_run_out(asking, endpoint):
    says(endpoint, f"{RIGHT} {WRONG}")
    answer = asking.ask(question=QUESTION, n=1, policy=BEST)
    assert answer.attempts == 2
    assert answer.text == "Mozart was born in Salzburg."


def test_a_model_that_fails_or_hangs_is_reported_within_the_deadline(asking, endpoint):
    endpoint.delay_s = 30.0
    hurry = BEST_OF_N.model_copy(update={"deadline_s": 0.5, "unavailable": Unavailable.REFUSE})
    late = asking.ask(question=QUESTION, policy=hurry)
    assert late.action is Action.REFUSE
    assert [error.part for error in late.errors] == ["deadline"]
    endpoint.delay_s = 0.0
    endpoint.status = 401
    refused = asking.ask(question=QUESTION)
    assert refused.action is Action.UNVERIFIED
    assert [error.part for error in refused.errors] == ["model"]
    assert refused.text == ""


def test_an_empty_question_is_an_error(asking):
    with pytest.raises(InputError, match="empty"):
        asking.ask(question=" ")


def test_an_answer_about_somebody_else_is_judged_as_check_judges_it(asking, endpoint):
    text = "Ada Lovelace was a mathematician. She was born in London."
    says(endpoint, text)
    asked = asking.ask(question=QUESTION)
    checked = asking.check(question=QUESTION, answer=text)
    assert "Q7259, occupation: mathematician" in asked.marked
    assert asked.marked == checked.marked
