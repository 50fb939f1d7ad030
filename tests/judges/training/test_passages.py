"""Passages around claims: what stands in them decides the category."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from guardrail.errors import InputError
from judges.base import AttributionItem, Pair
from judges.onnx import OnnxJudge
from judges.training.head import features, fit_head, write_head
from judges.training.model import HEADS, load_judge
from judges.training.passage_pairs import LONGEST_WORDS, passage_rows
from judges.training.rows import Row, nli_row
from tests.judges.tiny import WORDS

SUPPORTIVE, PARTIAL, CONTRADICTORY, IRRELEVANT = range(4)


def _told() -> list[Row]:
    """Premises in words of their own beside a name that two share, and claims on them."""
    rows = []
    for number in range(60):
        name, *own = f"Name{number // 2}", *(f"word{number}{letter}" for letter in "abcdefgh")
        premise = f"{name} {' '.join(own)}, where {own[0]} and {own[1]} had been, they say."
        rows += [
            nli_row(premise, f"{own[2]} {own[3]} {name}.", "entailment", "told"),
            nli_row(premise, f"{own[4]} never {name}.", "contradiction", "told"),
            nli_row(premise, f"other{number} {name}.", "neutral", "told"),
        ]
    return rows


@pytest.fixture(scope="module")
def made() -> list[Row]:
    return passage_rows(_told(), count=400, seed=1, asked=("Which one is it?",))


def test_categories_are_alike_often_and_the_same_seed_gives_the_same_rows(made: list[Row]) -> None:
    assert Counter(row.attribution for row in made) == {(category,): 100 for category in range(4)}
    assert passage_rows(_told(), count=400, seed=1, asked=("Which one is it?",)) == made
    assert 0.3 < sum(row.hypothesis.startswith("Which one") for row in made) / 400 < 0.6


def test_passages_hold_what_their_category_needs(made: list[Row]) -> None:
    premises = {row.hypothesis.rstrip("."): row.premise for row in _told() if row.nli == 0}
    for row in made:
        claimed = [premise for claim, premise in premises.items() if claim in row.hypothesis]
        held = [premise in row.premise for premise in claimed]
        if row.attribution == (SUPPORTIVE,):
            assert all(held)
        if row.attribution == (IRRELEVANT,):
            assert not any(held)


def test_two_claims_do_not_give_partial_support_away(made: list[Row]) -> None:
    lengths = {
        category: np.mean([len(r.hypothesis.split()) for r in made if r.attribution == (category,)])
        for category in (SUPPORTIVE, PARTIAL, CONTRADICTORY, IRRELEVANT)
    }
    assert max(lengths.values()) < 2 * min(lengths.values())


def test_passages_are_short_and_long(made: list[Row]) -> None:
    sizes = [len(row.premise.split()) for row in made]
    assert min(sizes) < 25
    assert LONGEST_WORDS / 3 < max(sizes) <= LONGEST_WORDS


def test_the_head_learns_and_the_others_keep_every_bit(judge_folder: Path, tmp_path: Path) -> None:
    rows = [
        Row(f"{place} {who} .", f"{who} in {place}", "words", -1, (int(place == WORDS[0]),))
        for place in WORDS[:2]
        for who in WORDS[2:30]
    ]
    taught = features(judge_folder, rows, tmp_path / "features")
    assert taught.features.shape[0] == taught.allowed.shape[0] == len(rows)
    model, _ = load_judge(judge_folder)
    card = json.loads((judge_folder / "judge.json").read_text("utf-8"))
    fit_head(model, {"words": taught}, epochs=60, batch=8)
    write_head(model, judge_folder, tmp_path / "judge", version="2", temperature=1.25)
    before, after = OnnxJudge(judge_folder), OnnxJudge(tmp_path / "judge")
    pairs = [Pair(row.premise, row.hypothesis) for row in rows]
    assert after.judge(pairs) == before.judge(pairs)
    assert after.name != before.name
    assert after.card.temperature == {**card["temperature"], "attribution": 1.25}
    said = after.attribute([AttributionItem("", p.hypothesis, (p.premise,)) for p in pairs])
    right = [
        one.category == HEADS["attribution"][row.attribution[0]]
        for one, row in zip(said, rows, strict=True)
    ]
    assert np.mean(right) > 0.9


def test_premises_that_all_tell_the_same_make_no_passages() -> None:
    rows = [nli_row("It is so.", f"It is {word}.", "entailment", "told") for word in WORDS[:3]]
    with pytest.raises(InputError, match="too few"):
        passage_rows(rows, count=8, seed=1)
