"""The chat judge at a real llama.cpp server with a real model; see ``make test-all``."""

from __future__ import annotations

import os

import pytest

from benchmarks.opposites.__main__ import read_rules
from guardrail import GuardrailConfig, Passage
from guardrail.core.types import Strictness, Verdict
from guardrail.engine.parts import Parts
from guardrail.evaluation.rows import LabelledRow
from guardrail.tuning.second import tune_second
from judges.base import GroundingItem
from judges.chat import ChatJudge
from judges.settings import Calibration, ChatSettings
from tests.judges.injections import TEXTS

MODEL = os.environ.get("GUARDRAIL_TEST_CHAT_URL", "")
pytestmark = pytest.mark.skipif(not MODEL, reason="make test-all starts a real model")
ITEMS = [
    GroundingItem((text,), sentence)
    for text, sentences in list(TEXTS.items())[:1]
    for sentence in sentences[:3]
]


def judge(*, detail: bool = False) -> ChatJudge:
    settings = ChatSettings(base_url=MODEL, calibration=Calibration(), concurrency=1)
    return ChatJudge("m", settings=settings, detail=detail, timeout_s=3_600)


@pytest.mark.parametrize("detail", [False, True])
def test_every_form_gives_probabilities(detail: bool) -> None:
    asked = judge(detail=detail)
    for found in asked.ground(ITEMS):
        shares = (found.supported, found.unsupported, found.contradicted, found.no_claim)
        assert sum(shares) == pytest.approx(1.0)
        assert max(shares) < 0.9999
    assert asked.in_use().counts["calls"] == len(ITEMS)


def test_the_server_s_prefix_cache_serves_all_but_the_sentence() -> None:
    asked = judge()
    asked.ground(ITEMS)
    used = asked.in_use().counts
    assert used["cached_tokens"] > used["prompt_tokens"] * (len(ITEMS) - 1) / len(ITEMS) / 2


def test_a_small_model_is_refused_as_second_judge() -> None:
    """On rules and their opposites, where the first judge leaves much to be gained."""
    rows = [
        LabelledRow(
            rule["question"], rule[side], (Passage(rule["evidence"]),), label, rule["evidence"]
        )
        for rule in read_rules()[:12]
        for side, label in (("same", Verdict.SUPPORTED), ("opposite", Verdict.CONTRADICTED))
    ]
    found = tune_second(
        rows,
        Parts(GuardrailConfig.model_validate({"graph": "none"}), {}, ()),
        judge(),
        thresholds=Strictness.BALANCED.thresholds,
    )
    print(found)
    assert found.asked > 10
    assert found.first.balanced < 0.9
    assert not found.helps
