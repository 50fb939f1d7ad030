"""The command goes on training a judge that was written in eight bits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from judges.base import Pair
from judges.heads import HEADS
from judges.reading_judge import ReadingJudge
from tests.judges.tiny import WORDS, write_judge
from training.__main__ import main
from training.evaluate import logits
from training.own_rows import read_own_rows, with_own
from training.packing import batches, encode_groups, load_tokenizer
from training.plan import Plan
from training.rows import nli_row
from training.starts import load_judge

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
    before, after = ReadingJudge(judge_folder), ReadingJudge(out / "judge")
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
    rows = [nli_row("rome is a place", "born in florence", "neutral", "own")]
    groups = encode_groups(load_tokenizer(judge_folder / "tokenizer.json"), rows)
    (batch,) = batches(groups, tokens=100)
    with torch.no_grad():
        outputs = model.eval()(batch.packed)["nli"].numpy()
    written = logits(judge_folder, rows)["nli"]
    # Activations have eight bits in the file: a wide margin, since this random model has few units.
    np.testing.assert_allclose(outputs, written, atol=0.25 * np.ptp(written))


def test_a_folder_of_another_kind_is_refused(tmp_path: Path) -> None:
    folder = write_judge(tmp_path / "judge")
    (folder / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ValueError, match="no judge of this recipe"):
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
    counts = {"x": 60, "y": 30, "own": 10}
    rows = {name: [nli_row("a", "b", "neutral", name)] * count for name, count in counts.items()}
    plan = Plan(version="1", steps=5, shares={"x": 0.5, "y": 1.0})
    assert with_own(plan, rows).shares["own"] == 2.0
    assert with_own(plan, {name: rows[name] for name in "xy"}) == plan


def test_something_to_train_on_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--out", "nowhere"])
    assert "--data, --rows or both" in capsys.readouterr().err
