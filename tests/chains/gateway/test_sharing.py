"""Callers of one gateway share what the judges have said."""

import httpx
import pytest

from chains.gateway import create_app
from chains.gateway.app import JUDGE_CACHE, sharing
from guardrail import GuardrailConfig, Verdict
from guardrail.core.types import NLIScores
from guardrail.selftest import EVIDENCE, TRIED
from judges.registry import register

FACTS = [["Mary Shelley", "occupation", "writer"], ["Mary Shelley", "born", "London"]]
BODY = {
    "question": "Who was Mary Shelley?",
    "answer": "Mary Shelley was a writer from London.",
    "triples": FACTS,
}


class Counting:
    """A judge of the user's own that counts what it is asked."""

    name = "counting"

    def __init__(self):
        self.pairs = []

    def warm_up(self): ...

    def judge(self, pairs):
        self.pairs += [pair for pair in pairs if EVIDENCE not in pair.premise]
        return [self._scores(pair.hypothesis) for pair in pairs]

    def _scores(self, hypothesis):
        """Right of the sentences of the self-test; all others are entailed."""
        verdict = TRIED.get(hypothesis, Verdict.SUPPORTED)
        labels = (Verdict.SUPPORTED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED)
        entailment, neutral, contradiction = (float(verdict is label) for label in labels)
        return NLIScores(entailment=entailment, neutral=neutral, contradiction=contradiction)


@pytest.fixture
def judge():
    made = Counting()
    register("counting", lambda model: made)
    return made


@pytest.mark.parametrize("told", [None, 0])
async def test_a_pair_is_judged_once_for_all_callers(judge, told):
    settings = {} if told is None else {"judge_cache": told}
    config = GuardrailConfig(judge="counting", graph={"location": "none"}, **settings)
    app = create_app(config)
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://gateway") as client,
    ):
        found = [(await client.post("/v1/checks", json=BODY)).json() for _ in range(3)]
    assert len({item["marked"] for item in found}) == 1
    assert "[Mary Shelley, occupation: writer" in found[0]["marked"]
    asked = len(judge.pairs) // len(set(judge.pairs))
    assert asked == (1 if told is None else 3)


def test_settings_that_name_a_memory_keep_it():
    assert sharing(GuardrailConfig()).judge_cache == JUDGE_CACHE
    assert sharing(GuardrailConfig(judge_cache=7)).judge_cache == 7
    assert sharing(GuardrailConfig(judge_cache=0)).judge_cache == 0
