"""From a packed kit to a judge that grounds, with a tiny network."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from guardrail.core.types import Verdict
from judges.base import GroundingItem
from judges.onnx import open_judge
from tests.judges.tiny_windows import tiny_kit, write_base
from training.__main__ import main
from training.kit import read_kit, read_state, write_kit
from training.pack import Packer
from training.publish import publish
from training.rows import nli_row
from training.run import AVERAGED
from training.statements import Statement
from training.window_model import LABELS


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory, base: Path) -> Path:
    folder = tmp_path_factory.mktemp("kit")
    write_kit(folder, tiny_kit(base))
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, kit: Path) -> Path:
    out = tmp_path_factory.mktemp("run")
    options = ["--kit", str(kit), "--out", str(out), "--freeze", "1", "--tokens", "200"]
    main(["run", *options, "--minutes", "0.02", "--total", "0.1", "--rate", "1e-3"])
    return out


def test_a_kit_is_read_as_it_was_written(base: Path, kit: Path) -> None:
    wanted, found = tiny_kit(base), read_kit(kit)
    assert found.families == wanted.families
    assert found.validation == wanted.validation
    assert found.shares == wanted.shares
    assert found.sizes == wanted.sizes
    assert found.start.keys() == wanted.start.keys()


def test_training_lowers_the_loss_and_continues_where_it_stopped(kit: Path, trained: Path) -> None:
    before = torch.load(trained / "state.pt", weights_only=True)
    points = [json.loads(line) for line in (trained / "curve.jsonl").read_text().splitlines()]
    assert points[-1]["sentences"] == before["sentences"] > 0
    assert {"valid triples", "valid triples contradiction", "snli_dev"} <= points[-1].keys()
    options = ["--kit", str(kit), "--out", str(trained), "--freeze", "1", "--tokens", "200"]
    main(["run", *options, "--minutes", "0.02", "--total", "0.1", "--resume", "--rate", "1e-3"])
    after = torch.load(trained / "state.pt", weights_only=True)
    assert after["step"] > before["step"]
    assert after["seconds"] > before["seconds"]


def test_two_processes_train_one_network(kit: Path, tmp_path: Path) -> None:
    options = ["--kit", str(kit), "--out", str(tmp_path), "--freeze", "1", "--tokens", "200"]
    command = [sys.executable, "-m", "training", "run", *options, "--minutes", "0.02"]
    ran = subprocess.run(
        [*command, "--processes", "2"], check=True, capture_output=True, text=True, timeout=120
    )
    assert ran.stdout.count("{") == 1  # one process measures
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    assert state["step"] % AVERAGED == 0 < state["step"]


def test_a_compact_checkpoint_is_near_the_full_one(tmp_path: Path, trained: Path) -> None:
    main(["compact", "--checkpoint", str(trained / "judge"), "--out", str(tmp_path / "small")])
    full, small = read_state(trained / "judge"), read_state(tmp_path / "small")
    assert full.keys() == small.keys()
    for name, value in full.items():
        step = value.float().abs().max() / 127
        assert (value.float() - small[name].float()).abs().max() <= step


def test_frozen_layers_keep_their_weights(base: Path, kit: Path, trained: Path) -> None:
    state = read_state(trained / "judge")
    assert not any(".layer.0." in name or "embeddings" in name for name in state)
    start = read_kit(kit).start["encoder.layer.1.output.dense.weight"]
    assert not torch.equal(state["encoder.encoder.layer.1.output.dense.weight"], start.half())


def test_a_checkpoint_becomes_a_judge(tmp_path: Path, base: Path, kit: Path, trained: Path) -> None:
    out = tmp_path / "judge"
    compared = publish(trained / "judge", kit, out, tokenizer=base / "tokenizer.json", version="1")
    assert compared.mean < 0.1
    judge = open_judge(out)
    assert judge.name.endswith("-1")
    (found,) = judge.ground(
        [GroundingItem(("artemisia, place of birth: rome.",), "artemisia was born in rome.")]
    )
    total = found.supported + found.unsupported + found.contradicted + found.no_claim
    assert total == pytest.approx(1.0)
    assert all(path.stat().st_size < 95_000_000 for path in out.iterdir())


def test_revised_evidence_makes_pairs_of_the_same_sentence(base: Path) -> None:
    supports, revised, other = (
        nli_row(f"artemisia was born in {city}.", f"artemisia was born in {claimed}.", label, "x")
        for city, claimed, label in (
            ("rome", "rome", "entailment"),
            ("paris", "rome", "contradiction"),
            ("paris", "florence", "neutral"),
        )
    )
    pair = Packer(base / "tokenizer.json").revised([revised, other, supports])
    assert [item.labels for item in pair] == [(0b001,), (0b100,)]
    assert pair[0].claims == pair[1].claims
    assert pair[0].windows != pair[1].windows


def test_packed_rows_have_the_sequences_of_serving(base: Path) -> None:
    packer = Packer(base / "tokenizer.json")
    one = Statement(
        "set", "kind", True,
        ("artemisia, place of birth: rome.", "artemisia, occupation: painter."),
        "who is she?", "", "she is a painter.", Verdict.SUPPORTED, None, frozenset({1}), (0, 0),
    )  # fmt: skip
    (item,) = packer.statements([one, one._replace(verdict=Verdict.CONTRADICTED)])
    assert len(item.windows) == 1
    assert item.labels == (1 << LABELS.index("supported"), 1 << LABELS.index("contradicted"))
    assert item.triples
