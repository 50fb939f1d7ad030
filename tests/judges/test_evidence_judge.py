"""The judge that encodes evidence once: windows are a set, and nothing else matters."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch

from guardrail.core.types import Category, Grounding
from judges.base import AttributionItem, GroundingItem, Pair
from judges.evidence_judge import EvidenceJudge
from judges.window_reader import BLOCK, WINDOW, OnnxReader, canonical, claims_of, windows_of
from tests.judges.tiny_windows import items_of, tiny_kit
from training.torch_reader import TorchReader
from training.window_model import WindowModel, pack

STATEMENTS = (
    "artemisia gentileschi, place of birth: rome.",
    "artemisia gentileschi, occupation: painter.",
    "orazio, place of birth: paris.",
)
WINDOWS = (0, 0, 1)
SENTENCES = ("artemisia was born in rome.", "orazio was born in florence in 1593.", "who?")


@pytest.fixture
def judge(windows_judge: Path) -> EvidenceJudge:
    return EvidenceJudge(windows_judge, threads=2)


def item(
    sentence: str, order: tuple[int, ...] = (0, 1, 2), *, structured: bool = True
) -> GroundingItem:
    return GroundingItem(
        tuple(STATEMENTS[i] for i in order), sentence, "where was she born?", structured=structured,
        windows=tuple(WINDOWS[i] for i in order),
    )  # fmt: skip


def scores(grounding: Grounding) -> list[float]:
    return [grounding.supported, grounding.unsupported, grounding.contradicted, grounding.no_claim]


def test_order_and_duplicates_of_evidence_change_nothing(judge: EvidenceJudge) -> None:
    (wanted,) = judge.ground([item(SENTENCES[0])])
    for order in [*permutations(range(3)), (0, 1, 2, 1, 0)]:
        (found,) = judge.ground([item(SENTENCES[0], order)])
        assert scores(found) == scores(wanted)
        by_statement = dict(zip(order, found.statements, strict=True))
        assert by_statement[2] == wanted.statements[2]


def test_batch_and_cache_change_nothing(judge: EvidenceJudge) -> None:
    together = judge.ground([item(sentence) for sentence in SENTENCES])
    alone = [judge.ground([item(sentence)])[0] for sentence in reversed(SENTENCES)]
    judge.forget()
    cold = [judge.ground([item(sentence)])[0] for sentence in SENTENCES]
    assert together == alone[::-1] == cold


def test_windows_are_cached_within_a_bound_in_bytes(
    windows_judge: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = OnnxReader(windows_judge)
    windows = canonical([(0, 5, 6, 2), (0, 7, 8, 9, 2)])
    claim = claims_of([5], [6, 7], end=2)[0]
    reader.read([(windows, claim)] * 3)
    assert reader.cached[0] == 9
    reader.read([(windows[:1], claim)])
    assert reader.cached[0] == 9
    monkeypatch.setattr("judges.window_reader.CACHE_BYTES", 2_000)
    for first in range(4, 24):
        reader.read([(((0, first, 6, 2),), claim)])
    assert 0 < reader.cached[1] <= 2_000


def test_eight_bits_are_near_the_network(windows_base: Path, windows_judge: Path) -> None:
    kit = tiny_kit(windows_base)
    model = WindowModel(kit.sizes)
    torch.manual_seed(0)
    model.load(kit.start)
    model.eval()
    reader = OnnxReader(windows_judge)
    for one in items_of(windows_base):
        windows = canonical(one.windows)
        packed = pack([(windows, one.claims)])
        with torch.no_grad():
            features = model.features(model.states(packed), packed).numpy()
        found = reader.read([(windows, claim) for claim in one.claims])
        for row, reading in zip(features, found, strict=True):
            assert np.corrcoef(row, reading.features)[0, 1] > 0.97


def test_without_evidence_nothing_is_supported(judge: EvidenceJudge) -> None:
    nothing, blank = judge.ground([GroundingItem((), "rome."), item(" ")])
    assert scores(nothing) == scores(blank) == [0.0, 1.0, 0.0, 0.0]


def test_a_blank_text_is_neutral(judge: EvidenceJudge) -> None:
    blank, real = judge.judge([Pair("", "rome."), Pair("she is a painter.", "she paints.")])
    assert blank.neutral == 1.0
    assert real.entailment + real.neutral + real.contradiction == pytest.approx(1.0)


def test_an_answer_without_evidence_is_irrelevant(judge: EvidenceJudge) -> None:
    nothing, some = judge.attribute(
        [
            AttributionItem("where was she born?", "rome.", ()),
            AttributionItem("where was she born?", "rome.", STATEMENTS[:1]),
        ]
    )
    assert nothing.category is Category.IRRELEVANT
    assert sum(some.scores.values()) == pytest.approx(1.0)
    assert some.complexity is not None


def test_words_have_scores_at_their_offsets(judge: EvidenceJudge) -> None:
    (found,) = judge.ground([item(SENTENCES[1])])
    words = [SENTENCES[1][word.start : word.end] for word in found.words]
    assert words == SENTENCES[1].split()


def test_a_long_sentence_is_judged_in_parts(judge: EvidenceJudge) -> None:
    sentence = " ".join(["artemisia was born in rome,"] * 40)
    (found,) = judge.ground([item(sentence)])
    assert len(found.words) == len(sentence.split())
    assert found.unread == ()


def test_windows_and_blocks_fit() -> None:
    parts = [list(range(5, 5 + length)) for length in (50, 90, 80, 400)]
    windows = windows_of(parts, start=0, end=2, closed=True)
    assert [len(spans) for _, spans in windows] == [2, 1, 1]
    assert all(len(ids) <= WINDOW and ids[0] == 0 and ids[-1] == 2 for ids, _ in windows)
    (claim,) = claims_of(range(5, 205), range(300, 350), end=2)
    assert claim.ids[claim.start : claim.start + claim.length] == tuple(range(300, 350))
    assert len(claim.ids) <= BLOCK
    assert claim.ids[1:25] == tuple(range(5, 29)) or len(claim.ids) == BLOCK
    parts_of_long = claims_of([], range(5, 305), end=2)
    assert [claim.length for claim in parts_of_long] == [100, 100, 100]


def test_torch_reads_as_the_graph_does(windows_base: Path, windows_judge: Path) -> None:
    kit = tiny_kit(windows_base)
    model = WindowModel(kit.sizes)
    torch.manual_seed(0)
    model.load(kit.start)
    tasks = [
        (canonical(one.windows), claim) for one in items_of(windows_base) for claim in one.claims
    ]
    for mine, other in zip(
        TorchReader(model, device="cpu").read(tasks),
        OnnxReader(windows_judge).read(tasks),
        strict=True,
    ):
        assert mine.states.shape == other.states.shape
        assert np.corrcoef(mine.features, other.features)[0, 1] > 0.97
