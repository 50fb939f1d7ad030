"""Which sentences a second judge is asked about, and what becomes of its word."""

import threading

import pytest

from guardrail.core.errors import JudgeError
from guardrail.core.types import Grounding, NLIScores, StatementScore
from judges.base import GroundingItem, NLITraits
from judges.second_opinion import Control, SecondJudge, nearest
from judges.settings import Account, Spending
from tests.clock import PATIENCE_S
from tests.guardrail.scripted import Ready

FIRST = Grounding(
    supported=0.4, unsupported=0.45, contradicted=0.15, no_claim=0.0,
    statements=(StatementScore(carries=0.7, conflicts=0.1),),
)  # fmt: skip


def item(sentence):
    return GroundingItem(("The mill has three floors.",), sentence)


def asked(judge, *sentences, seconds=PATIENCE_S, account=None):
    account = account or Account(Spending())
    return [*judge.ground({item(sentence): account for sentence in sentences}, seconds).values()]


class Counting(Ready):
    """Judge that can be set to support, hang or fail."""

    name = "counting-1"

    def __init__(self, support=0.9, **traits):
        self.traits = NLITraits(**traits)
        self.support = support
        self.asked = []
        self.go = threading.Event()
        self.go.set()
        self.error = None

    def judge(self, pairs):
        self.go.wait(PATIENCE_S)
        self.asked += [pair.hypothesis for pair in pairs]
        if self.error is not None:
            raise self.error
        scores = NLIScores(entailment=self.support, neutral=1 - self.support, contradiction=0.0)
        return [scores for _ in pairs]


@pytest.fixture
def counting():
    return Counting()


@pytest.fixture
def second(counting):
    judge = SecondJudge(counting, "counting")
    yield judge
    counting.go.set()
    judge.close()


def test_the_nearest_come_first_within_the_band():
    assert nearest([0.3, None, 0.1, 0.2], band=0.25, most=3) == [2, 3]
    assert nearest([0.3, None, 0.1, 0.2], band=1.0, most=2) == [2, 3]
    assert nearest([0.1], band=1.0, most=-1) == []


def test_a_pair_judge_gets_one_pair_per_sentence_and_keeps_the_first_judges_statements(
    counting, second
):
    [said] = asked(second, "It has a wheel.")
    assert counting.asked == ["It has a wheel."]
    assert second.merged(FIRST, said).statements == FIRST.statements


def test_contradiction_comes_from_the_first_judge_if_the_second_judges_support_only():
    judge = SecondJudge(Counting(0.2, tells_contradiction=False), "support")
    [said] = asked(judge, "It has a wheel.")
    both = judge.merged(FIRST, said)
    judge.close()
    assert both.supported == pytest.approx(0.2)
    assert both.contradicted == pytest.approx(0.8 * 0.15 / 0.6)
    assert both.supported + both.unsupported + both.contradicted == pytest.approx(1.0)


def test_a_judge_that_hangs_keeps_nobody(counting, second):
    counting.go.clear()
    account = Account(Spending())
    assert asked(second, "One.", seconds=0.2, account=account) == ["it gave no answer in 0.2 s"]
    counting.go.set()
    # For the same answer the same is not asked again, another is.
    failure, other = asked(second, "One.", "Two.", account=account)
    assert failure == "it gave no answer in 0.2 s"
    assert isinstance(other, Grounding)
    [again] = asked(second, "One.")
    assert isinstance(again, Grounding)


def test_closing_leaves_a_judge_that_hangs(counting):
    judge = SecondJudge(counting, "counting")
    counting.go.clear()
    asked(judge, "One.", seconds=0.1)
    closed = threading.Thread(target=judge.close)
    closed.start()
    closed.join(PATIENCE_S / 2)
    assert not closed.is_alive()
    counting.go.set()


@pytest.mark.parametrize("error", [JudgeError("no model"), ZeroDivisionError("division by zero")])
def test_what_fails_is_a_reason(counting, second, error):
    counting.error, account = error, Account(Spending())
    for _ in range(2):
        assert asked(second, "One.", account=account) == [str(error)]
    assert counting.asked == ["One."]


@pytest.mark.parametrize(
    ("label", "expected", "fails"),
    [("supported", True, True), ("contradicted", False, False), ("unsupported", False, True)],
)
def test_a_control_fails_on_the_wrong_label(label, expected, fails):
    control = Control(item("It has three floors."), label, expected, "wrong")
    assert control.fails(FIRST) is fails


def test_a_copied_question_may_claim_nothing():
    control = Control(item("Is it open?"), "supported", True, "wrong")
    assert not control.fails(FIRST.model_copy(update={"no_claim": 0.9}))
