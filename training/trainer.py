"""The training loop: warm-up, constant rate, decay; resumable."""

from __future__ import annotations

import itertools
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from training.model import MaskBank
from training.packing import Batch, batches, by_evidence, encode_groups, load_tokenizer
from training.plan import Plan
from training.reader import EvidenceReader
from training.rows import NO_LABEL, Row

__all__ = ["Place", "Trainer", "losses", "mixture"]

HEAD_WEIGHTS: Mapping[str, float] = {
    "nli": 1.0,
    "attribution": 0.5,
    "complexity": 0.1,
    "claim": 0.5,
    "words": 0.5,
    "statements": 0.5,
}
"""Weights of the heads' losses."""

RARE = 2.0
"""Weight of words that are not carried, and of statements that bear on a sentence, beside the
others, of which there are more."""

HEAD_RATE = 2.0
"""Learning rate of the heads as a multiple of the encoder's."""

WEIGHT_DECAY = 0.01
"""Decay of matrices."""

REPLICAS = 2
"""Threads that compute gradients on a CPU, one micro-batch each."""

LOG_EVERY = 20
"""Steps between lines of the log."""


def losses(logits: Mapping[str, Tensor], batch: Batch) -> dict[str, Tensor]:
    """Sums of the heads' losses over a batch's sentences."""
    rare = torch.tensor([1.0, RARE, RARE], device=batch.nli.device)

    def of_set(name: str, allowed: Tensor) -> Tensor:
        """The negative logarithm of the probability given to the whole set of right labels."""
        inside = functional.log_softmax(logits[name].float(), -1).masked_fill(~allowed, -1e9)
        return -torch.logsumexp(inside[allowed.any(-1)], -1).sum()

    def one(name: str, targets: Tensor) -> Tensor:
        return functional.cross_entropy(
            logits[name].float(), targets, ignore_index=NO_LABEL, reduction="sum"
        )

    def tokens(name: str, targets: Tensor, shares: Tensor) -> Tensor:
        each = functional.cross_entropy(logits[name].float(), targets, rare, reduction="none")
        return (each * shares).sum()

    return {
        "nli": of_set("nli", batch.nli),
        "attribution": of_set("attribution", batch.attribution),
        "complexity": one("complexity", batch.complexity),
        "claim": one("claim", batch.claim),
        "words": tokens("words", batch.words, batch.word_shares),
        "statements": tokens("statements", batch.statements, batch.statement_shares),
    }


class Place(NamedTuple):
    """How far a mixture was met: its round, and the batches of it that were met."""

    round: int = 0
    met: int = 0


class Trainer:
    """Trains a model; every step reads one micro-batch on each core.

    Args:
        model: The model, in 32 bits.
        plan: Steps and rates.
        folder: Where the checkpoint ``last.pt`` lies; a file ``stop`` put there starts the decay.
        device: ``cpu`` or ``cuda``.
    """

    def __init__(self, model: EvidenceReader, plan: Plan, folder: Path, *, device: str) -> None:
        self.model = model.to(device)
        self.step = 0
        self.place = Place()
        self._plan = plan
        self._folder = folder
        self._device = device
        self._halved = _multiplies_bfloat16(device)
        self._steps = plan.steps
        count = REPLICAS if device == "cpu" else 1
        self._replicas = [self.model.train(), *(_replica(model, n) for n in range(1, count))]
        self._threads = ThreadPoolExecutor(count, initializer=_single_threaded)
        self._optimizer = torch.optim.AdamW(
            _parameters(model, plan.rate), betas=(0.9, 0.98), eps=1e-6, fused=True
        )

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint, of this machine or another."""
        state = torch.load(path, map_location=self._device, weights_only=True)
        self.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.step, self.place = state["step"], Place(*state["place"])

    def run(self, stream: Iterator[tuple[Place, Batch]]) -> None:
        """Train to the end of the plan.

        Args:
            stream: As ``mixture`` gives it, from ``place`` on.
        """
        begun, tokens, saved = time.monotonic(), 0, time.monotonic()
        seen: dict[str, float] = defaultdict(float)
        while self.step < self._steps:
            end = self.step + self._plan.decay
            if (self._folder / "stop").exists() and end < self._steps:
                self._steps = end
            share = self._plan.rate_share(self.step, self._steps)
            for group in self._optimizer.param_groups:
                group["lr"] = group["peak"] * share
            met = list(itertools.islice(stream, len(self._replicas)))
            self.place = met[-1][0]
            some = [batch for _, batch in met]
            for name, value in self._backward(some).items():
                seen[name] += value / LOG_EVERY
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
            self.step += 1
            tokens += sum(int((batch.packed.ids != 0).sum()) for batch in some)
            if self.step % LOG_EVERY == 0:
                speed = tokens / (time.monotonic() - begun)
                means = " ".join(f"{name} {value:.3f}" for name, value in seen.items())
                print(
                    f"{time.strftime('%H:%M:%S')} step {self.step}/{self._steps} "
                    f"rate {share:.3f} {means} tokens/s {speed:.0f}",
                    flush=True,
                )
                seen.clear()
            if time.monotonic() - saved > self._plan.checkpoint_seconds or self.step >= self._steps:
                self._save()
                saved = time.monotonic()

    def _backward(self, some: Sequence[Batch]) -> dict[str, float]:
        total = float(sum(len(batch.claim) for batch in some))
        used = self._replicas[: len(some)]
        sums = list(self._threads.map(lambda r, b: self._one(r, b, total), used, some))
        for replica in self._replicas[1:]:
            for ours, master in zip(replica.parameters(), self.model.parameters(), strict=True):
                if ours.grad is not None:
                    master.grad = ours.grad if master.grad is None else master.grad.add_(ours.grad)
                ours.grad = None
        return {name: sum(item[name] for item in sums) / total for name in HEAD_WEIGHTS}

    def _one(self, model: EvidenceReader, batch: Batch, total: float) -> dict[str, float]:
        batch = batch.to(self._device)
        with torch.autocast(self._device, torch.bfloat16, enabled=self._halved):
            logits = model(batch.packed)
        parts = losses(logits, batch)
        loss = sum(HEAD_WEIGHTS[name] * value for name, value in parts.items())
        assert isinstance(loss, Tensor)
        (loss / total).backward()  # type: ignore[no-untyped-call]
        return {name: float(value.detach()) for name, value in parts.items()}

    def _save(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "step": self.step,
            "place": tuple(self.place),
        }
        part = self._folder / "last.part"
        torch.save(state, part)
        part.replace(self._folder / "last.pt")


def _multiplies_bfloat16(device: str) -> bool:
    """Whether a device has units for bfloat16: on a CPU with them training is twice as fast."""
    units = torch.cpu.get_capabilities()
    return device != "cpu" or any(units.get(name) for name in ("amx_bf16", "avx512_bf16"))


def _replica(model: EvidenceReader, number: int) -> EvidenceReader:
    """A copy that shares the model's parameters, with gradients and dropout of its own."""
    made = EvidenceReader(model.config).train()
    for ours, shared in zip(made.parameters(), model.parameters(), strict=True):
        ours.data = shared.data
    for part in made.modules():
        if isinstance(part, MaskBank):
            part.seed(number)
    return made


def _single_threaded() -> None:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def _parameters(model: EvidenceReader, rate: float) -> list[dict[str, object]]:
    """Parameter groups: heads learn faster, biases and norms do not decay."""
    groups: dict[tuple[bool, bool], list[torch.nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        head = name.startswith(("heads.", "tokens.", "statements."))
        groups.setdefault((head, parameter.ndim > 1), []).append(parameter)
    return [
        {
            "params": parameters,
            "peak": rate * (HEAD_RATE if head else 1.0),
            "weight_decay": WEIGHT_DECAY if matrix else 0.0,
        }
        for (head, matrix), parameters in groups.items()
    ]


def mixture(
    rows: Mapping[str, Sequence[Row]], tokenizer: Path, plan: Plan, place: Place
) -> Iterator[tuple[Place, Batch]]:
    """Batches without end: rounds over the mixture, each freshly shuffled.

    Args:
        rows: Rows by source; neighbours with the same evidence stay together.
        tokenizer: The ``tokenizer.json``.
        plan: Shares of the sources, tokens of a batch, and the seed.
        place: What was met already.
    """
    loaded = load_tokenizer(tokenizer)
    together = {source: by_evidence(rows.get(source, ())) for source in plan.shares}
    for number in itertools.count(place.round):
        chooser = random.Random(f"{plan.seed}/{number}")
        some: list[Sequence[Row]] = []
        for source, share in plan.shares.items():
            whole, all_of = int(share), together[source]
            some += all_of * whole
            some += chooser.sample(all_of, round((share - whole) * len(all_of)))
        chooser.shuffle(some)
        drawn = [group for each in some for group in encode_groups(loaded, each)]
        made = batches(drawn, tokens=plan.tokens, seed=chooser.randrange(2**31))
        skipped = place.met if number == place.round else 0
        for met, batch in enumerate(itertools.islice(made, skipped, None), skipped + 1):
            yield Place(number, met), batch
