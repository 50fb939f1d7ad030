"""Fits the attribution head anew on an encoder that stays as it is, over facts and over prose.

``python -m judges.training.head --judge DIR --data DIR --out OUT``

The encoder learnt the categories from rows built on graphs; prose as people cite it is longer and
says less. Passages around claims that the encoder never saw teach its head to read such evidence;
the NLI and complexity heads keep every bit.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from guardrail.benchmarks.caqa.sources import assemble
from judges.base import AttributionItem
from judges.heads import HEADS
from judges.onnx import SHIPPED, SPECIAL_TOKENS, OnnxJudge
from judges.optimise import with_pooled
from judges.relation import POOLED, RelationHead
from judges.session import OnnxTextModel, Segments
from judges.training.artefact import write_model
from judges.training.calibrate import fit_temperature
from judges.training.caqa_rows import caqa_rows
from judges.training.data import load_nli
from judges.training.graph_pairs import graph_rows
from judges.training.model import CrossEncoder, load_judge
from judges.training.passage_pairs import passage_rows
from judges.training.rows import Row, held_out
from judges.training.sentence_pairs import load_dart, load_tekgen

__all__ = ["Taught", "features", "fit_head", "load_head_rows", "main", "write_head"]

PROSE = frozenset({"vitaminc_real", "vitaminc_synthetic", "fever", "snli_dev", "mnli_dev_matched"})
CAPTION_SHARE = 0.3
"""Share of SNLI's premises among the passages: captions are unlike what people cite."""
DEVELOP_SHARE = 0.3
"""Share of the premises no encoder was trained on that the head is measured on."""
QUESTION_WORDS = 60
ROWS = {
    "passages": 5_000,
    "passages_seen": 2_500,
    "passages_develop": 1_600,
    "claims": 4_000,
    "caqa": 2_500,
    "caqa_valid": 2_000,
    "graph": 1_000,
    "dart": 1_000,
    "tekgen": 1_000,
}
WEIGHTS = {"passages_seen": 0.5, "graph": 0.5, "dart": 0.5, "tekgen": 0.5}
"""Weight of a source's rows in the loss where it is not 1."""
MEASURED = ("passages_develop", "caqa_valid")
EPOCHS = 12
RATE = 2e-3
BATCH = 128
WARM_UP = 50
LEAST_RATE = 0.02
DROPOUT = 0.2
WEIGHT_DECAY = 0.02
CHUNK = 1_000


class Taught(NamedTuple):
    """What one source teaches: features [n, 2 h], categories that count as right [n, 4]."""

    features: NDArray[np.float32]
    allowed: NDArray[np.bool_]


def load_head_rows(data: Path, *, seed: int) -> dict[str, list[Row]]:
    """Rows by source; those of ``MEASURED`` share no premise or entity with the others.

    Args:
        data: The data folder, with ``nli/``, ``triples/``, ``kg/`` and ``intent/``.
        seed: Seed of all choices.
    """
    rng = random.Random(f"{seed}/head")
    nli = load_nli(data)
    unseen = [row for row in nli.validation if row.source in PROSE]
    develop = [row for row in unseen if held_out(row.premise, DEVELOP_SHARE, salt="dev")]
    rest = [row for row in unseen if not held_out(row.premise, DEVELOP_SHARE, salt="dev")]
    seen = [row for row in nli.train if row.source in PROSE]
    asked = _questions(data)
    graph = assemble(data)

    def passages(name: str, rows: Sequence[Row], seed: int) -> list[Row]:
        kept = [r for r in rows if r.source != "snli_dev" or rng.random() < CAPTION_SHARE]
        return passage_rows(kept, count=ROWS[name], seed=seed, source=name, asked=asked)

    return {
        "passages": passages("passages", rest, seed),
        "passages_seen": passages("passages_seen", seen, seed + 1),
        "passages_develop": passages("passages_develop", develop, seed + 2),
        "claims": rng.sample(rest, ROWS["claims"]),
        "caqa": caqa_rows(graph, rows=ROWS["caqa"], seed=seed, split="train"),
        "caqa_valid": caqa_rows(graph, rows=ROWS["caqa_valid"], seed=seed, split="valid"),
        "graph": graph_rows(graph, rows=ROWS["graph"], seed=seed, split="train"),
        "dart": rng.sample(load_dart(data, seed=seed).train, ROWS["dart"]),
        "tekgen": rng.sample(load_tekgen(data, seed=seed).train, ROWS["tekgen"]),
    }


def features(judge: Path, rows: Sequence[Row], folder: Path) -> Taught:
    """What the heads of a judge are given for rows, in eight bits as at run time.

    Args:
        judge: Folder of the judge.
        rows: Rows that teach the attribution head; of long evidence is read what the judge reads.
        folder: Where a copy of the judge that gives its features goes.
    """
    reader = OnnxJudge(judge)
    rows = [row for row in rows if row.attribution]
    items = [AttributionItem("", row.hypothesis, (row.premise,)) for row in rows]
    model = OnnxTextModel(_giving_pooled(judge, folder))
    longest = reader.card.max_length - SPECIAL_TOKENS
    parts = []
    for start in range(0, len(items), CHUNK):
        texts = []
        for item in reader.read(items[start : start + CHUNK]):
            texts += [" ".join(item.evidence), item.answer]
        ids = model.tokenize(texts)
        pairs = [
            Segments(ids[i][: longest - len(second)], second)
            for i in range(0, len(ids), 2)
            for second in [ids[i + 1][: longest // 2]]
        ]
        parts.append(model.run(pairs)[POOLED])
    allowed = np.zeros((len(rows), len(HEADS["attribution"])), bool)
    for place, row in enumerate(rows):
        allowed[place, list(row.attribution)] = True
    return Taught(np.concatenate(parts), allowed)


def fit_head(
    model: CrossEncoder,
    taught: Mapping[str, Taught],
    *,
    epochs: int = EPOCHS,
    batch: int = BATCH,
    seed: int = 0,
) -> None:
    """Go on training a model's attribution head, and nothing else.

    Args:
        model: The judge; changed in place.
        taught: What each source teaches.
        epochs: Passes over all rows.
        batch: Rows of a step.
        seed: Seed of order and dropout.
    """
    torch.manual_seed(seed)
    inner, tanh, _, outer = model.heads["attribution"].children()
    trained = nn.Sequential(inner, tanh, nn.Dropout(DROPOUT), outer)
    given = torch.from_numpy(np.concatenate([one.features for one in taught.values()]))
    allowed = torch.from_numpy(np.concatenate([one.allowed for one in taught.values()]))
    weight = torch.cat(
        [torch.full((len(one.allowed),), WEIGHTS.get(name, 1.0)) for name, one in taught.items()]
    )
    optimizer = torch.optim.AdamW(trained.parameters(), lr=RATE, weight_decay=WEIGHT_DECAY)
    steps = epochs * (len(given) // batch)
    step = 0
    trained.train()
    for _ in range(epochs):
        order = torch.randperm(len(given))
        for start in range(0, len(given) - batch + 1, batch):
            chosen = order[start : start + batch]
            step += 1
            share = min(1.0, step / WARM_UP) * max(LEAST_RATE, 1.0 - step / steps)
            for group in optimizer.param_groups:
                group["lr"] = RATE * share
            losses = _losses(trained(given[chosen]), allowed[chosen])
            optimizer.zero_grad()
            (losses * weight[chosen]).mean().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    trained.eval()


def write_head(
    model: CrossEncoder, judge: Path, out: Path, *, version: str, temperature: float
) -> None:
    """Write the judge with its new head, beside its tokenizer and description.

    Args:
        model: The judge with its new head.
        judge: The folder it was read from.
        out: Where it goes; made when missing.
        version: Version of the new weights, so that old scores are not taken for new ones.
        temperature: Of the new head.
    """
    out.mkdir(parents=True, exist_ok=True)
    write_model(model, out / "model.onnx")
    shutil.copy(judge / "tokenizer.json", out / "tokenizer.json")
    card = json.loads((judge / "judge.json").read_text("utf-8"))
    card["version"] = version
    card["temperature"] = {**card.get("temperature", {}), "attribution": round(temperature, 4)}
    kept = {k: v for k, v in card.get("metrics", {}).items() if not k.startswith("attribution/")}
    card["metrics"] = kept
    (out / "judge.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    relation = RelationHead.load(judge)
    if relation is not None:  # it reads the encoder, which has not changed
        relation.save(out)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, write and measure."""
    parser = argparse.ArgumentParser(prog="python -m judges.training.head", description=__doc__)
    parser.add_argument("--judge", type=Path, default=SHIPPED, help="folder of the judge")
    parser.add_argument("--data", type=Path, required=True, help="the data folder")
    parser.add_argument("--out", type=Path, required=True, help="where the judge is written")
    parser.add_argument("--version", required=True, help="version of the new weights")
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    taught = {}
    for name, rows in load_head_rows(options.data, seed=options.seed).items():
        kept = options.out / f"{name}.npz"
        if not kept.exists():
            np.savez(kept, **features(options.judge, rows, options.out / "features")._asdict())
            print(f"{name}: {len(rows)} rows read", flush=True)
        stored = np.load(kept)
        taught[name] = Taught(stored["features"], stored["allowed"])
    measured = {name: taught.pop(name) for name in MEASURED}
    model, _ = load_judge(options.judge)
    model.eval()
    before = {name: _logits(model, one) for name, one in measured.items()}
    fit_head(model, taught, seed=options.seed)
    after = {name: _logits(model, one) for name, one in measured.items()}
    temperature = fit_temperature(
        np.concatenate([*after.values()]),
        np.concatenate([one.allowed.argmax(-1) for one in measured.values()]),
        np.concatenate([np.full(len(one), 1 / len(one)) for one in after.values()]),
    )
    write_head(
        model,
        options.judge,
        options.out / "judge",
        version=options.version,
        temperature=temperature,
    )
    for name, one in measured.items():
        print(f"{name}: {_told(before[name], one)} before, {_told(after[name], one)} after")
    print(f"temperature {temperature:.4f}")


def _losses(logits: Tensor, allowed: Tensor) -> Tensor:
    """Negative logarithm of the probability given to the categories that count as right."""
    chances = torch.log_softmax(logits, -1).masked_fill(~allowed, -torch.inf)
    return -torch.logsumexp(chances, -1)


@torch.no_grad()
def _logits(model: CrossEncoder, one: Taught) -> NDArray[np.float32]:
    logits: NDArray[np.float32] = model.heads["attribution"](torch.from_numpy(one.features)).numpy()
    return logits


def _told(logits: NDArray[np.float32], one: Taught) -> str:
    """Accuracy and F1 by category."""
    said, right = logits.argmax(-1), one.allowed.argmax(-1)
    scores = [
        2 * ((said == k) & (right == k)).sum() / max(1, (said == k).sum() + (right == k).sum())
        for k in range(logits.shape[1])
    ]
    told = ", ".join(f"{score:.3f}" for score in scores)
    return f"accuracy {(said == right).mean():.3f}, F1 {told}"


def _questions(data: Path) -> list[str]:
    with gzip.open(data / "intent/nfcats_train.jsonl.gz", "rt", encoding="utf-8") as lines:
        asked = [str(json.loads(line)["question"]) for line in lines]
    return [question for question in asked if len(question.split()) < QUESTION_WORDS]


def _giving_pooled(judge: Path, folder: Path) -> Path:
    """A copy of a judge whose model also gives what its heads read."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("model.onnx", "tokenizer.json"):
        shutil.copy(judge / name, folder / name)
    with_pooled(folder / "model.onnx")
    return folder


if __name__ == "__main__":
    main()
