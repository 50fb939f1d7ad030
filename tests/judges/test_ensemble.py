"""The shipped small judge, pooled with a tiny one that encodes evidence once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from guardrail.core.types import Grounding
from judges.base import GroundingItem, Pair
from judges.evidence_judge import EvidenceJudge
from judges.onnx import SECOND, SHIPPED, EnsembleJudge, OnnxJudge, open_judge
from judges.session import write_sums

SURE = "Ada Lovelace was born in London."
ITEMS = [
    GroundingItem(("Ada Lovelace, place of birth: London.",), sentence, structured=True)
    for sentence in (SURE, "Ada Lovelace was born in Paris.", "Thank you!")
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small model alone."""
    folder = tmp_path_factory.mktemp("small")
    for name in ("model.onnx", "tokenizer.json", "judge.json"):
        (folder / name).symlink_to(SHIPPED / name)
    write_sums(folder)
    return folder


def pooled(folder: Path, small: Path, windows_judge: Path, **ensemble: object) -> EnsembleJudge:
    """An ensemble of both, with some settings of its card."""
    for name in ("model.onnx", "tokenizer.json"):
        (folder / name).symlink_to(small / name)
    card = json.loads((small / "judge.json").read_text("utf-8"))
    (folder / "judge.json").write_text(json.dumps(card | {"ensemble": ensemble}), "utf-8")
    write_sums(folder)
    (folder / SECOND).symlink_to(windows_judge)
    judge = open_judge(folder, threads=2)
    assert isinstance(judge, EnsembleJudge)
    return judge


def shares(grounding: Grounding) -> np.ndarray:
    found = np.array([grounding.supported, grounding.unsupported, grounding.contradicted])
    return found / (1.0 - grounding.no_claim)


def test_probabilities_are_multiplied_by_share(tmp_path, small, windows_judge):
    found = pooled(tmp_path, small, windows_judge, share=0.25).ground(ITEMS)
    ones, others = OnnxJudge(small).ground(ITEMS), EvidenceJudge(windows_judge).ground(ITEMS)
    for both, one, other in zip(found, ones, others, strict=True):
        expected = shares(one) ** 0.75 * shares(other) ** 0.25
        np.testing.assert_allclose(shares(both), expected / expected.sum(), rtol=1e-5)
        assert both.no_claim == one.no_claim
        assert both.words == one.words
        assert both.statements == one.statements


def test_the_larger_model_reads_only_what_the_smaller_is_unsure_of(tmp_path, small, windows_judge):
    one = OnnxJudge(small).ground(ITEMS)
    between = (shares(one[0]).max() + max(shares(one[1]).max(), 0.0)) / 2
    judge = pooled(tmp_path, small, windows_judge, share=0.5, sure=float(between))
    found = judge.ground(ITEMS[:2])
    changed = [not np.allclose(shares(a), shares(b)) for a, b in zip(found, one, strict=False)]
    assert sorted(changed) == [False, True]


def test_nli_is_pooled_too(tmp_path, small, windows_judge):
    pairs = [Pair("Artemisia was born in Rome.", "Artemisia was born.")]
    (found,) = pooled(tmp_path, small, windows_judge, pairs=0.5).judge(pairs)
    (one,), (other,) = OnnxJudge(small).judge(pairs), EvidenceJudge(windows_judge).judge(pairs)
    products = [
        (getattr(one, name) * getattr(other, name)) ** 0.5
        for name in ("entailment", "neutral", "contradiction")
    ]
    assert found.entailment == pytest.approx(products[0] / sum(products), rel=1e-5)


def test_both_models_are_named(tmp_path, small, windows_judge):
    judge = pooled(tmp_path, small, windows_judge)
    judge.warm_up()
    parts = OnnxJudge(small), EvidenceJudge(windows_judge)
    assert judge.name == "+".join(part.name for part in parts)
    assert judge.snapshot is not None
    assert str(parts[1].snapshot) in judge.snapshot
