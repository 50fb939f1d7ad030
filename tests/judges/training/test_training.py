"""A tiny judge learns a toy task, resumes, and reads the same after export."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from guardrail.types import Verdict
from judges.base import GroundingItem, Pair
from judges.heads import STATEMENT_MARK
from judges.onnx import OnnxJudge
from judges.training.artefact import write_judge
from judges.training.batches import batches_by_length, encode_rows, load_tokenizer
from judges.training.calibrate import expected_calibration_error, fit_temperature, softmax
from judges.training.encoded import EncodedRows
from judges.training.evaluate import logits, measure, table
from judges.training.model import HEADS, CrossEncoder, EncoderConfig
from judges.training.plan import Plan, Stage
from judges.training.rows import Row, nli_row
from judges.training.trainer import Trainer

WORDS = ["rome", "oslo", "lyon", "graz", "cork", "bern", "he", "lives", "never", "in", "likes"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", STATEMENT_MARK]
TINY = EncoderConfig(
    vocab_size=len(WORDS) + len(SPECIAL) + 1,
    hidden_size=32,
    layers=2,
    attention_heads=2,
    intermediate_size=64,
    positions=32,
    dropout=0.1,
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, ".", *WORDS])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(path))
    return path


def _rows(count: int, seed: int) -> list[Row]:
    """One word decides: *likes* is neutral, *never* contradicts."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        town = rng.choice(WORDS[:6])
        label = rng.choice(["entailment", "neutral", "contradiction"])
        verb = {"entailment": "lives in", "neutral": "likes", "contradiction": "never lives in"}
        rows.append(nli_row(f"He lives in {town}.", f"He {verb[label]} {town}.", label, "toy"))
    rows.append(
        Row("He lives in Rome.", "He lives in Rome.", "caqa_toy", attribution=(0,), complexity=0)
    )
    return rows


def _plan(steps: int) -> Plan:
    stages = (
        Stage(steps=20, shares={"toy": 0.5}),
        Stage(steps=max(1, steps - 20), shares={"toy": 1.0, "caqa_toy": 1.0}),
    )
    return Plan(version="test", tokens=300, rate=1.5e-3, warm_up=5, decay=20, averaging=0.8,
                checkpoint_every=10, stages=stages)  # fmt: skip


def _trainer(model: CrossEncoder, tokenizer: Path, folder: Path, steps: int) -> Trainer:
    encoded = encode_rows(load_tokenizer(tokenizer), _rows(300, 0), 24)
    return Trainer(model, EncodedRows(encoded), _plan(steps), folder)


def test_a_tiny_judge_learns_resumes_and_exports(tokenizer: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = CrossEncoder(TINY)
    _trainer(model, tokenizer, tmp_path, 60).run()
    resumed = CrossEncoder(TINY)
    trainer = _trainer(resumed, tokenizer, tmp_path, 120)
    trainer.resume(tmp_path / "last.pt")
    resumed.load_state_dict(dict(trainer.run()))

    unseen = _rows(200, 1)
    measured, compared = write_judge(
        resumed, tmp_path / "judge", tmp_path / "fp32", tokenizer=tokenizer, validation=unseen,
        version="test",
    )  # fmt: skip
    accuracy = {(m.head, m.source): m.accuracy for m in measured}
    assert accuracy["nli", "toy"] > 0.9
    assert "| nli | toy | 200 |" in table(measured, compared)

    batch = next(batches_by_length(
        EncodedRows(encode_rows(load_tokenizer(tokenizer), unseen[:50], 24)), range(50),
        tokens=10_000,
    ))  # fmt: skip
    with torch.no_grad():
        ours = resumed.eval()(batch.input_ids, batch.attention_mask, batch.token_type_ids)
    theirs = logits(tmp_path / "fp32", unseen[:50])
    for name in HEADS:
        np.testing.assert_allclose(
            np.sort(ours[name].numpy(), axis=0), np.sort(theirs[name], axis=0), atol=1e-4
        )

    card = json.loads((tmp_path / "judge" / "judge.json").read_text("utf-8"))
    assert card["labels"]["nli"] == ["entailment", "neutral", "contradiction"]
    (scores,) = OnnxJudge(tmp_path / "judge").judge(
        [Pair("He lives in Oslo.", "He lives in Oslo.")]
    )
    assert scores.label == "entailment"


def _statement_rows(count: int, seed: int) -> list[Row]:
    """Of two statements the one on the sentence's town carries it; another verb is missing."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        town, other = rng.sample(WORDS[:6], 2)
        statements = [f"he lives in {town}", f"he never lives in {other}"]
        rng.shuffle(statements)
        told, missing = rng.choice([("lives in", False), ("likes", True)])
        rows.append(
            Row(
                "",
                f"he {told} {town}",
                "toy",
                nli=1 if missing else 0,
                claim=0,
                statements=tuple(statements),
                context=f"he likes {other}",
                span=(3, 8) if missing else (),
                cited=frozenset({statements.index(f"he lives in {town}")}),
            )
        )
        rows.append(Row("", "he he he", "toy", claim=1, statements=tuple(statements)))
    return rows


def test_words_statements_and_claims_are_learnt_and_read_in_one_pass(
    tokenizer: Path, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = CrossEncoder(TINY)
    plan = _plan(400).model_copy(update={"stages": (Stage(steps=400, shares={"toy": 1.0}),)})
    encoded = encode_rows(load_tokenizer(tokenizer), _statement_rows(200, 0), 32)
    model.load_state_dict(dict(Trainer(model, EncodedRows(encoded), plan, tmp_path).run()))
    write_judge(model, tmp_path / "judge", tmp_path / "fp32", tokenizer=tokenizer,
                validation=_statement_rows(60, 1), version="test")  # fmt: skip
    judge = OnnxJudge(tmp_path / "judge")
    unseen = [row for row in _statement_rows(40, 2) if row.cited is not None]
    found = judge.ground(
        [GroundingItem(row.statements, row.hypothesis, row.context) for row in unseen]
    )
    for row, item in zip(unseen, found, strict=True):
        assert item.verdict is (Verdict.UNSUPPORTED if row.nli else Verdict.SUPPORTED)
        assert [word.missing > 0.5 for word in item.words] == [False, bool(row.nli), False, False][
            : len(item.words)
        ]
        carried = {i for i, score in enumerate(item.statements) if score and score.carries > 0.5}
        assert carried == row.cited
    [hello] = judge.ground([GroundingItem(unseen[0].statements, "he he he")])
    assert hello.verdict is Verdict.NO_CLAIM


def test_training_resumes_with_the_next_batch(tokenizer: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    still = EncoderConfig(**{**vars(TINY), "dropout": 0.0})
    whole, half, again = (CrossEncoder(still) for _ in range(3))
    half.load_state_dict(whole.state_dict())
    encoded = EncodedRows(encode_rows(load_tokenizer(tokenizer), _rows(300, 0), 24))
    plan = _plan(50).model_copy(update={"decay": 1})
    Trainer(whole, encoded, plan, tmp_path).run()
    shorter = plan.stages[1].model_copy(update={"steps": 13})
    begun = plan.model_copy(update={"stages": (plan.stages[0], shorter)})
    Trainer(half, encoded, begun, tmp_path).run()
    resumed = Trainer(again, encoded, plan, tmp_path)
    resumed.resume(tmp_path / "last.pt")
    resumed.run()
    for name, values in again.state_dict().items():
        torch.testing.assert_close(values, whole.state_dict()[name], msg=name)


def test_a_file_named_stop_starts_the_decay(tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "stop").touch()
    _trainer(CrossEncoder(TINY), tokenizer, tmp_path, 10_000).run()
    state = torch.load(tmp_path / "last.pt", weights_only=True)
    assert state["step"] == 20


def test_batches_hold_every_row_once_within_the_limit(tokenizer: Path) -> None:
    encoded = EncodedRows(encode_rows(load_tokenizer(tokenizer), _rows(200, 2), 24))
    batches = list(batches_by_length(encoded, range(201), tokens=128, seed=1))
    assert sum(len(batch.nli) for batch in batches) == 201
    assert all(batch.input_ids.numel() <= 128 for batch in batches)


def test_the_rate_rises_holds_and_falls_to_zero() -> None:
    plan = Plan(version="test", warm_up=10, decay=20, stages=(Stage(steps=100, shares={}),))
    shares = [plan.rate_share(step, plan.steps) for step in range(100)]
    assert shares[0] == pytest.approx(0.1)
    assert shares[50] == 1.0
    assert shares[-1] < 0.05
    assert all(a >= b for a, b in itertools.pairwise(shares[80:]))


def test_temperature_undoes_overconfidence() -> None:
    rng = np.random.default_rng(0)
    logits_ = rng.normal(size=(4000, 3))
    labels = np.array([rng.choice(3, p=row) for row in softmax(logits_)])
    temperature = fit_temperature(3.0 * logits_, labels)
    assert temperature == pytest.approx(3.0, rel=0.1)
    assert expected_calibration_error(softmax(3.0 * logits_, temperature), labels) < 0.03
    assert expected_calibration_error(softmax(3.0 * logits_), labels) > 0.1


def test_attribution_is_measured_on_attribution_rows_only() -> None:
    rows = [nli_row("a", "b", "entailment", "toy"), Row("a", "b", "caqa", attribution=(2,))]
    scores = {name: np.zeros((2, len(labels)), np.float32) for name, labels in HEADS.items()}
    measured = measure(scores, rows, {})
    assert {(m.head, m.source) for m in measured} == {("nli", "toy"), ("attribution", "caqa")}
