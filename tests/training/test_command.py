"""The command goes on training a judge that was written in eight bits."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from judges.base import GroundingItem, Pair
from judges.heads import HEADS
from judges.onnx import SHIPPED, OnnxJudge
from judges.sums import write_sums
from tests.judges.tiny import WORDS, write_judge
from training.__main__ import main
from training.artefact import write_model
from training.batches import batches, encode_rows, load_tokenizer
from training.evaluate import logits
from training.own_rows import read_own_rows, with_own
from training.plan import Plan
from training.rows import Row, nli_row
from training.starts import load_judge, load_weights
from training.trainer import Trainer, mixture

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


def test_a_checkpoint_is_written_as_it_is(judge_folder: Path, own: Path, tmp_path: Path) -> None:
    arguments = ["--judge", str(judge_folder), "--rows", str(own), "--out"]
    main([*arguments, str(tmp_path / "first"), "--steps", "5"])
    checkpoint = str(tmp_path / "first" / "last.pt")
    main([*arguments, str(tmp_path / "again"), "--steps", "0", "--weights", checkpoint])
    files = [tmp_path / name / "judge" / "model.onnx" for name in ("first", "again")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_bytes() != (judge_folder / "model.onnx").read_bytes()
    card = (tmp_path / "again" / "judge" / "README.md").read_text("utf-8")
    assert "went on from tiny-1 by way of last.pt, 0 steps" in card


def test_what_is_no_checkpoint_is_refused(judge_folder: Path, tmp_path: Path) -> None:
    torch.save({"average": {"words.weight": torch.zeros(2)}}, tmp_path / "other.pt")
    model, _ = load_judge(judge_folder)
    with pytest.raises(ValueError, match="no checkpoint of a judge of these sizes"):
        load_weights(model, tmp_path / "other.pt")


def test_a_judge_read_back_says_the_same(judge_folder: Path) -> None:
    model, card = load_judge(judge_folder)
    assert model.config.attention_heads == 4
    assert card.temperature == {"nli": 1.5}
    rows = [nli_row("rome is a place", "born in florence", "neutral", "own")]
    encoded = encode_rows(load_tokenizer(judge_folder / "tokenizer.json"), rows, 64)
    (batch,) = batches(encoded, tokens=100)
    with torch.no_grad():
        outputs = model.eval()(batch.input_ids, batch.attention_mask, batch.token_type_ids)
    written = logits(judge_folder, rows)["nli"]
    # Activations have eight bits in the file: a wide margin, since this random model has few units.
    np.testing.assert_allclose(outputs["nli"].numpy(), written, atol=0.25 * np.ptp(written))


def test_the_shipped_judge_can_be_trained_on(tmp_path: Path) -> None:
    """In bfloat16 where the processor multiplies it."""
    model, _ = load_judge(SHIPPED)
    before = {name: values.clone() for name, values in model.state_dict().items()}
    item = GroundingItem(
        ("Hut Silz, beds: 60.", "Hut Silz, season: all year."), "Silz has 60 beds."
    )
    row = Row(
        "", item.sentence, "own", nli=0, claim=0, statements=item.statements, span=(),
        cited=frozenset({0}),
    )  # fmt: skip
    tokenizer = load_tokenizer(SHIPPED / "tokenizer.json")
    plan = Plan(version="1", steps=2, shares={"own": 2.0}, tokens=64, rate=1e-5)
    trainer = Trainer(model, plan, tmp_path, device="cpu")
    trainer.run(mixture({"own": [row]}, tokenizer, plan, trainer.place))
    write_model(model, tmp_path / "model.onnx")
    for name in ("tokenizer.json", "judge.json"):
        shutil.copy(SHIPPED / name, tmp_path)
    write_sums(tmp_path)
    (old,), (new,) = (OnnxJudge(folder).ground([item]) for folder in (SHIPPED, tmp_path))
    assert old.supported == pytest.approx(new.supported, abs=0.1)
    assert any(not torch.equal(values, before[name]) for name, values in model.state_dict().items())


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


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029"])
def test_a_sign_that_may_end_a_line_ends_no_row(own: Path, sign: str) -> None:
    said = {"premise": f"One.{sign}Two.", "hypothesis": "One.", "label": "entailment"}
    with own.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(said, ensure_ascii=False) + "\n")
    read = read_own_rows(own)
    assert said["premise"] in {row.premise for row in (*read.train, *read.validation)}


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
