"""Which rows the shipped judge can learn from; a plan says in which proportion."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from benchmarks.caqa.sources import assemble
from training.caqa_rows import caqa_rows
from training.claim_pairs import claim_rows
from training.close_wording import close_wording, made_tables
from training.data import load_nli
from training.gathered import load_gathered
from training.graph_pairs import graph_rows
from training.grounding_rows import (
    dart_sets,
    other_evidence_rows,
    set_rows,
    statement_rows,
)
from training.relation_pairs import relation_rows
from training.rows import Row
from training.sentence_pairs import load_dart, load_tekgen
from training.statements import Statement, is_held_out, own_statements, shared_statements

__all__ = ["SEED", "load_rows", "load_statements"]

SEED = 13
GRAPH_ROWS = 10_000
CAQA_ROWS = 16_000
CLAIM_ROWS = 9_000
RELATION_ROWS = 8_000
MADE_TABLES = 1_500


def load_statements(data: Path) -> tuple[list[Statement], list[Statement]]:
    """Statements to train on and those held out, whose sets start with ``own`` where they are ours.

    The held-out ones are the data folder's ``valid``, and a share of the project's own sets.
    """
    train = list(shared_statements(data, "train"))
    validation = list(shared_statements(data, "valid"))
    for own_statement in own_statements():
        (validation if is_held_out(own_statement.group) else train).append(own_statement)
    return train, validation


HARD = ("n", "q", "r", "s", "t", "u")
"""First letters of the sets that were written for what judges find hard."""


def load_rows(data: Path, *, seed: int, sources: frozenset[str]) -> list[Row]:
    """Load and construct the training rows of some sources.

    Args:
        data: The data folder.
        seed: Seed of all constructions.
        sources: Names of the sources that are read.
    """
    graph = assemble(data)
    sentences = load_nli(data).train
    claims = [row for row in sentences if row.source == "vitaminc_real"]
    statements = load_statements(data)[0]
    hard = [item for item in statements if item.group.startswith(HARD)]
    plain = [item for item in statements if not item.group.startswith(HARD)]
    sets = _one_of_each_set(statements)
    tables = made_tables(sets, count=MADE_TABLES, seed=seed)
    rows = [
        *sentences,
        *load_gathered(data, seed=seed).train,
        *claim_rows(claims, count=CLAIM_ROWS, seed=seed),
        *load_tekgen(data, seed=seed).train,
        *load_dart(data, seed=seed).train,
        *graph_rows(graph, rows=GRAPH_ROWS, seed=seed, split="train"),
        *caqa_rows(graph, rows=CAQA_ROWS, seed=seed, split="train"),
        *relation_rows(data, rows=RELATION_ROWS, seed=seed),
        *statement_rows(plain, "statements", seed=seed),
        *statement_rows(hard, "hard", seed=seed),
        *other_evidence_rows(hard, "other_evidence", seed=seed),
        *statement_rows(close_wording(chain(sets, tables), seed=seed), "close_wording", seed=seed),
        *set_rows(dart_sets(data)[0], "dart_sets", seed=seed),
    ]
    return [row for row in rows if row.source in sources]


def _one_of_each_set(statements: Sequence[Statement]) -> list[Statement]:
    """The first statement of each evidence set."""
    return list({statement.group: statement for statement in reversed(statements)}.values())[::-1]
