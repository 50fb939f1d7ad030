"""The training loop: warm-up, constant rate, decay; averaged weights; resumable."""

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
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from guardrail.core.errors import InputError
from training.batches import LONGEST, Batch, batches, encode_rows
from training.model import CrossEncoder, MaskBank
from training.plan import Plan
from training.rows import NO_LABEL, Row

__all__ = ["Place", "Trainer", "losses", "mixture"]

HEAD_WEIGHTS: Mapping[str, float] = {
    "nli": 1.0,
    "attribution": 0.7,
    "complexity": 0.1,
    "claim": 0.5,
    "words": 0.7,
    "statements": 0.7,
}
"""Weights of the heads' losses."""

RARE = 2.0
"""Weight of words that are not carried, and of statements that bear on a sentence, beside the
others, of which there are more."""

HEAD_RATE = 2.0
"""Learning rate of the heads as a multiple of the encoder's."""

WEIGHT_DECAY = 0.01
"""Decay of matrices."""

AVERAGING = 0.98
"""Share of the averaged weights that is kept each time new ones are taken in."""

AVERAGE_EVERY = 5
"""Steps between those times."""

REPLICAS = 2
"""Threads that compute gradients on a CPU, one micro-batch each."""

WIDE = 256
"""Least width of a model in bfloat16: what narrower ones win is lost on conversions."""

LOG_EVERY = 20
"""Steps between lines of the log."""

SORTED_ROWS = 2_000
"""Rows that are sorted by length together, so that batches stay random."""


def losses(logits: Mapping[str, Tensor], batch: Batch) -> dict[str, Tensor]:
    """Sums of the heads' losses over a batch's rows."""
    rare = torch.tensor([1.0, RARE, RARE], device=batch.nli.device)

    def of_set(name: str, allowed: Tensor) -> Tensor:
        """The negative logarithm of the probability given to the whole set of right labels."""
        inside = functional.log_softmax(logits[name].float(), -1).masked_fill(~allowed, -1e9)
        return -torch.logsumexp(inside[allowed.any(-1)], -1).sum()

    def one(name: str, targets: Tensor) -> Tensor:
        return functional.cross_entropy(
            logits[name].float(), targets, ignore_index=NO_LABEL, reduction="sum"
        )

    def tokens(name: str, targets: Tensor) -> Tensor:
        """Of each row the mean over its taught tokens."""
        each = functional.cross_entropy(
            logits[name].float().transpose(1, 2),
            targets,
            rare,
            ignore_index=NO_LABEL,
            reduction="none",
        )
        return (each.sum(-1) / (targets != NO_LABEL).sum(-1).clamp(min=1)).sum()

    return {
        "nli": of_set("nli", batch.nli),
        "attribution": of_set("attribution", batch.attribution),
        "complexity": one("complexity", batch.complexity),
        "claim": one("claim", batch.claim),
        "words": tokens("words", batch.words),
        "statements": tokens("statements", batch.statements),
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

    def __init__(self, model: CrossEncoder, plan: Plan, folder: Path, *, device: str) -> None:
        self.model = model.to(device)
        self.step = 0
        self.place = Place()
        self.average = {k: v.detach().clone() for k, v in model.named_parameters()}
        self._plan = plan
        self._folder = folder
        self._device = device
        self._halved = model.config.hidden_size >= WIDE and _multiplies_bfloat16(device)
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
        self.average = state["average"]
        peaks = [group["peak"] for group in self._optimizer.param_groups]
        self._optimizer.load_state_dict(state["optimizer"])
        for group, peak in zip(self._optimizer.param_groups, peaks, strict=True):
            group["peak"] = peak  # the plan's, which may have changed
        self.step, self.place = state["step"], Place(*state["place"])

    def run(self, stream: Iterator[tuple[Place, Batch]]) -> None:
        """Train to the end of the plan; the result is ``average``.

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
            if self.step % AVERAGE_EVERY == 0:
                self._take_average()
            tokens += sum(int(batch.attention_mask.sum()) for batch in some)
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

    def _one(self, model: CrossEncoder, batch: Batch, total: float) -> dict[str, float]:
        batch = batch.to(self._device)
        with torch.autocast(self._device, torch.bfloat16, enabled=self._halved):
            logits = model(batch.input_ids, batch.attention_mask, batch.token_type_ids)
        parts = losses(logits, batch)
        loss = sum(HEAD_WEIGHTS[name] * value for name, value in parts.items())
        assert isinstance(loss, Tensor)
        (loss / total).backward()  # type: ignore[no-untyped-call]
        return {name: float(value.detach()) for name, value in parts.items()}

    @torch.no_grad()
    def _take_average(self) -> None:
        # A short memory at first, so that the average leaves the untrained weights quickly.
        kept = min(AVERAGING, self.step / (self.step + 50))
        for name, parameter in self.model.named_parameters():
            self.average[name].lerp_(parameter, 1.0 - kept)

    def _save(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "average": self.average,
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


def _replica(model: CrossEncoder, number: int) -> CrossEncoder:
    """A copy that shares the model's parameters, with gradients and dropout of its own."""
    made = CrossEncoder(model.config).train()
    for ours, shared in zip(made.parameters(), model.parameters(), strict=True):
        ours.data = shared.data
    for part in made.modules():
        if isinstance(part, MaskBank):
            part.seed(number)
    return made


def _single_threaded() -> None:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def _parameters(model: CrossEncoder, rate: float) -> list[dict[str, object]]:
    """Parameter groups: heads learn faster, biases and norms do not decay."""
    groups: dict[tuple[bool, bool], list[torch.nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        head = name.startswith(("heads.", "tokens."))
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
    rows: Mapping[str, Sequence[Row]],
    tokenizer: Tokenizer,
    plan: Plan,
    place: Place,
    *,
    longest: int = LONGEST,
) -> Iterator[tuple[Place, Batch]]:
    """Batches without end: rounds over the mixture, each freshly shuffled.

    Args:
        rows: Rows by source.
        tokenizer: As ``load_tokenizer`` gives it.
        plan: Shares of the sources, tokens of a batch, and the seed.
        place: What was met already.
        longest: Most word pieces of a sequence.

    Raises:
        InputError: No source of the plan has rows.
    """
    for number in itertools.count(place.round):
        chooser = random.Random(f"{plan.seed}/{number}")
        drawn: list[Row] = []
        for source, share in plan.shares.items():
            whole, all_of = int(share), rows.get(source, ())
            drawn += [*all_of] * whole
            drawn += chooser.sample(all_of, round((share - whole) * len(all_of)))
        if not drawn:
            raise InputError(
                f"there are no rows of {', '.join(plan.shares) or 'any source'} to read"
            )
        chooser.shuffle(drawn)
        skipped = place.met if number == place.round else 0
        made = _batches(drawn, tokenizer, plan.tokens, longest, chooser)
        for met, batch in enumerate(itertools.islice(made, skipped, None), skipped + 1):
            yield Place(number, met), batch


def _batches(
    rows: Sequence[Row], tokenizer: Tokenizer, tokens: int, longest: int, chooser: random.Random
) -> Iterator[Batch]:
    """Batches of some rows after the others, so that few rows are encoded at a time."""
    for first in range(0, len(rows), SORTED_ROWS):
        encoded = encode_rows(tokenizer, rows[first : first + SORTED_ROWS], longest)
        yield from batches(encoded, tokens=tokens, seed=chooser.randrange(2**31))
