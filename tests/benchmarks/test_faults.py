"""The bench of faults: it notices what it is there to notice."""

import random

import pytest

pytest.importorskip("starlette", reason="the extra 'server' is not installed")
pytest.importorskip("mcp", reason="the extra 'mcp' is not installed")

from benchmarks.faults.facts import CANARY, RIGHT, Case
from benchmarks.faults.seen import seen_answers
from benchmarks.faults.server import serving
from benchmarks.faults.ways import Ways
from guardrail import Action, GuardedAnswer, Sentence
from guardrail.core.types import Category, Score, ScoreCard

SOUND = Case("check", "none", "none")
BLIND = Case("check", "judge", "reset")


def answer(text: str, category: Category) -> GuardedAnswer:
    sentence = Sentence(text=text, start=0, end=len(text), category=category)
    return GuardedAnswer(
        id="a", question="?", text=text, marked=text, action=Action.PASS, sentences=(sentence,),
        scorecard=ScoreCard(overall=Score(value=0.5)),
    )  # fmt: skip


def test_what_should_not_have_left_is_counted() -> None:
    leaked = seen_answers(SOUND, [answer(f"Born in {CANARY}.", Category.SUPPORTIVE)])
    assert (leaked.unjudged, leaked.wrong) == (2 * len(CANARY), 1)  # in the text and marked
    assert seen_answers(SOUND, [answer(f"She {RIGHT}.", Category.SUPPORTIVE)]).unjudged == 0
    blind = seen_answers(BLIND, [answer(f"She {RIGHT}.", Category.SUPPORTIVE)])
    assert (blind.unjudged, blind.wrong) == (2 * len(RIGHT), 1)


async def test_faults_are_met_on_the_way(tmp_path) -> None:
    cases = {
        SOUND: {"delivered"},
        Case("gateway", "none", "none"): {"delivered"},
        Case("check", "judge", "reset"): {"refused", "typed error"},
        Case("gateway", "model", "half"): {"typed error"},
        Case("stream", "model", "reset"): {"broken off", "delivered"},
        Case("mcp", "graph", "garbage"): {"refused"},
        Case("load", "disk", "half"): {"typed error", "delivered"},
    }
    with serving() as url:
        async with Ways(url, tmp_path) as ways:
            for case, expected in cases.items():
                seen = await ways.run(case, random.Random(3))
                assert (seen.unjudged, seen.wrong, seen.bad) == (0, 0, False), (case, seen)
                assert seen.outcome in expected, (case, seen)
