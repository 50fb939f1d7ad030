"""Twins of supported sentences differ in one place, and are never supported."""

import pytest

from guardrail.core.types import Verdict
from training.one_change import KIND, TWINS, one_change
from training.statements import Statement

LIGHT = (
    "Skerry Light, built: 1854.",
    "Skerry Light, keeper: Ada Ross.",
    "Tolley Head, built: 1876.",
)


def _statement(sentence: str, *, verdict: Verdict = Verdict.SUPPORTED) -> Statement:
    return Statement(
        group="set 1", kind="plain", triples=True, statements=LIGHT, question="", context="",
        sentence=sentence, verdict=verdict, span=None, cited=frozenset({0}),
    )  # fmt: skip


def _twins(sentence: str) -> dict[str, Verdict]:
    found = one_change([_statement(sentence)], seed=1)
    return {item.sentence: item.verdict for item in found if item.kind == KIND}


@pytest.mark.parametrize(
    ("sentence", "twin", "verdict"),
    [
        ("The gate is locked.", "The gate is unlocked.", "contradicted"),
        ("The gate is painted green.", "The gate is not painted green.", "contradicted"),
        ("Entry isn't possible for dogs.", "Entry is possible for dogs.", "contradicted"),
        ("At least four people attend.", "At most four people attend.", "contradicted"),
        ("Dogs may enter the park.", "Dogs must enter the park.", "unsupported"),
        ("You may swim here if a guard watches.", "You may swim here.", "unsupported"),
        ("Skerry Light came first.", "Tolley Head came first.", "contradicted"),
    ],
)
def test_one_place_is_changed(sentence: str, twin: str, verdict: str) -> None:
    assert _twins(sentence)[twin] == verdict


@pytest.mark.parametrize("sentence", ["It closed on a Monday.", "The climb took nine hours."])
def test_days_and_numbers_become_others(sentence: str) -> None:
    twins = _twins(sentence)

    assert 1 <= len(twins) <= TWINS
    assert all(twin.split()[:2] == sentence.split()[:2] for twin in twins if "open" not in twin)
    assert set(twins.values()) == {Verdict.CONTRADICTED}


@pytest.mark.parametrize(
    "sentence",
    [
        "It needs about 40 people or more.",
        "Is the gate open?",
        "1. Wait outside or call.",
        "It may not open in May.",
    ],
)
def test_nothing_that_may_stay_true(sentence: str) -> None:
    assert all(verdict is not Verdict.SUPPORTED for verdict in _twins(sentence).values())
    assert not any("41" in twin or "39" in twin or "2." in twin for twin in _twins(sentence))


def test_others_than_supported_sentences_have_no_twin() -> None:
    wrong = _statement("The gate is locked.", verdict=Verdict.CONTRADICTED)

    assert list(one_change([wrong], seed=1)) == []
