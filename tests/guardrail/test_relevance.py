"""Answer relevance: a score of its own, and a threshold with its own action."""

import pytest

from guardrail import STRICT, Action, ConfigError, Guardrail, GuardrailConfig, Passage

QUESTION = "How many days do I have to send a bicycle back?"
POINT = "You can send a bicycle back within 30 days of delivery."
ASIDE = "The showroom in Lund has a coffee machine."
EVIDENCE = [Passage(f"{POINT} {ASIDE}")]
POLICY = STRICT.changed(thresholds={"relevance": 0.5}, irrelevant="refuse")


@pytest.fixture(scope="module")
def guard():
    config = GuardrailConfig(scorers=("relevance",), graph="none", policy=POLICY)
    with Guardrail(config) as guard:
        yield guard


def test_a_supported_answer_that_misses_the_question_is_refused(guard):
    right = guard.check(QUESTION, POINT, evidence=EVIDENCE)
    aside = guard.check(QUESTION, ASIDE, evidence=EVIDENCE)
    assert right.scorecard.scores["relevance"].value > 0.9
    assert aside.scorecard.scores["relevance"].value < 0.1
    assert (right.action, aside.action) == (Action.PASS, Action.REFUSE)


def test_the_threshold_has_its_own_action(guard):
    marked = POLICY.changed(irrelevant="annotate", below="refuse")
    assert guard.check(QUESTION, ASIDE, evidence=EVIDENCE, policy=marked).text == ASIDE


def test_without_a_question_there_is_no_score(guard):
    answer = guard.check("", ASIDE, evidence=EVIDENCE)
    assert answer.scorecard.scores["relevance"].value is None
    assert answer.action is Action.PASS


def test_a_threshold_without_its_scorer_is_an_error():
    with Guardrail(GuardrailConfig(graph="none")) as guard, pytest.raises(ConfigError):
        guard.require(POLICY)
