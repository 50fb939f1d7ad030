"""Refits the intent head of a written encoder, without the trunk's PyTorch weights.

    python -m training.intent_head --data DIR [--encoder FOLDER] [--write]

The features are those that the ONNX file itself computes for its heads. The head is fitted on
NF-CATS and on its questions rewritten as requests (``training.requests``). The new and the current
head are compared by macro-F1 and accuracy on the validation questions, on the same questions
rewritten as requests, and on the requests of ``benchmarks/requests.jsonl``, which a person wrote.
``--write`` puts the new head into the file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from tokenizers import Tokenizer
from torch import nn

from training.encoder_data import INTENTS, IntentRow, load_intents
from training.encoder_export import BLOCK, _folded
from training.encoder_fit import Recipe, fit_intent
from training.encoder_metrics import classification, fit_temperature
from training.encoder_model import IntentHead
from training.requests import as_requests

__all__ = ["main", "read_requests", "with_head"]

SHIPPED = Path(__file__).parents[1] / "judges" / "weights" / "encoder"
REQUESTS = Path(__file__).parents[1] / "benchmarks" / "requests.jsonl"

HELD_OUT = 0.1
"""Share of the training rows that set the temperature."""

BATCH = 64

Floats = NDArray[np.float32]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="training.intent_head", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds intent/")
    parser.add_argument("--encoder", type=Path, default=SHIPPED, help="folder of the encoder")
    parser.add_argument("--write", action="store_true", help="put the new head into the folder")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    recipe = Recipe()
    model = onnx.load(str(options.encoder / "model.onnx"))
    features = _Features(model, options.encoder)
    rows = load_intents(options.data / "intent" / "nfcats_train.jsonl.gz")
    rows += as_requests(rows)
    valid = load_intents(options.data / "intent" / "nfcats_valid.jsonl.gz")
    tests = {
        "questions": valid,
        "rewritten": as_requests(valid, seed=1),
        "written": read_requests(REQUESTS),
    }
    read = features([row.question for row in rows])
    labels = np.array([row.intent for row in rows])
    order = np.random.default_rng(recipe.seed).permutation(len(rows))
    held, kept = np.split(order, [round(HELD_OUT * len(rows))])
    temperature = fit_temperature(
        _logits(fit_intent(read[kept], labels[kept].tolist(), recipe), read[held]), labels[held]
    )
    head = fit_intent(read, labels.tolist(), recipe)
    changed = with_head(model, head)
    metrics: dict[str, float] = {}
    for name, test in tests.items():
        texts, truth = [row.question for row in test], [row.intent for row in test]
        before = classification(truth, features.run("intent", texts).argmax(1).tolist())
        after = classification(
            truth, _Features(changed, options.encoder).run("intent", texts).argmax(1).tolist()
        )
        for metric in after:
            print(f"{name:10} {metric:32} before {before[metric]:.3f}  after {after[metric]:.3f}")
        metrics |= after if name == "questions" else {}
        metrics[f"intent_macro_f1_{name}"] = after["intent_macro_f1"]
        metrics[f"intent_accuracy_{name}"] = after["intent_accuracy"]
    if options.write:
        _write(options.encoder, changed, temperature, metrics)


def read_requests(path: Path) -> list[IntentRow]:
    """Read ``{question, category}`` lines."""
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return [IntentRow(row["question"], INTENTS.index(row["category"])) for row in rows]


def with_head(model: onnx.ModelProto, head: IntentHead) -> onnx.ModelProto:
    """A copy of an encoder with another intent head, for questions and for answers."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    constants = {constant.name: constant for constant in changed.graph.initializer}
    weight, bias = _folded(head, head.first)
    out, width = weight.shape
    blocks = weight.T.reshape(width // BLOCK, BLOCK, out)
    scales = np.maximum(np.abs(blocks).max(1, keepdims=True) / 127, 1e-12).astype(np.float32)
    for output in ("intent", "answer_intent"):
        last = _producer(changed, output)
        first = _producer(changed, _producer(changed, last.input[0]).input[0])
        reshape = _producer(changed, _producer(changed, first.input[0]).input[1])
        scaled = _producer(changed, reshape.input[0])
        for name, values in (
            (_producer(changed, scaled.input[0]).input[0], np.round(blocks / scales).astype("i1")),
            (scaled.input[1], scales),
            (first.input[1], bias),
            (last.input[1], _numbers(head.last.weight)),
            (last.input[2], _numbers(head.last.bias)),
        ):
            constants[name].CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), name))
    return changed


class _Features:
    """What the intent head of an ONNX encoder reads, and what the file makes of it."""

    def __init__(self, model: onnx.ModelProto, folder: Path) -> None:
        add = _producer(model, _producer(model, _producer(model, "intent").input[0]).input[0])
        self._source = _producer(model, add.input[0]).input[0]
        opened = onnx.ModelProto()
        opened.CopyFrom(model)
        opened.graph.output.append(onnx.ValueInfoProto(name=self._source))
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(opened.SerializeToString(), settings)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(Recipe().max_length)
        self._tokenizer.enable_padding()

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Features [n, 768]."""
        return self.run(self._source, texts)

    def run(self, output: str, texts: Sequence[str]) -> Floats:
        """One output for n texts, in batches of similar length."""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        rows: dict[int, Floats] = {}
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            found = self._tokenizer.encode_batch([texts[place] for place in chosen])
            ids = np.array([each.ids for each in found], np.int64)
            mask = np.array([each.attention_mask for each in found], np.int64)
            feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            rows |= zip(chosen, self._session.run([output], feed)[0], strict=True)
        return np.stack([rows[place] for place in range(len(texts))])


def _write(
    folder: Path, model: onnx.ModelProto, temperature: float, metrics: dict[str, float]
) -> None:
    onnx.save(model, str(folder / "model.onnx"))
    card = json.loads((folder / "encoder.json").read_text("utf-8"))
    card["version"] = str(int(card["version"]) + 1)
    card["temperature"]["intent"] = temperature
    card["metrics"] |= metrics
    (folder / "encoder.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    files = sorted(path for path in folder.iterdir() if path.suffix in (".onnx", ".json"))
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in files]
    (folder / "SHA256SUMS").write_text("\n".join(sums) + "\n")


def _producer(model: onnx.ModelProto, output: str) -> Any:
    return next(node for node in model.graph.node if output in node.output)


@torch.no_grad()
def _logits(head: nn.Module, features: Floats) -> Floats:
    logits: Floats = head(torch.tensor(features)).numpy()
    return logits


def _numbers(tensor: torch.Tensor) -> Floats:
    values: Floats = tensor.detach().float().numpy()
    return values


if __name__ == "__main__":
    main()
