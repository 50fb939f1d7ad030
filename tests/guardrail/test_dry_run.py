"""Dry run: the answer is not changed, and the action of the policy is reported."""

import pytest

from guardrail import ANNOTATE, STRICT, Action, Guardrail, GuardrailConfig, Policy
from guardrail.core.errors import KnowledgeGraphError
from guardrail.log.entries import RecordFilter
from guardrail.log.records import open_log
from guardrail.log.tracing import evaluations_of
from guardrail.report import report_html
from tests.chains.conftest import ANSWER, CANARY, FACTS, FALSE_MIDDLE, QUESTION, TRUE_START
from tests.chains.scripted import ScriptedJudge


@pytest.fixture
def guard(tmp_path):
    config = GuardrailConfig(policy=STRICT.changed(dry_run=True), log=tmp_path / "scores.sqlite")
    with Guardrail(config, grounding=ScriptedJudge(), retriever=lambda question: FACTS) as guard:
        yield guard


def test_what_would_have_been_taken_out_stays(guard):
    answer = guard.check(QUESTION, ANSWER)
    assert (answer.action, answer.would) == (Action.PASS, Action.FILTER)
    assert answer.would_block
    assert answer.text == answer.original == ANSWER
    assert len(answer.sentences) == 3
    assert not answer.removed
    assert CANARY in answer.reasons[0]


@pytest.mark.parametrize(
    ("policy", "text", "would"),
    [
        (STRICT, TRUE_START, Action.PASS),
        (ANNOTATE, FALSE_MIDDLE, Action.ANNOTATE),
        (STRICT, FALSE_MIDDLE, Action.REFUSE),
        (STRICT.changed(contradicted="regenerate"), FALSE_MIDDLE, Action.REGENERATE),
    ],
)
def test_actions_are_reported_and_not_taken(guard, policy: Policy, text, would):
    live = guard.check(QUESTION, text, policy=policy)
    assert live.would is None
    assert not live.would_block
    answer = guard.check(QUESTION, text, policy=policy.changed(dry_run=True))
    assert answer.would == live.action == would
    assert answer.action == Action.PASS
    assert answer.text == text
    assert answer.would_block == (live.text != text or would is Action.REGENERATE)


@pytest.mark.parametrize(
    ("unavailable", "would"),
    [("raise", "refuse"), ("refuse", "refuse"), ("return_unverified", "unverified")],
)
def test_sentences_that_could_not_be_judged_are_reported_and_shown(unavailable, would):
    def fails(question):
        raise KnowledgeGraphError("the graph is down")

    policy = STRICT.changed(unavailable=unavailable, dry_run=True)
    with Guardrail(GuardrailConfig(), grounding=ScriptedJudge(), retriever=fails) as guard:
        answer = guard.check(QUESTION, ANSWER, policy=policy)
    assert (answer.action, answer.would) == (Action.UNVERIFIED, Action(would))
    assert answer.text == ANSWER
    assert [problem.part for problem in answer.errors] == ["kg"]


def test_a_growing_answer_ends_in_the_same_verdict(guard):
    session = guard.session(QUESTION)
    stretches = [session.add(piece) for piece in ANSWER.split(" ") for piece in (piece, " ")]
    shown = [item for item in (*stretches, session.rest()) if item is not None]
    assert "".join(item.text for item in shown).strip() == ANSWER
    assert session.finish().would == Action.FILTER


def test_the_log_finds_what_would_have_been_blocked(guard, tmp_path):
    guard.check(QUESTION, TRUE_START)
    blocked = guard.check(QUESTION, ANSWER)
    live = guard.check(QUESTION, ANSWER, policy=STRICT)
    with open_log(tmp_path / "scores.sqlite", read_only=True) as log:
        found = log.latest(20, RecordFilter(would_block=True))
        page = report_html(log)
    assert [record.answer.id for record in found] == [blocked.id]
    assert "would filter" in page
    verdict = {item.name: item.label for item in evaluations_of(blocked)}["verdict"]
    assert verdict == "would filter"
    assert {item.name: item.label for item in evaluations_of(live)}["verdict"] == "filter"
