from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from guardrail.core.errors import ConfigError, JudgeError
from guardrail.core.types import NLIScores
from judges import create_attribution, create_nli, register
from judges.base import AttributionItem, AttributionJudge, NLIJudge, Pair
from judges.lifting import LiftedJudge
from judges.onnx import open_judge
from tests.guardrail.scripted import Ready


def test_the_default_judge_answers_both_questions(judge_folder: Path) -> None:
    assert isinstance(create_nli(), type(open_judge()))
    assert isinstance(create_attribution(), type(open_judge()))
    assert create_nli(f"onnx:{judge_folder}", threads=1).name == "tiny-1"  # of a folder


def test_an_nli_judge_is_lifted_to_attribution() -> None:
    judge = create_attribution("transformers:some/model")
    assert isinstance(judge, LiftedJudge)
    assert judge.name == "lifted:transformers:some/model"
    assert isinstance(create_attribution("chat:gpt"), AttributionJudge)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("onxx", "did you mean 'onnx'"),
        ("zzzzzz", "known: onnx"),
        ("t5-true", "t5-true:google"),
        ("onnx:", "nothing follows"),
        ("chat-local", "did you mean 'chat:local'"),
        ("transfomers:some/model", "did you mean 'transformers:some/model'"),
        ("nli:onnx", "did you mean 'onnx'"),
    ],
)
def test_a_wrong_name_raises_with_a_suggestion(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        create_nli(name)
    with pytest.raises(ConfigError, match="options"):
        create_nli("onnx", thraeds=2)


@pytest.mark.parametrize("kind", ["transformers", "t5-true"])
def test_a_model_that_does_not_exist_is_named(kind: str, tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match="no-such-model"):
        create_nli(f"{kind}:{tmp_path}/no-such-model").warm_up()


class WordJudge(Ready):
    """Entails a hypothesis if the premise contains its last word; contradicts "not"."""

    def __init__(self, model: str | None = None) -> None:
        self.name = f"words:{model}"

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        return [self._judge_one(pair) for pair in pairs]

    def _judge_one(self, pair: Pair) -> NLIScores:
        if " not " in pair.hypothesis:
            return NLIScores(entailment=0.05, neutral=0.05, contradiction=0.9)
        if pair.hypothesis.split()[-1].strip(".") in pair.premise:
            return NLIScores(entailment=0.9, neutral=0.1, contradiction=0.0)
        return NLIScores(entailment=0.1, neutral=0.9, contradiction=0.0)


def test_own_judges_can_be_registered() -> None:
    register("registered", WordJudge)
    judge = create_nli("registered:x")
    assert isinstance(judge, NLIJudge)
    assert judge.name == "words:x"


@pytest.mark.parametrize(
    ("answer", "category", "share"),
    [
        ("She was born in Rome.", "supportive", 1.0),
        ("She was born in Rome. She died in Naples.", "partially_supportive", 0.5),
        ("She was born in Rome. She was not a painter.", "contradictory", 0.5),
        ("She was born in Rome and she died in Naples.", "partially_supportive", 0.5),
        ("She died in Naples.", "irrelevant", 0.0),
        ("Rome, Florence and Naples", "partially_supportive", 2 / 3),
        ("", "irrelevant", 0.0),
    ],
)
def test_lifting_reads_categories_from_sub_facts(answer: str, category: str, share: float) -> None:
    item = AttributionItem("Where did she live?", answer, ("Born in Rome.", "Lived in Florence."))
    [verdict] = LiftedJudge(WordJudge()).attribute([item])
    assert verdict.category == category
    assert verdict.supported_share == pytest.approx(share)
    assert sum(verdict.scores.values()) == pytest.approx(1)
