"""Trains the judge from a packed kit: ``python -m training run``. Needs torch and NumPy only.

It stops when its time is over, writes a checkpoint every ten minutes and continues from there with
``--resume``. The learning curve is a file of JSON lines.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.multiprocessing.spawn import start_processes

from training.kit import PAIRED, Item, Kit, drawn, read_kit, read_state, write_state
from training.window_model import WindowModel, pack

__all__ = ["Trainer", "auc", "evaluate", "run"]

SAVED_S, MEASURED_S = 600.0, 1_800.0
"""Seconds between two checkpoints, and between two points of the learning curve."""

WARM_UP = 50
"""Optimiser steps in which the rate rises."""

FLAT, LEAST = 0.5, 0.03
"""Share of the time at the full rate, and the rate at the end as a share of it."""

AVERAGED = 20
"""Steps after which processes side by side average their weights (Stich 2019, Local SGD)."""

CLIP = 1.0
"""Largest norm of a gradient."""

PART = 16_000
"""Most tokens of a forward pass."""

CONTRAST = 1.5
"""Weight of the contrast of counterfactual pairs by that of the labels of other sentences."""

ANY_LABEL = 0b1111
"""Labels that all count as right, and so teach nothing."""

HEAD_RATE = 3.0
"""Rate of the heads by that of the layers."""


def run(
    folder: Path,
    out: Path,
    *,
    device: str = "cpu",
    minutes: float,
    total: float | None = None,
    resume: bool = False,
    start: Path | None = None,
    rate: float = 6e-5,
    tokens: int = 2_400,
    freeze: int = 6,
    seed: int = 1,
    processes: int = 1,
) -> None:
    """Train for some minutes; the last point of the learning curve is measured on all sets.

    Args:
        folder: The kit.
        out: Where checkpoint, state and learning curve go.
        device: ``cpu`` or ``cuda``.
        minutes: Length of this slice.
        total: Minutes of all slices together, over which the rate falls; this slice by default.
        resume: Continue from ``out``.
        start: A checkpoint to start from, where ``out`` has none.
        rate: Peak learning rate of the layers.
        tokens: Tokens of a step of each process.
        freeze: Number of lower layers that keep their weights.
        seed: Seed of all choices.
        processes: Processes side by side, each on a core of its own, whose weights are averaged.
            On a CPU that is faster than as many threads.
    """

    def work(rank: int = 0) -> None:
        torch.manual_seed(seed + rank)
        kit = read_kit(folder)
        trainer = Trainer(kit, out, device=device, rate=rate, freeze=freeze, seed=seed + rank)
        if start is not None:
            trainer.model.load(kit.start, read_state(start))
        if resume:
            trainer.resume()
        trainer.run(minutes * 60, (total or minutes) * 60, tokens=tokens)
        if rank == 0:
            trainer.measure(None)

    if processes == 1:
        work()
        return
    with tempfile.NamedTemporaryFile() as meeting:
        start_processes(  # type: ignore[no-untyped-call]
            _beside, (processes, meeting.name, work), processes, start_method="fork"
        )


def _beside(rank: int, processes: int, meeting: str, work: Callable[[int], None]) -> None:
    """Do the work of one of several processes."""
    torch.set_num_threads(1)
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=processes
    )
    work(rank)
    distributed.destroy_process_group()


class Trainer:
    """Training of one network; see ``run``."""

    def __init__(
        self, kit: Kit, out: Path, *, device: str, rate: float, freeze: int, seed: int
    ) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self.kit, self.out, self.device, self.rate, self.seed = kit, out, device, rate, seed
        self.model = WindowModel(kit.sizes, freeze=freeze)
        self.model.load(kit.start)
        self.model.to(device)
        names = self.model.trained().keys()
        body: list[nn.Parameter] = []
        heads: list[nn.Parameter] = []
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(name in names)
            if name in names:
                (body if name.startswith("encoder") else heads).append(parameter)
        self.parameters = [*body, *heads]
        groups = [{"params": body, "lr": rate}, {"params": heads, "lr": HEAD_RATE * rate}]
        self.optimizer = torch.optim.AdamW(groups, weight_decay=0.01, betas=(0.9, 0.98), fused=True)
        self.step = self.sentences = self.tokens = 0
        self.seconds = 0.0

    def resume(self) -> None:
        """Continue from the last checkpoint; without one, start."""
        path = self.out / "state.pt"
        if not path.is_file():
            return
        state = torch.load(path, map_location=self.device, weights_only=True)
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.sentences = state["step"], state["sentences"]
        self.tokens, self.seconds = state["tokens"], state["seconds"]
        self.model.load(self.kit.start, read_state(self.out / "judge"))
        self.model.to(self.device)

    def save(self) -> None:
        """Write checkpoint and state; a run that is cut off loses at most what came after."""
        write_state(self.out / "judge", self.model.trained())
        state = {
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "sentences": self.sentences,
            "tokens": self.tokens,
            "seconds": self.seconds,
        }
        fresh = self.out / "state.pt.new"
        torch.save(state, fresh)
        fresh.replace(self.out / "state.pt")

    def run(self, length: float, total: float, *, tokens: int) -> None:
        """Train for ``length`` seconds of ``total``; of several processes, the first one writes."""
        first = not distributed.is_initialized() or distributed.get_rank() == 0
        before = self.seconds
        began = saved = measured = time.monotonic()
        chooser = random.Random(f"{self.seed}/{self.step}")
        items = drawn(self.kit.families, self.kit.shares, chooser=chooser)
        self.model.train()
        over = False
        while not over:
            now = time.monotonic()
            self.seconds = before + now - began
            if first and now - saved > SAVED_S:
                self.save()
                saved = now
            if first and now - measured > MEASURED_S:
                self.measure(20)
                measured = now
            loss = self.train(_batch(items, tokens), self.seconds / total)
            over = time.monotonic() - began >= length
            if distributed.is_initialized():
                over = self.step % AVERAGED == 0 and self._average(over)
            if first and self.step % 20 == 0:
                speed = self.tokens / max(1.0, self.seconds)
                print(
                    f"{self.seconds:.0f} s, step {self.step}, {self.sentences} sentences, "
                    f"loss {loss:.3f}, {speed:.0f} tokens/s",
                    flush=True,
                )
        self.seconds = before + time.monotonic() - began
        if first:
            self.save()

    @torch.no_grad()
    def _average(self, over: bool) -> bool:
        """Average the weights of all processes; gives whether one of them is ``over``."""
        values = torch.cat([*(p.flatten() for p in self.parameters), torch.tensor([float(over)])])
        distributed.all_reduce(values)
        sizes = [p.numel() for p in self.parameters]
        *means, flag = torch.split(values / distributed.get_world_size(), [*sizes, 1])
        for parameter, mean in zip(self.parameters, means, strict=True):
            parameter.copy_(mean.view_as(parameter))
        return bool(flag)

    def train(self, batch: Sequence[Item], passed: float) -> float:
        """One optimiser step; gives the mean loss of a sentence."""
        total = sum(len(item.claims) for item in batch)
        loss = 0.0
        self.optimizer.zero_grad(set_to_none=True)
        for part in _parts(batch):
            logits = self.logits(part)
            paired = {number for pair in _pairs(part) for number in pair}
            allowed = torch.tensor(
                [
                    ANY_LABEL if number in paired else label
                    for number, item in enumerate(part)
                    for label in item.labels
                ]
            )
            found = allowed_loss(logits, allowed.to(logits.device))
            found = (found + CONTRAST * contrast(logits, part)) / total
            found.backward()  # type: ignore[no-untyped-call]
            loss += found.item()
        scale = min(1.0, (self.step + 1) / WARM_UP)
        scale *= max(LEAST, 1 - max(0.0, passed - FLAT) / (1 - FLAT))
        for group, peak in zip(
            self.optimizer.param_groups, (self.rate, HEAD_RATE * self.rate), strict=True
        ):
            group["lr"] = peak * scale
        nn.utils.clip_grad_norm_(self.parameters, CLIP)
        self.optimizer.step()
        self.step += 1
        self.sentences += total
        self.tokens += sum(item.size for item in batch)
        return loss

    def logits(self, items: Sequence[Item]) -> Tensor:
        """Logits of the claims of some items, in 32 bits."""
        packed = pack([(item.windows, item.claims) for item in items], device=self.device)
        kind = torch.device(self.device).type
        with torch.autocast(kind, torch.bfloat16, enabled=_has_bfloat16(kind)):
            return self.model(packed).float()  # type: ignore[no-any-return]

    def measure(self, most: int | None) -> dict[str, float]:
        """Add a point to the learning curve.

        Args:
            most: Most evidence sets of a family; all by default.
        """
        self.model.eval()
        found = evaluate(self, self.kit.validation, most)
        self.model.train()
        point = {"seconds": round(self.seconds), "sentences": self.sentences, **found}
        with (self.out / "curve.jsonl").open("a", encoding="utf-8") as curve:
            curve.write(json.dumps(point) + "\n")
        print(json.dumps(point), flush=True)
        return found


def _has_bfloat16(device: str) -> bool:
    if device == "cuda":
        return True
    about = Path("/proc/cpuinfo")
    return about.is_file() and "avx512_bf16" in about.read_text("utf-8", "replace")


def allowed_loss(logits: Tensor, allowed: Tensor) -> Tensor:
    """Sum of the negative logarithms of the probability of all allowed labels.

    Args:
        logits: [claims, labels].
        allowed: Allowed labels of each claim, one bit each, [claims].
    """
    bits = (allowed[:, None] >> torch.arange(logits.shape[1], device=logits.device)) & 1
    masked = logits.log_softmax(-1).masked_fill(bits == 0, float("-inf"))
    return -masked.logsumexp(-1).sum()


def contrast(logits: Tensor, items: Sequence[Item]) -> Tensor:
    """Sum of the Bradley-Terry losses of the counterfactual pairs among some items.

    Args:
        logits: Of the claims of all items, [claims, labels].
        items: The items; those of a pair follow each other.
    """
    return nn.functional.softplus(-gaps(logits, items)).sum()


def gaps(logits: Tensor, items: Sequence[Item]) -> Tensor:
    """By how much a sentence has more support with the evidence of a pair that makes it right.

    Args:
        logits: Of the claims of all items, [claims, labels].
        items: The items; those of a pair follow each other.

    Returns:
        Difference of log odds of each sentence of all pairs, [sentences].
    """
    support = logits[:, [0, 3]].logsumexp(-1) - logits[:, [1, 2]].logsumexp(-1)
    parts = torch.split(support, [len(item.claims) for item in items])
    found = [logits.new_zeros(0)]
    for first, second in _pairs(items):
        labels = zip(items[first].labels, items[second].labels, strict=True)
        signs = torch.tensor([(one == 1) - (other == 1) for one, other in labels])
        found.append(signs.to(logits.device) * (parts[first] - parts[second]))
    return torch.cat(found)


def _pairs(items: Sequence[Item]) -> list[tuple[int, int]]:
    """Places of counterfactual pairs: neighbours with the same claims."""
    return [
        (first, first + 1)
        for first, (one, other) in enumerate(pairwise(items))
        if one.claims == other.claims
    ]


def _batch(groups: Iterator[Sequence[Item]], tokens: int) -> list[Item]:
    batch: list[Item] = []
    while sum(item.size for item in batch) < tokens:
        batch += next(groups)
    return batch


def _parts(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Cut items into parts whose activations fit into memory together."""
    part: list[Item] = []
    size = 0
    for item in items:
        if part and size + item.size > PART:
            yield part
            part, size = [], 0
        part.append(item)
        size += item.size
    if part:
        yield part


@torch.no_grad()
def evaluate(
    trainer: Trainer, validation: Mapping[str, Sequence[Item]], most: int | None
) -> dict[str, float]:
    """AUC of support and of contradiction by kind of evidence; accuracy where claims come alone.

    Of pairs, the share of sentences that have more support with the evidence that makes them right.
    """
    found: dict[str, float] = {}
    for name, all_items in validation.items():
        items = list(all_items)
        if name.startswith(PAIRED):
            both = [items[at : at + 2] for at in range(0, len(items), 2)][:most]
            preferred = torch.cat([gaps(trainer.logits(pair), pair) > 0 for pair in both])
            found[name] = round(preferred.float().mean().item(), 3)
            continue
        if most is not None and len(items) > most:
            items = random.Random(3).sample(items, most)
        rows: list[tuple[bool, int, list[float]]] = []
        for group in _parts(items):
            chances = trainer.logits(group).softmax(-1).tolist()
            known = [(item.triples, label) for item in group for label in item.labels]
            rows += [(*one, row) for one, row in zip(known, chances, strict=True)]
        if all(len(item.claims) == 1 for item in items):
            right = [_is_right(label, row) for _, label, row in rows]
            found[name] = round(sum(right) / max(1, len(right)), 3)
            continue
        for kind in (True, False):
            some = [(label, row) for triples, label, row in rows if triples is kind]
            true, false, against = (
                [row for label, row in some if label == wanted] for wanted in (1, 2, 4)
            )
            if true and false + against:
                title = f"{name} {'triples' if kind else 'passages'}"
                found[title] = auc([_support(r) for r in true], map(_support, false + against))
                if against:
                    pairs = ([row[2] for row in group] for group in (against, true))
                    found[f"{title} contradiction"] = auc(*pairs)
    return found


def _support(row: Sequence[float]) -> float:
    return row[0] + row[3]


def _is_right(allowed: int, row: Sequence[float]) -> bool:
    if allowed in (1, 2, 4):
        return 1 << max(range(3), key=lambda i: row[i]) == allowed
    return (row[0] >= 0.5) == bool(allowed & 1)


def auc(high: Sequence[float], low: Sequence[float] | Iterator[float]) -> float:
    """Probability that a value of the first is greater than one of the second; ties count half."""
    first, second = np.array(list(high))[:, None], np.array(list(low))[None]
    return round(float(((first > second) + 0.5 * (first == second)).mean()), 3)
