"""Fits the head that tells whether a sentence states a triple's own relation.

``python -m judges.training.relation_head --judge DIR --data DIR --out OUT``

The NLI head takes subject and value for most of a fact: it learnt from texts that state facts,
where nothing but the relation is seldom wrong. This head reads the same states of the same encoder,
and learns from pairs of which half differ in the relation alone. The other heads keep every bit.
"""

from __future__ import annotations

import argparse
import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from guardrail.benchmarks.caqa.sources import assemble
from judges.heads import HEADS
from judges.onnx import SHIPPED
from judges.optimise import with_pooled
from judges.relation import POOLED, RelationHead
from judges.session import OnnxTextModel, Segments
from judges.training.graph_pairs import graph_rows
from judges.training.relation_pairs import relation_rows
from judges.training.rows import Row
from judges.training.sentence_pairs import load_tekgen

__all__ = ["Told", "fit", "main", "pooled"]

ROWS = {"relation": 16_000, "tekgen": 14_000, "graph": 8_000}
VALIDATION = {"relation": 2_000, "tekgen": 3_000, "graph": 2_000}
PREMISE, HYPOTHESIS = 180, 70
"""Word pieces read of each text at most; few are longer."""
HIDDEN = 192
EPOCHS = 12
RATE = 2e-3
LEAST_RATE = 0.02
BATCH = 128
DROPOUT = 0.2
WEIGHT_DECAY = 0.02
CHUNK = 2_000

_ENTAILS = HEADS["nli"].index("entailment")


class Told(NamedTuple):
    """What one source teaches.

    Attributes:
        pooled: What the heads read of each pair, [n, 2 h].
        stated: Whether the sentence states the triple, [n].
    """

    pooled: NDArray[np.float32]
    stated: NDArray[np.bool_]


def load_rows(data: Path, *, seed: int) -> tuple[dict[str, list[Row]], dict[str, list[Row]]]:
    """Rows to train on and to measure on, by source.

    Args:
        data: The data folder, with ``triples/`` and ``kg/``.
        seed: Seed of all choices.
    """
    rng = random.Random(f"{seed}/relation head")
    tekgen = load_tekgen(data, seed=seed)
    graph = assemble(data)

    def facts(rows: int, split: Literal["train", "valid"]) -> list[Row]:
        found = graph_rows(graph, rows=rows, seed=seed, split=split)
        return [row for row in found if row.source == "graph_fact"]

    direct = [row for row in tekgen.train if row.source == "tekgen"]
    train = {
        "relation": relation_rows(data, rows=ROWS["relation"], seed=seed),
        "tekgen": rng.sample(direct, ROWS["tekgen"]),
        "graph": facts(ROWS["graph"], "train"),
    }
    validation = {
        "relation": relation_rows(data, rows=VALIDATION["relation"], seed=seed, unseen=True),
        "tekgen": rng.sample(tekgen.validation, VALIDATION["tekgen"]),
        "graph": facts(VALIDATION["graph"], "valid"),
    }
    return train, validation


def pooled(judge: Path, rows: Sequence[Row]) -> Told:
    """What the heads of a judge read of rows, in eight bits as at run time.

    Args:
        judge: Folder of a judge that gives what its heads read.
        rows: The rows.
    """
    model = OnnxTextModel(judge)
    parts = []
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        premises = model.tokenize([row.premise for row in chunk])
        hypotheses = model.tokenize([row.hypothesis for row in chunk])
        pairs = [
            Segments(one[:PREMISE], two[:HYPOTHESIS])
            for one, two in zip(premises, hypotheses, strict=True)
        ]
        parts.append(model.run(pairs)[POOLED])
    return Told(np.concatenate(parts), np.array([row.nli == _ENTAILS for row in rows]))


def fit(
    told: Mapping[str, Told], *, epochs: int = EPOCHS, batch: int = BATCH, seed: int = 0
) -> RelationHead:
    """Train a relation head.

    Args:
        told: What each source teaches.
        epochs: Passes over all rows.
        batch: Rows of a step.
        seed: Seed of initial weights, order and dropout.
    """
    torch.manual_seed(seed)
    given = torch.from_numpy(np.concatenate([one.pooled for one in told.values()]))
    wanted = torch.from_numpy(np.concatenate([one.stated for one in told.values()])).float()
    inner, outer = nn.Linear(given.shape[1], HIDDEN), nn.Linear(HIDDEN, 1)
    net = nn.Sequential(inner, nn.Tanh(), nn.Dropout(DROPOUT), outer)
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=WEIGHT_DECAY)
    steps = epochs * (len(given) // batch)
    step = 0
    for _ in range(epochs):
        order = torch.randperm(len(given))
        for start in range(0, len(given) - batch + 1, batch):
            chosen = order[start : start + batch]
            for group in optimizer.param_groups:
                group["lr"] = RATE * max(LEAST_RATE, 1.0 - step / steps)
            step += 1
            logits = net(given[chosen])[:, 0]
            loss = nn.functional.binary_cross_entropy_with_logits(logits, wanted[chosen])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    weights = (inner.weight, inner.bias, outer.weight[0], outer.bias)
    return RelationHead(*(one.detach().numpy() for one in weights))


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, write and measure."""
    parser = argparse.ArgumentParser(
        prog="python -m judges.training.relation_head", description=__doc__
    )
    parser.add_argument("--judge", type=Path, default=SHIPPED, help="folder of the judge")
    parser.add_argument("--data", type=Path, required=True, help="the data folder")
    parser.add_argument("--out", type=Path, required=True, help="where the judge is written")
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args(arguments)
    shutil.copytree(options.judge, options.out, dirs_exist_ok=True)
    with_pooled(options.out / "model.onnx")
    train, validation = load_rows(options.data, seed=options.seed)
    head = fit({name: pooled(options.out, rows) for name, rows in train.items()})
    head.save(options.out)
    print("| rows from | rows | stated, told so | not stated, taken for it |\n|---|--:|--:|--:|")
    for name, rows in validation.items():
        told = pooled(options.out, rows)
        said = head(told.pooled) >= 0.5
        right, wrong = said[told.stated].mean(), said[~told.stated].mean()
        print(f"| {name} | {len(rows):,} | {right:.3f} | {wrong:.3f} |")


if __name__ == "__main__":
    main()
