"""Writes a checkpoint as the judge that ships: ``python -m training publish``.

The graph goes to 8 bits and is compared with the network in 32; probes are fitted on the 8-bit
graph, and ``training.calibration`` does the rest.
"""

from __future__ import annotations

import json
import random
import shutil
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from benchmarks.caqa.sources import assemble
from guardrail.core.types import Verdict
from judges.base import GroundingItem, Pair
from judges.evidence_judge import (
    PROBES,
    EvidenceJudge,
    Probe,
    statement_features,
    word_features,
    write_probes,
)
from judges.session import softmax, write_sums
from judges.window_reader import OnnxReader, canonical
from training.caqa_rows import caqa_rows
from training.export import measure_ranges, write_graph
from training.kit import Item, Kit, drawn, read_kit, read_state
from training.recipe import SEED, load_statements
from training.statements import Statement
from training.window_model import LABELS, WindowModel, pack

__all__ = ["Compared", "fit_probe", "publish"]

NAME = "mpnet-evidence-judge"
RANGED, COMPARED = 40, 24
"""Evidence sets that activations are measured on, and on which 8 bits are compared with 32."""
CLAIMS = 6
"""Most claims of each of them."""


class Compared(NamedTuple):
    """The 8-bit graph against the network in 32 bits.

    Attributes:
        claims: Number of claims.
        greatest: Greatest difference of a probability.
        mean: Mean difference of a probability.
        agreement: Share of claims with the same most likely label.
    """

    claims: int
    greatest: float
    mean: float
    agreement: float


def publish(
    checkpoint: Path,
    kit_folder: Path,
    out: Path,
    *,
    tokenizer: Path,
    version: str,
    data: Path | None = None,
    most: int = 2_000,
) -> Compared:
    """Write a judge's folder.

    Args:
        checkpoint: A file of ``torch.save``, or what ``training run`` wrote as ``OUT/judge``.
        kit_folder: The kit that it was trained from.
        out: The folder; replaced if it exists.
        tokenizer: The encoder's ``tokenizer.json``.
        version: Version of the weights.
        data: The data folder that probes are fitted on; None for a judge without probes, which
            has neither word scores nor statement scores nor attribution.
        most: Most sentences that each probe is fitted on.
    """
    kit = read_kit(kit_folder)
    model = WindowModel(kit.sizes)
    model.load(kit.start, read_state(checkpoint))
    model.eval()
    chooser = random.Random(SEED)
    fresh = out.with_name(f"{out.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    groups = drawn(kit.families, kit.shares, chooser=chooser, claims=CLAIMS)
    items = chain.from_iterable(groups)
    batches = (pack([(item.windows, item.claims)]) for item in islice(items, RANGED))
    write_graph(model, fresh, measure_ranges(model, batches))
    vocabulary = Tokenizer.from_file(str(tokenizer))
    vocabulary.no_truncation()
    vocabulary.no_padding()
    vocabulary.save(str(fresh / "tokenizer.json"), pretty=False)
    card = {
        "name": NAME,
        "version": version,
        "max_length": kit.sizes.max_position_embeddings - 2,
        "labels": {"verdict": LABELS},
    }
    _write_card(fresh, card)
    compared = compare(model, OnnxReader(fresh), _sample(kit, chooser))
    _write_card(fresh, {**card, "eight_bits": compared._asdict()})
    if data is not None:
        write_probes(fresh, fit_probes(EvidenceJudge(fresh), data, most=most))
    write_sums(fresh)
    shutil.rmtree(out, ignore_errors=True)
    fresh.rename(out)
    return compared


def _sample(kit: Kit, chooser: random.Random) -> list[Item]:
    items = [item for name in sorted(kit.validation) for item in kit.validation[name]]
    return [
        item._replace(claims=item.claims[:CLAIMS], labels=item.labels[:CLAIMS])
        for item in chooser.sample(items, min(len(items), COMPARED))
    ]


def _write_card(folder: Path, card: dict[str, Any]) -> None:
    (folder / "judge.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    write_sums(folder)


@torch.no_grad()
def compare(model: WindowModel, reader: OnnxReader, items: Sequence[Item]) -> Compared:
    """Compare the graph with the network that it was written from."""
    exact: list[NDArray[np.float64]] = []
    tasks = []
    for item in items:
        windows = canonical(item.windows)
        exact += list(model(pack([(windows, item.claims)])).double().softmax(-1).numpy())
        tasks += [(windows, claim) for claim in item.claims]
    found = softmax(np.stack([reading.labels for reading in reader.read(tasks)]))
    wanted = np.stack(exact)
    gap = np.abs(found - wanted)
    same = found.argmax(1) == wanted.argmax(1)
    return Compared(
        len(tasks), *(round(float(value), 4) for value in (gap.max(), gap.mean(), same.mean()))
    )


def fit_probes(judge: EvidenceJudge, data: Path, *, most: int) -> dict[str, Probe]:
    """Fit the small heads on training rows."""
    chooser = random.Random(SEED)
    sets: dict[str, list[Statement]] = defaultdict(list)
    for item in load_statements(data)[0]:
        if item.windows:
            sets[item.group].append(item)
    some: list[Statement] = []  # whole evidence sets: each is encoded once
    for group in chooser.sample(sorted(sets), len(sets)):
        if len(some) < most:
            some += sets[group]
    probes = fit_statement_probes(judge, some)
    rows = list(caqa_rows(assemble(data), rows=most, seed=SEED, split="train"))
    rows = chooser.sample(rows, min(len(rows), most))
    readings = judge.features([Pair(row.premise, row.hypothesis) for row in rows])
    for name in ("attribution", "complexity"):
        labelled = [
            (reading.features, row.attribution[0] if name == "attribution" else row.complexity)
            for row, reading in zip(rows, readings, strict=True)
            if reading is not None and len(row.attribution) == 1 and row.complexity >= 0
        ]
        features, labels = zip(*labelled, strict=True)
        probes[name] = fit_probe(np.stack(features), np.array(labels), PROBES[name])
    return probes


def fit_statement_probes(judge: EvidenceJudge, statements: Sequence[Statement]) -> dict[str, Probe]:
    """Fit the heads that say which statements carry or conflict, and which words lack support."""
    marks: list[NDArray[np.float32]] = []
    mark_labels: list[int] = []
    words: list[NDArray[np.float32]] = []
    word_labels: list[NDArray[np.int64]] = []
    items = [
        GroundingItem(
            one.statements,
            one.sentence,
            one.before,
            structured=one.triples,
            windows=one.windows,
        )
        for one in statements
    ]
    offsets = judge._model.offsets([one.sentence for one in statements])
    for one, (plan, readings), spans in zip(statements, judge.plan(items), offsets, strict=True):
        if len(readings) != 1 or one.verdict is Verdict.NO_CLAIM:
            continue
        problem = 2 if one.verdict is Verdict.CONTRADICTED else 1
        marks.append(statement_features(readings[0], list(plan.places.values())))
        cited = 2 if one.verdict is Verdict.CONTRADICTED else 1
        mark_labels += [cited if place in one.cited else 0 for place in plan.places]
        if one.verdict is Verdict.SUPPORTED or one.span is not None:
            first, last = one.span or (0, 0)
            inside = [first < end and start < last for start, end in spans]
            words.append(word_features(readings[0], plan.claims[0]))
            word_labels.append(np.where(inside, problem, 0)[: plan.claims[0].length])
    return {
        "statements": fit_probe(np.concatenate(marks), np.array(mark_labels), 3),
        "words": fit_probe(np.concatenate(words), np.concatenate(word_labels), 3),
    }


def fit_probe(
    features: NDArray[np.float32],
    labels: NDArray[np.int64],
    count: int,
    *,
    hidden: int = 64,
    epochs: int = 12,
) -> Probe:
    """Fit two layers by AdamW.

    Args:
        features: [n, features].
        labels: [n].
        count: Number of labels.
        hidden: Width between the layers.
        epochs: Passes over the rows.
    """
    torch.manual_seed(SEED)
    mean, scale = features.mean(0), features.std(0) + 1e-3
    inputs = torch.from_numpy((features - mean) / scale).float()
    wanted = torch.from_numpy(np.asarray(labels, np.int64))
    first, second = torch.nn.Linear(features.shape[1], hidden), torch.nn.Linear(hidden, count)
    network = torch.nn.Sequential(first, torch.nn.Tanh(), torch.nn.Dropout(0.2), second)
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=0.05)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(inputs)), 256):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(network(inputs[rows]), wanted[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    parts = (first.weight.T, first.bias, second.weight.T, second.bias)
    fitted = [part.detach().numpy().astype(np.float32) for part in parts]
    return Probe(mean.astype(np.float32), scale.astype(np.float32), *fitted)
