"""The bound of judged sentences; what lies beyond is reported and never looks clean."""

import pytest

from chains.streaming import SentenceGate, guard_stream_sync
from guardrail import ANNOTATE, STRICT, Action, GuardrailConfig, InputError
from guardrail.config import LimitsConfig
from guardrail.policy import Unavailable
from tests.chains.conftest import CANARY, QUESTION, TRUE_END, TRUE_START, scripted_guard

MOST = 3
LATE = f"Her name was {CANARY}."
ANSWER = " ".join([TRUE_START, TRUE_END, TRUE_START, LATE, TRUE_END])
ENOUGH = " ".join([TRUE_START, TRUE_END, TRUE_START])


@pytest.fixture(scope="module")
def guard():
    config = GuardrailConfig(limits=LimitsConfig(sentences=MOST))
    with scripted_guard(config=config) as guard:
        yield guard


def bounds(answer):
    return [problem.message for problem in answer.errors if problem.part == "sentences"]


def test_what_was_not_judged_is_said_and_counts_as_unsupported(guard):
    answer = guard.check(question=QUESTION, answer=ANSWER, policy=ANNOTATE)
    assert answer.action is Action.UNVERIFIED
    assert [one.na for one in answer.sentences] == [False] * MOST + [True] * 2
    assert all("not judged" in one.note for one in answer.sentences[MOST:])
    assert [one.behind_the_bound for one in answer.sentences] == [False] * MOST + [True] * 2
    (said,) = bounds(answer)
    assert said.startswith("the last 2 sentences")
    assert "limits.sentences = 3" in said


def test_what_was_not_judged_does_not_leave_where_that_is_asked_for(guard):
    answer = guard.check(question=QUESTION, answer=ANSWER, policy=STRICT)
    assert answer.action is Action.REFUSE
    assert CANARY not in answer.text
    raising = STRICT.changed(unavailable=Unavailable.RAISE)
    with pytest.raises(InputError, match="last 2 sentences"):
        guard.check(question=QUESTION, answer=ANSWER, policy=raising)


def test_an_answer_within_the_bound_is_as_before(guard):
    answer = guard.check(question=QUESTION, answer=ENOUGH, policy=STRICT)
    assert answer.action is Action.PASS
    assert bounds(answer) == []


def test_one_of_many_answers_keeps_its_fault_to_itself(guard):
    ranked = guard.rank(question=QUESTION, answers=[ANSWER, ENOUGH], policy=STRICT)
    assert [(item.index, item.action) for item in ranked] == [
        (1, Action.PASS),
        (0, Action.REFUSE),
    ]


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_a_stream_stops_where_judging_does(guard, size):
    gate = SentenceGate(guard, QUESTION, policy=STRICT)
    pieces = [ANSWER[start : start + size] for start in range(0, len(ANSWER), size)]
    *released, last = guard_stream_sync(gate, pieces)
    shown = "".join(release.text for release in (*released, last))
    assert CANARY not in shown
    assert last.answer.action is Action.REFUSE
    assert bounds(last.answer)


def test_a_stream_within_the_bound_is_whole(guard):
    gate = SentenceGate(guard, QUESTION, policy=STRICT)
    releases = list(guard_stream_sync(gate, ENOUGH))
    assert releases[-1].answer.action is Action.PASS
    assert "".join(item.text for item in releases).count("Mary Shelley was a writer") == 2


MOST_CHARS = 200
LONG = " ".join([TRUE_START] * 8) + f" {LATE} " + "\n".join([TRUE_END] * 400)


@pytest.fixture(scope="module")
def brief():
    config = GuardrailConfig(limits=LimitsConfig(answer_chars=MOST_CHARS))
    with scripted_guard(config=config) as guard:
        yield guard


def pieces_of(text, size):
    return [text[start : start + size] for start in range(0, len(text), size)]


@pytest.mark.parametrize("size", [1, 7, 150])
def test_a_session_keeps_nothing_that_it_will_neither_judge_nor_give_back(brief, size):
    session = brief.session(question=QUESTION, policy=STRICT)
    judged = [session.add(piece) for piece in pieces_of(LONG, size)]
    assert any(judged)
    rest, answer = session.rest(), session.finish()
    assert rest.action is answer.action is Action.REFUSE
    assert all("200 characters" in item.errors[0].message for item in (rest, answer))
    assert len(answer.original) <= MOST_CHARS + size
    assert CANARY not in rest.text + answer.text + answer.marked


@pytest.mark.parametrize("policy", [ANNOTATE, STRICT.changed(dry_run=True)])
def test_a_session_gives_back_all_where_that_is_asked_for(brief, policy):
    session = brief.session(question=QUESTION, policy=policy)
    judged = [*map(session.add, pieces_of(LONG, 7)), session.rest()]
    assert "".join(item.text for item in judged if item) == LONG
    answer = session.finish()
    whole = brief.check(question=QUESTION, answer=LONG, policy=policy)
    assert answer.action is Action.UNVERIFIED
    assert answer.original == answer.text == LONG
    assert answer.errors == whole.errors
    unasked = brief.session(question=QUESTION, policy=policy)  # nobody has to ask for the rest
    for piece in pieces_of(LONG, 7):
        unasked.add(piece)
    assert unasked.finish().original == LONG


def test_signs_that_are_taken_out_at_the_end_make_no_long_answer_a_short_one(brief):
    session = brief.session(question=QUESTION, policy=STRICT)
    for sign in f"{TRUE_START} " + "a\u200d" * MOST_CHARS + LATE:
        session.add(sign)
    assert session.finish().action is Action.REFUSE


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_nothing_behind_the_bound_of_characters_leaves(brief, size):
    *released, last = guard_stream_sync(
        SentenceGate(brief, QUESTION, policy=STRICT), pieces_of(LONG, size)
    )
    assert CANARY not in "".join(release.text for release in (*released, last))
    assert last.answer.action is Action.REFUSE


def test_what_a_policy_gives_back_unjudged_leaves_at_the_end(brief):
    *released, last = guard_stream_sync(
        SentenceGate(brief, QUESTION, policy=ANNOTATE), pieces_of(LONG, 7)
    )
    assert CANARY not in "".join(release.text for release in released)
    assert CANARY in last.text
    assert last.answer.action is Action.UNVERIFIED
