"""A judge is tried before it serves: the shipped one passes, a mistaken one serves nobody."""

import pytest
from typer.testing import CliRunner

from guardrail import Guardrail, GuardrailConfig, JudgeError
from guardrail.cli import app
from guardrail.core.types import NLIScores, Verdict
from guardrail.selftest import TRIED, try_judge
from judges.base import NLITraits
from judges.grounding import NLIGrounding
from tests.guardrail.scripted import Ready
from tests.ports import free_port

AGREES = f"{__name__}:AgreesWithAll"


class AgreesWithAll(Ready):
    """A judge as another package could bring it, and no good one."""

    name = "agrees-1"

    def judge(self, pairs):
        return [NLIScores(entailment=0.98, neutral=0.01, contradiction=0.01) for _ in pairs]


class TellsSupportAlone(Ready):
    """A judge of support, which tells no contradiction, as most checkers are."""

    name = "support-1"
    traits = NLITraits(tells_contradiction=False)

    def judge(self, pairs):
        scores = [0.9 if TRIED.get(pair.hypothesis) is Verdict.SUPPORTED else 0.1 for pair in pairs]
        return [NLIScores(entailment=it, neutral=1.0 - it, contradiction=0.0) for it in scores]


def test_the_shipped_judge_passes(guard):
    guard.self_test()


def test_a_judge_of_support_alone_need_tell_no_contradiction():
    try_judge(NLIGrounding(TellsSupportAlone()))


def test_a_judge_that_supports_everything_fails():
    config = GuardrailConfig(judge=AGREES, graph={"location": "none"})
    with Guardrail(config) as guard, pytest.raises(JudgeError, match="agrees-1 fails its self"):
        guard.self_test()


def test_the_doctor_reports_it(monkeypatch):
    monkeypatch.setenv("GUARDRAIL_JUDGE", AGREES)
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 1
    assert "self-test" in " ".join(done.stdout.split())


@pytest.mark.parametrize("workers", ["1", "2"])
def test_it_serves_nobody(workers):
    options = ["--judge", AGREES, "--kg", "none", "--port", str(free_port()), "--workers", workers]
    done = CliRunner().invoke(app, ["serve", *options])
    assert isinstance(done.exception, JudgeError)
