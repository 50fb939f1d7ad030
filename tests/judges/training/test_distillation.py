"""A teacher's encoder is read as published, and a student learns from what the teacher says."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from judges.heads import HEADS, TOKEN_HEADS
from judges.training.batches import batches_by_length
from judges.training.encoded import EncodedRow, EncodedRows, Targets, read_encoded, write_encoded
from judges.training.model import (
    CrossEncoder,
    EncoderConfig,
    load_pretrained,
    read_weights,
    write_weights,
)
from judges.training.plan import PLANS, Plan, Stage, read_plan
from judges.training.rows import NO_LABEL, Row
from judges.training.soft_labels import soft_labels
from judges.training.trainer import Trainer
from judges.training.unlabelled import unlabelled_rows

MARK, START, END, YES, NO = 1, 2, 3, 5, 6
SMALL = EncoderConfig(
    vocab_size=12, hidden_size=32, layers=2, attention_heads=2, intermediate_size=64, positions=16
)


def _row(word: int, *, labelled: bool) -> EncodedRow:
    """The word of the hypothesis decides what follows: *yes* or *no*."""
    ids = np.array([START, MARK, 7, END, word, END], np.uint16)
    types = np.array([0, 0, 0, 0, 1, 1], np.uint8)
    unknown = np.full(len(ids), NO_LABEL, np.int8)
    right = (0 if word == YES else 2,) if labelled else ()
    source = "labelled" if labelled else "bare"
    return EncodedRow(source, ids, types, unknown, unknown, Targets(right, (), NO_LABEL, NO_LABEL))


def _rows(*, labelled: bool) -> list[EncodedRow]:
    return [_row(random.Random(i).choice([YES, NO]), labelled=labelled) for i in range(200)]


def _plan(source: str, *, soft: float) -> Plan:
    stages = (Stage(steps=40, shares={source: 1.0}),)
    return Plan(
        version="t", tokens=240, rate=2e-3, warm_up=4, decay=10, averaging=0.8, soft=soft,
        stages=stages,
    )  # fmt: skip


def test_a_student_learns_from_a_teacher_on_rows_without_labels(tmp_path: Path) -> None:
    torch.manual_seed(0)
    teacher = CrossEncoder(EncoderConfig(**{**vars(SMALL), "relative_buckets": 8}))
    final = Trainer(
        teacher, EncodedRows(_rows(labelled=True)), _plan("labelled", soft=0.0), tmp_path
    ).run()
    teacher.load_state_dict(dict(final))
    write_weights(teacher, tmp_path / "teacher.safetensors")
    teacher = read_weights(tmp_path / "teacher.safetensors")

    bare = _rows(labelled=False)
    soft = soft_labels(teacher, bare, mark=MARK, tokens=60, device="cpu")
    assert soft.rows.shape == (200, sum(map(len, HEADS.values())))
    spoken = soft.tokens[0][:, : len(TOKEN_HEADS["words"])].sum(-1) > 0.5
    assert spoken.tolist() == [False, False, False, False, True, True]
    marked = soft.tokens[0][:, len(TOKEN_HEADS["words"]) :].sum(-1) > 0.5
    assert marked.tolist() == [False, True, False, False, False, False]

    student = CrossEncoder(SMALL)
    final = Trainer(student, EncodedRows(bare, soft), _plan("bare", soft=1.0), tmp_path).run()
    student.load_state_dict(dict(final))
    [batch] = batches_by_length(EncodedRows(bare), range(200), tokens=10_000)
    with torch.no_grad():
        logits = student.eval()(batch.input_ids, batch.attention_mask, batch.token_type_ids)
    said_yes = logits["nli"].argmax(-1) == 0
    assert torch.equal(said_yes, batch.input_ids[:, 4] == YES)


def test_encoded_rows_are_read_back_as_they_were(tmp_path: Path) -> None:
    rows = [*_rows(labelled=True)[:3], *_rows(labelled=False)[:2]]
    write_encoded(rows, tmp_path / "rows.npz")
    for ours, theirs in zip(rows, read_encoded(tmp_path / "rows.npz"), strict=True):
        assert (ours.source, ours.targets) == (theirs.source, theirs.targets)
        for name in ("ids", "types", "words", "statements"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def test_mpnet_reads_the_same_as_published(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.MPNetConfig(
        vocab_size=120, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=80,
    )  # fmt: skip
    published = transformers.MPNetModel(config).eval()
    published.save_pretrained(tmp_path)
    ours = load_pretrained(tmp_path).eval()
    states: list[torch.Tensor] = []
    ours.layers[-1].register_forward_hook(lambda _module, _inputs, out: states.append(out))
    words = torch.randint(4, 99, (1, 70))
    bert = torch.cat([torch.tensor([[101]]), words, torch.tensor([[102]])], -1)
    theirs = torch.cat([torch.tensor([[0]]), words + 4, torch.tensor([[2]])], -1)
    with torch.no_grad():
        ours(bert, torch.ones_like(bert), torch.zeros_like(bert))
        expected = published(theirs).last_hidden_state
    torch.testing.assert_close(states[0], expected, atol=1e-5, rtol=1e-5)
    assert json.loads((tmp_path / "config.json").read_text("utf-8"))["model_type"] == "mpnet"


def test_rows_without_labels_vary_sentence_or_evidence() -> None:
    rows = [
        Row("", f"Ida Voss had {n} boats in Graz.", "toy", nli=0, claim=0, cited=frozenset({0}),
            statements=(f"Ida Voss owns {n} boats.", "Ole Berg lives in Oslo."))
        for n in range(20)
    ]  # fmt: skip
    made = list(unlabelled_rows(rows, seed=1))
    assert len(made) > 15
    known = {(row.hypothesis, row.statements) for row in rows}
    for row in made:
        assert row.source == "unlabelled_statements"
        assert (row.nli, row.claim, row.attribution, row.cited) == (NO_LABEL, NO_LABEL, (), None)
        assert (row.hypothesis, row.statements) not in known


@pytest.mark.parametrize("name", sorted(path.stem for path in PLANS.glob("*.toml")))
def test_plans_read_every_kind_of_statement(name: str) -> None:
    read = read_plan(PLANS / f"{name}.toml").sources
    for kind in ("triples", "passages"):
        assert {
            f"{part}_{kind}" for part in ("statements", "other_evidence", "chosen_evidence")
        } <= read
