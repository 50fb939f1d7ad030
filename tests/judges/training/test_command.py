"""The command goes on training a judge that was written in eight bits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from judges.base import Pair
from judges.onnx import OnnxJudge
from judges.training.__main__ import main
from judges.training.model import HEADS, load_judge
from judges.training.own_rows import read_own_rows, with_own
from judges.training.plan import Plan, Stage
from judges.training.rows import nli_row
from tests.judges.tiny import WORDS, write_judge

VERBS = {"entailment": "was born in", "neutral": "who is", "contradiction": "place of a"}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Pairs whose label one word decides."""
    path = tmp_path / "own.jsonl"
    with path.open("w", encoding="utf-8") as lines:
        for place in WORDS[:3]:
            for painter in WORDS[3:20]:
                for label, verb in VERBS.items():
                    premise, hypothesis = f"{painter} was born in {place}", f"{painter} {verb}"
                    row = {"premise": premise, "hypothesis": hypothesis, "label": label}
                    lines.write(json.dumps(row) + "\n")
    return path


def test_training_goes_on_from_a_judge_in_eight_bits(
    judge_folder: Path, own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    start = ["--judge", str(judge_folder), "--rows", str(own), "--out", str(out)]
    main([*start, "--steps", "40", "--rate", "0.002"])
    assert "| nli | own |" in capsys.readouterr().out

    unseen = read_own_rows(own).validation
    pairs = [Pair(row.premise, row.hypothesis) for row in unseen]
    labels = [HEADS["nli"][row.nli] for row in unseen]
    before, after = OnnxJudge(judge_folder), OnnxJudge(out / "judge")
    right = [
        np.mean([a.label == b for a, b in zip(judge.judge(pairs), labels, strict=True)])
        for judge in (before, after)
    ]
    assert right[1] > 0.9 > right[0]
    assert after.name == "minilm-l6-judge-1+"
    assert "went on from tiny-1, 40 steps" in (out / "judge" / "README.md").read_text("utf-8")


def test_a_judge_read_back_says_the_same(judge_folder: Path) -> None:
    model, card = load_judge(judge_folder)
    assert model.config.attention_heads == 4
    assert card.temperature == {"nli": 1.5}
    ids = [[2, 5, 6, 7, 3, 8, 9, 3]]
    types = [[0, 0, 0, 0, 0, 1, 1, 1]]
    with torch.no_grad():
        outputs = model.eval()(torch.tensor(ids), torch.ones(1, 8), torch.tensor(types))
    from judges.session import OnnxTextModel, Segments

    written = OnnxTextModel(judge_folder).run([Segments([5, 6, 7], [8, 9])])["nli"]
    # Activations have eight bits in the file: a wide margin, since this random model has few units.
    np.testing.assert_allclose(outputs["nli"].numpy(), written, atol=0.25 * np.ptp(written))


def test_a_folder_of_another_kind_is_refused(tmp_path: Path) -> None:
    folder = write_judge(tmp_path / "judge")
    (folder / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ValueError, match="no 8-bit cross-encoder"):
        load_judge(folder)
    card = json.loads((folder / "judge.json").read_text("utf-8"))
    card["labels"]["nli"].reverse()
    (folder / "judge.json").write_text(json.dumps(card), "utf-8")
    with pytest.raises(ValueError, match="other heads or labels"):
        load_judge(folder)


@pytest.mark.parametrize("line", ['{"premise": "a", "hypothesis": "b", "label": "yes"}', "[]", "{"])
def test_a_malformed_row_is_named(own: Path, line: str) -> None:
    rows = own.read_text("utf-8").splitlines()
    own.write_text("\n".join([*rows[:4], line, *rows[4:]]), "utf-8")
    with pytest.raises(ValueError, match="line 5"):
        read_own_rows(own)


def test_own_rows_make_up_a_quarter_of_what_is_read() -> None:
    rows = [nli_row("a", "b", "neutral", name) for name in ["x"] * 60 + ["y"] * 30 + ["own"] * 10]
    stages = (Stage(steps=5, shares={"x": 1.0}), Stage(steps=5, shares={"x": 0.5, "y": 1.0}))
    plan = Plan(version="1", stages=stages)
    assert [stage.shares["own"] for stage in with_own(plan, rows).stages] == [2.0, 2.0]
    assert with_own(plan, rows[:90]) == plan


def test_something_to_train_on_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--out", "nowhere"])
    assert "--data, --rows or both" in capsys.readouterr().err
