from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail import Guardrail, GuardrailConfig
from guardrail.core.errors import JudgeError
from guardrail.core.types import Category, NLIScores
from judges.base import AttributionItem, Pair
from judges.onnx import OnnxJudge
from judges.session import write_sums
from tests.judges.tiny import WORDS, write_judge

words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join)
texts = st.lists(st.builds(Pair, words, words), min_size=2, max_size=8)

NOTHING_SAID = NLIScores(entailment=0.0, neutral=1.0, contradiction=0.0)


@settings(deadline=None, max_examples=30)
@given(texts)
def test_a_pair_is_judged_the_same_in_any_company(tiny_judge: OnnxJudge, pairs: list[Pair]) -> None:
    together = tiny_judge.judge(pairs)
    alone = [tiny_judge.judge([pair])[0] for pair in pairs]
    assert together == alone
    assert tiny_judge.judge(pairs[::-1]) == together[::-1]


def test_new_weights_under_one_name_have_another_hash(tmp_path: Path) -> None:
    hashes = []
    for folder, damaged in (("one", False), ("same", False), ("new", True)):
        judge = OnnxJudge(write_judge(tmp_path / folder, damaged=damaged))
        with Guardrail(GuardrailConfig(graph="none"), nli=judge) as guard:
            answer = guard.check("Where?", "Rome.", evidence=["She was born in Rome."])
        assert answer.versions["judge"] == "tiny-1"
        hashes.append(answer.versions["judge_hash"])
    assert hashes[0] == hashes[1] != hashes[2]


def test_windows_read_long_evidence_to_its_end(tiny_judge: OnnxJudge) -> None:
    fact, filler = "artemisia gentileschi was born in rome .", "the sculptor is in paris . " * 40
    hypothesis = "artemisia was born in rome"
    [first] = tiny_judge.judge([Pair(filler + "1593 " * 50, hypothesis)])
    [second] = tiny_judge.judge([Pair(filler + "1593 " * 50 + fact, hypothesis)])
    assert first != second


@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_blank_texts_say_nothing(tiny_judge: OnnxJudge, blank: str) -> None:
    pairs = [Pair(blank, "rome"), Pair("rome", blank), Pair(blank, blank)]
    assert tiny_judge.judge(pairs) == [NOTHING_SAID] * 3
    [verdict] = tiny_judge.attribute([AttributionItem("who ?", "rome", (blank,))])
    assert verdict.category is Category.IRRELEVANT
    assert verdict.scores[Category.IRRELEVANT] == 1


def test_no_input_breaks_the_judge(tiny_judge: OnnxJudge) -> None:
    pairs = [
        Pair("rome, " * 16_700, "born in rome"),  # 100,000 characters
        Pair("rome", "florence " * 500),
        Pair("\ud800 rome", "rome \udfff"),
        Pair("\x00\x01", "𝔯𝔬𝔪𝔢"),
    ]
    assert len(tiny_judge.judge(pairs)) == 4
    assert tiny_judge.judge([]) == []
    assert tiny_judge.attribute([]) == []


def test_attribution_returns_category_complexity_and_share(tiny_judge: OnnxJudge) -> None:
    item = AttributionItem("where was artemisia born ?", "rome and florence", ("rome .", "paris ."))
    first, again = tiny_judge.attribute([item, item])
    assert first == again
    assert sum(first.scores.values()) == pytest.approx(1)
    assert first.category is max(first.scores, key=first.scores.__getitem__)
    assert first.complexity is not None
    assert first.supported_share is not None


def test_of_long_evidence_the_sentences_that_bear_on_the_answer_are_read(
    tiny_judge: OnnxJudge,
) -> None:
    filler = "The sculptor is in paris. " * 40
    facts = ("Artemisia gentileschi was born in rome.", "She was a painter.")
    long = AttributionItem("", "the painter artemisia", (filler + facts[0], filler, facts[1]))
    [read] = tiny_judge.read([long])
    assert set(facts) <= set(read.evidence)
    assert read.evidence.index(facts[0]) < read.evidence.index(facts[1])
    assert tiny_judge.attribute([long]) == tiny_judge.attribute([read])
    short = long._replace(evidence=facts)
    assert tiny_judge.read([short]) == [short]


def test_labels_may_come_in_any_order(judge_folder: Path, tmp_path: Path) -> None:
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).write_bytes((judge_folder / name).read_bytes())
    card = json.loads((judge_folder / "judge.json").read_text())
    card["labels"]["nli"] = ["contradiction", "neutral", "entailment"]
    (tmp_path / "judge.json").write_text(json.dumps(card))
    write_sums(tmp_path)
    pair = Pair("born in rome", "painter")
    [straight], [turned] = (
        OnnxJudge(judge_folder).judge([pair]),
        OnnxJudge(tmp_path).judge([pair]),
    )
    assert turned.contradiction == straight.entailment


def test_a_damaged_model_is_an_error_not_a_score(tmp_path: Path) -> None:
    judge = OnnxJudge(write_judge(tmp_path / "damaged", damaged=True))
    with pytest.raises(JudgeError, match="not finite"):
        judge.judge([Pair("rome", "paris")])


def test_a_missing_or_unreadable_model_is_named(tmp_path: Path, judge_folder: Path) -> None:
    with pytest.raises(JudgeError, match="no-such-folder"):
        OnnxJudge(tmp_path / "no-such-folder").warm_up()
    (tmp_path / "judge.json").write_bytes((judge_folder / "judge.json").read_bytes())
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    write_sums(tmp_path)
    with pytest.raises(JudgeError, match="cannot be read"):
        OnnxJudge(tmp_path).warm_up()


FORKED = """
import os, signal, sys
from judges.base import Pair
from judges.onnx import OnnxJudge

judge = OnnxJudge(sys.argv[1], threads=2)
pairs = [Pair(f"born in {town}", "born in rome") for town in ("rome", "paris", "florence")]
expected = judge.judge(pairs)
child = os.fork()
if child == 0:
    signal.alarm(250)
    same = judge.judge(pairs) == expected
    grandchild = os.fork()
    if grandchild == 0:
        signal.alarm(250)
        os._exit(judge.judge(pairs) != expected)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) or not same)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert judge.judge(pairs) == expected
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_loaded_judge_works_in_forked_children(judge_folder: Path) -> None:
    """As a server that loads its application before it forks its workers."""
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(judge_folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
