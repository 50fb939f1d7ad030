"""Data parallelism over CPU threads: one single-threaded replica of the model per core.

On a CPU shared with other work, one replica per core beats one model over all cores: threads
meet once per step instead of at every operator. On a GPU there is one replica.

Weights live twice: the optimiser holds them in 32 bits, the replicas share one copy in what the
processor multiplies fast, bfloat16 or 32 bits.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from judges.heads import HEADS, TOKEN_HEADS
from judges.training.batches import Batch
from judges.training.model import CrossEncoder, MaskBank
from judges.training.rows import NO_LABEL

__all__ = ["HEAD_WEIGHTS", "Replicas", "fast_precision", "losses"]


HEAD_WEIGHTS: Mapping[str, float] = {
    "nli": 1.0,
    "attribution": 0.7,
    "complexity": 0.1,
    "claim": 0.5,
    "words": 0.7,
    "statements": 0.7,
}
"""Weights of the heads' losses."""

RARE_TOKEN = 2.0
"""Weight of words that are not carried, and of statements that bear on a sentence, beside the
others, of which there are more."""


def losses(outputs: Mapping[str, Tensor], batch: Batch, *, soft: float = 0.0) -> dict[str, Tensor]:
    """Weighted sums of the heads' losses over a batch's rows.

    Args:
        outputs: Logits by head, as ``CrossEncoder`` gives them.
        batch: The targets.
        soft: Share of a teacher's probabilities in the loss, where the batch has them.
    """
    logits = {name: values.float() for name, values in outputs.items()}

    def one_label(name: str, targets: Tensor) -> Tensor:
        return functional.cross_entropy(
            logits[name], targets, ignore_index=NO_LABEL, reduction="none"
        )

    def one_of(name: str, allowed: Tensor) -> Tensor:
        """The negative logarithm of the probability given to the whole set of right labels."""
        inside = functional.log_softmax(logits[name], -1).masked_fill(~allowed, -torch.inf)
        taught = allowed.any(-1)
        of_set = -torch.logsumexp(torch.where(taught[:, None], inside, 0.0), -1)
        return torch.where(taught, of_set, 0.0)

    def tokens(name: str, targets: Tensor) -> Tensor:
        """Mean over a row's taught tokens."""
        weights = torch.tensor([1.0, RARE_TOKEN, RARE_TOKEN], device=targets.device)
        each = functional.cross_entropy(
            logits[name].transpose(1, 2), targets, weights, ignore_index=NO_LABEL, reduction="none"
        )
        return each.sum(-1) / (targets != NO_LABEL).sum(-1).clamp(min=1)

    taught = {
        "nli": one_of("nli", batch.nli),
        "attribution": one_of("attribution", batch.attribution),
        "complexity": one_label("complexity", batch.complexity),
        "claim": one_label("claim", batch.claim),
        "words": tokens("words", batch.words),
        "statements": tokens("statements", batch.statements),
    }
    if batch.soft_rows.shape[-1]:
        learnt = _soft_losses(logits, batch)
        taught = {name: (1 - soft) * taught[name] + soft * learnt[name] for name in taught}
    return {name: (loss * batch.weight).sum() for name, loss in taught.items()}


def _soft_losses(logits: Mapping[str, Tensor], batch: Batch) -> dict[str, Tensor]:
    """Cross-entropies against a teacher's probabilities, [n]; of tokens the mean."""
    sizes = [len(labels) for labels in HEADS.values()]
    wholes = dict(zip(HEADS, torch.split(batch.soft_rows, sizes, -1), strict=True))
    sizes = [len(labels) for labels in TOKEN_HEADS.values()]
    tokens = dict(zip(TOKEN_HEADS, torch.split(batch.soft_tokens, sizes, -1), strict=True))
    result = {
        name: -(soft * functional.log_softmax(logits[name], -1)).sum(-1)
        for name, soft in (wholes | tokens).items()
    }
    for name in TOKEN_HEADS:
        asked = (tokens[name].sum(-1) > 0.5).sum(-1).clamp(min=1)
        result[name] = result[name].sum(-1) / asked
    return result


class Replicas:
    """A model trained by several threads at once.

    Args:
        model: The model in 32 bits; its parameters are the ones the optimiser changes.
        count: Number of replicas; each reads its own micro-batch of a step.
        device: ``cpu`` or ``cuda``.
        soft: Share of a teacher's probabilities in the loss.
        precision: What the replicas compute in; by default what is fast on the device.
    """

    def __init__(
        self,
        model: CrossEncoder,
        *,
        count: int,
        device: str,
        soft: float = 0.0,
        precision: torch.dtype | None = None,
    ) -> None:
        self.model = model.to(device)
        self._soft = soft
        self._device = device
        first = copy.deepcopy(model).to(precision or fast_precision(device)).train()
        self._replicas = [first, *(copy.deepcopy(first) for _ in range(count - 1))]
        for replica in self._replicas[1:]:
            for ours, shared in zip(replica.parameters(), first.parameters(), strict=True):
                ours.data = shared.data
        for number, replica in enumerate(self._replicas):
            for part in replica.modules():
                if isinstance(part, MaskBank):
                    part.seed(number)
        self._threads = ThreadPoolExecutor(count, initializer=_single_threaded)

    @property
    def count(self) -> int:
        """Number of micro-batches a step takes."""
        return len(self._replicas)

    def backward(self, batches: Sequence[Batch]) -> dict[str, Tensor]:
        """Compute one step's gradients into the 32-bit model.

        Args:
            batches: At most one micro-batch per replica.

        Returns:
            Mean losses per weighted row by head, for the log.
        """
        total = float(sum(batch.weight.sum() for batch in batches))
        used = self._replicas[: len(batches)]
        sums = list(self._threads.map(lambda r, b: self._one(r, b, total), used, batches))
        masters = list(self.model.parameters())
        shared = zip(*(replica.parameters() for replica in self._replicas), strict=True)
        for master, copies in zip(masters, shared, strict=True):
            gradients = [p.grad for p in copies if p.grad is not None]
            if gradients:
                master.grad = gradients[0].float()
                for gradient in gradients[1:]:
                    master.grad.add_(gradient)
            for p in copies:
                p.grad = None
        return {
            name: torch.stack([item[name] for item in sums]).sum() / total for name in HEAD_WEIGHTS
        }

    @torch.no_grad()
    def refresh(self) -> None:
        """Copy the changed 32-bit weights to the replicas."""
        shared = self._replicas[0].parameters()
        for master, low in zip(self.model.parameters(), shared, strict=True):
            low.copy_(master)

    def _one(self, replica: CrossEncoder, batch: Batch, total: float) -> dict[str, Tensor]:
        batch = batch.to(self._device)
        outputs = replica(batch.input_ids, batch.attention_mask, batch.token_type_ids)
        parts = losses(outputs, batch, soft=self._soft)
        weighted = torch.stack([HEAD_WEIGHTS[name] * loss for name, loss in parts.items()])
        (weighted.sum() / total).backward()  # type: ignore[no-untyped-call]
        return {name: loss.detach() for name, loss in parts.items()}


def fast_precision(device: str) -> torch.dtype:
    """The precision that is fast: bfloat16 on a GPU and on processors that multiply it."""
    if device != "cpu":
        return torch.bfloat16
    try:
        flags = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return torch.float32
    native = "amx_bf16" in flags or "avx512_bf16" in flags
    return torch.bfloat16 if native else torch.float32


def _single_threaded() -> None:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
