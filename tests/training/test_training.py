"""A tiny judge learns a toy task, resumes, and reads the same after export."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from guardrail.core.errors import InputError
from guardrail.core.types import Verdict
from judges.base import GroundingItem, Pair
from judges.heads import HEADS, STATEMENT_MARK
from judges.onnx import OnnxJudge
from judges.sums import write_sums
from training.artefact import write_judge, write_model
from training.batches import batches, encode_rows, load_tokenizer
from training.calibrate import expected_calibration_error, fit_temperature, softmax
from training.evaluate import logits, measure, table
from training.model import CrossEncoder, EncoderConfig
from training.plan import Plan
from training.rows import Row, nli_row
from training.trainer import Place, Trainer, mixture

WORDS = ["rome", "oslo", "lyon", "graz", "cork", "bern", "he", "lives", "never", "in", "likes"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", STATEMENT_MARK]
TINY = EncoderConfig(
    vocab_size=len(WORDS) + len(SPECIAL) + 1,
    hidden_size=32,
    layers=2,
    attention_heads=2,
    intermediate_size=64,
    positions=64,
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


def _plan(steps: int, **changed: Any) -> Plan:
    return Plan(
        **{
            "version": "test",
            "steps": steps,
            "shares": {"toy": 1.0, "caqa_toy": 1.0},
            "tokens": 300,
            "rate": 1.5e-3,
            "warm_up": 5,
            "decay": 20,
            **changed,
        }
    )


def _train(
    model: CrossEncoder,
    tokenizer: Path,
    folder: Path,
    plan: Plan,
    rows: Sequence[Row],
    *,
    resume: bool = False,
) -> Trainer:
    trainer = Trainer(model, plan, folder, device="cpu")
    if resume:
        trainer.resume(folder / "last.pt")
    by_source = {name: [row for row in rows if row.source == name] for name in plan.shares}
    loaded = load_tokenizer(tokenizer)
    trainer.run(mixture(by_source, loaded, plan, trainer.place, longest=TINY.positions))
    return trainer


def test_a_tiny_judge_learns_resumes_and_exports(tokenizer: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    rows = _rows(300, 0)
    _train(CrossEncoder(TINY), tokenizer, tmp_path, _plan(60), rows)
    resumed = CrossEncoder(TINY)
    trainer = _train(resumed, tokenizer, tmp_path, _plan(120), rows, resume=True)
    resumed.load_state_dict(trainer.average)

    unseen = _rows(200, 1)
    measured = write_judge(
        resumed, tmp_path / "judge", tokenizer=tokenizer, validation=unseen, version="test"
    )
    accuracy = {(m.head, m.source): m.accuracy for m in measured}
    assert accuracy["nli", "toy"] > 0.9
    assert "| nli | toy | 200 |" in table(measured)

    shutil.copytree(tmp_path / "judge", tmp_path / "fp32")
    write_model(resumed, tmp_path / "fp32" / "model.onnx", quantise=False)
    write_sums(tmp_path / "fp32")
    encoded = encode_rows(load_tokenizer(tokenizer), unseen[:50], TINY.positions)
    (batch,) = batches(encoded, tokens=10_000)
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
    plan = _plan(300, shares={"toy": 1.0})
    trainer = _train(model, tokenizer, tmp_path, plan, _statement_rows(200, 0))
    model.load_state_dict(trainer.average)
    write_judge(model, tmp_path / "judge", tokenizer=tokenizer,
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
    rows, plan = _rows(300, 0), _plan(50, decay=1)
    _train(whole, tokenizer, tmp_path, plan, rows)
    _train(half, tokenizer, tmp_path, _plan(33, decay=1), rows)
    _train(again, tokenizer, tmp_path, plan, rows, resume=True)
    for name, values in again.state_dict().items():
        torch.testing.assert_close(values, whole.state_dict()[name], msg=name)


def test_a_file_named_stop_starts_the_decay(tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "stop").touch()
    _train(CrossEncoder(TINY), tokenizer, tmp_path, _plan(10_000), _rows(300, 0))
    state = torch.load(tmp_path / "last.pt", weights_only=True)
    assert state["step"] == 20


def test_batches_hold_every_row_once_within_the_limit(tokenizer: Path) -> None:
    encoded = encode_rows(load_tokenizer(tokenizer), _rows(200, 2), TINY.positions)
    made = batches(encoded, tokens=128, seed=1)
    assert sum(len(batch.nli) for batch in made) == 201
    assert all(batch.input_ids.numel() <= 128 for batch in made)


def test_of_long_evidence_what_is_cited_is_kept(tokenizer: Path) -> None:
    loaded = load_tokenizer(tokenizer)
    statements = (*(f"he likes {town} ." for town in WORDS[:6]), "he lives in graz .")
    row = Row("", "he lives in graz", "toy", nli=0, statements=statements, cited=frozenset({6}))
    [whole, cut] = [encode_rows(loaded, [row], longest)[0] for longest in (64, 24)]
    assert whole.statements[whole.statements >= 0].tolist() == [0] * 6 + [1]
    assert len(cut.ids) <= 24
    marks = cut.statements[cut.statements >= 0].tolist()
    assert marks[-1] == 1
    assert 1 < len(marks) < 7


def test_a_mixture_without_rows_is_an_error(tokenizer: Path) -> None:
    stream = mixture({"other": _rows(3, 0)}, load_tokenizer(tokenizer), _plan(5), Place())
    with pytest.raises(InputError, match="no rows of toy, caqa_toy"):
        next(stream)


def test_the_rate_rises_holds_and_falls_to_zero() -> None:
    plan = Plan(version="test", warm_up=10, decay=20, steps=100, shares={})
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
