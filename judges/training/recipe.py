"""Which rows the shipped judge learns from, and in which proportion."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from guardrail.benchmarks.caqa.sources import assemble
from judges.training.caqa_rows import caqa_rows
from judges.training.claim_pairs import claim_rows
from judges.training.data import load_nli
from judges.training.graph_pairs import graph_rows
from judges.training.rows import Row
from judges.training.sentence_pairs import load_dart, load_tekgen
from judges.training.trainer import Stage

__all__ = ["CURRICULUM", "SEED", "WEIGHTS", "load_rows", "load_validation"]

_SENTENCES = {
    "vitaminc_real": 1.0,
    "vitaminc_synthetic": 0.7,
    "fever": 0.7,
    "snli_dev": 1.0,
    "mnli_dev_matched": 1.0,
    "cad_snli": 1.0,
    "conjnli": 0.7,
    "infotabs_train": 0.5,
}
_FACTS = {
    "vitaminc_real": 1.4,
    "vitaminc_synthetic": 0.7,
    "fever": 0.6,
    "snli_dev": 1.0,
    "mnli_dev_matched": 1.0,
    "cad_snli": 0.6,
    "conjnli": 0.4,
    "infotabs_train": 0.7,
    "tekgen": 0.4,
    "tekgen_reverse": 0.4,
    "dart": 0.7,
    "graph": 0.5,
    "graph_fact": 0.6,
    "caqa": 0.35,
}
_ATTRIBUTION = {
    "vitaminc_real": 1.3,
    "vitaminc_synthetic": 0.6,
    "fever": 0.5,
    "snli_dev": 2.0,
    "mnli_dev_matched": 1.5,
    "cad_snli": 1.0,
    "conjnli": 0.25,
    "infotabs_train": 0.6,
    "tekgen": 0.35,
    "tekgen_reverse": 0.4,
    "dart": 0.9,
    "graph": 0.6,
    "graph_fact": 0.6,
    "caqa": 1.0,
}
_FINISH = {
    "vitaminc_real": 1.8,
    "vitaminc_synthetic": 0.8,
    "fever": 0.6,
    "snli_dev": 2.5,
    "mnli_dev_matched": 2.5,
    "cad_snli": 1.2,
    "conjnli": 0.3,
    "infotabs_train": 0.8,
    "tekgen": 0.2,
    "tekgen_reverse": 0.4,
    "dart": 1.0,
    "graph": 0.4,
    "graph_fact": 0.7,
    "claims": 0.5,
    "caqa": 0.8,
}
_POLISH = {
    "vitaminc_real": 1.3,
    "vitaminc_synthetic": 0.7,
    "fever": 0.4,
    "snli_dev": 3.0,
    "mnli_dev_matched": 3.0,
    "cad_snli": 1.5,
    "conjnli": 0.2,
    "infotabs_train": 1.0,
    "claims": 0.5,
    "tekgen": 0.25,
    "tekgen_reverse": 0.4,
    "dart": 1.6,
    "graph": 0.6,
    "graph_fact": 0.8,
    "caqa": 0.7,
}
CURRICULUM = (
    Stage(0, _SENTENCES),
    Stage(500, _FACTS),
    Stage(1_200, _ATTRIBUTION),
    Stage(2_100, _FINISH),
    Stage(4_100, _POLISH),
)
"""Plain sentence pairs first, then facts, then much attribution, which is the hardest to learn
and comes late and suddenly, and last two mixtures that mend what lags behind."""

WEIGHTS: Mapping[str, float] = {"caqa": 1.3}
"""Weight of a source's rows in the loss where it is not 1."""

SEED = 13
GRAPH_ROWS = 30_000
CAQA_ROWS = 48_000
CLAIM_ROWS = 9_000
TEST_ROWS = 2_000
"""Rows of each constructed validation set."""


def load_rows(data: Path, *, seed: int) -> list[Row]:
    """Load and construct every training row.

    Args:
        data: The data folder, with ``nli/``, ``triples/`` and ``kg/``.
        seed: Seed of all constructions.
    """
    graph = assemble(data)
    sentences = load_nli(data).train
    claims = [row for row in sentences if row.source == "vitaminc_real"]
    return [
        *sentences,
        *claim_rows(claims, count=CLAIM_ROWS, seed=seed),
        *load_tekgen(data, seed=seed).train,
        *load_dart(data, seed=seed).train,
        *graph_rows(graph, rows=GRAPH_ROWS, seed=seed, split="train"),
        *caqa_rows(graph, rows=CAQA_ROWS, seed=seed, split="train"),
    ]


def load_validation(data: Path, *, seed: int = SEED) -> list[Row]:
    """Load and construct every validation row; none shares page, table or entity with training.

    ``caqa_test_relations`` asks about relations that no training row has.

    Args:
        data: The data folder, with ``nli/``, ``triples/`` and ``kg/``.
        seed: Seed of all constructions.
    """
    graph = assemble(data)
    return [
        *load_nli(data).validation,
        *load_tekgen(data, seed=seed).validation,
        *load_dart(data, seed=seed).validation,
        *graph_rows(graph, rows=TEST_ROWS, seed=seed, split="valid"),
        *caqa_rows(graph, rows=TEST_ROWS, seed=seed, split="test"),
        *caqa_rows(graph, rows=TEST_ROWS, seed=seed, split="test_relations"),
    ]
