"""The judge as a PyTorch model: a MiniLM cross-encoder with one small head per question.

The encoder is BERT as published, written out in plain operators: on a CPU they train about twice
as fast as the fused attention kernel and torch's dropout.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from judges.heads import HEADS, TOKEN_HEADS

__all__ = ["SEGMENTS", "CrossEncoder", "EncoderConfig", "MaskBank"]

SEGMENTS = 3
"""Evidence, hypothesis, context."""


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """Sizes of the encoder; the defaults are all-MiniLM-L6-v2's."""

    vocab_size: int = 30_522
    hidden_size: int = 384
    layers: int = 6
    attention_heads: int = 12
    intermediate_size: int = 1_536
    positions: int = 512
    layer_norm_eps: float = 1e-12
    dropout: float = 0.1


class MaskBank(nn.Module):
    """Dropout that cuts its masks from a bank drawn once, since drawing them costs a CPU dearly.

    Args:
        share: Share of units dropped.
        size: Least numbers in the bank; each call reads a window at a random place.
        seed: Seed of the bank and of the places.
    """

    def __init__(self, share: float, *, size: int = 1 << 23, seed: int = 0) -> None:
        super().__init__()
        self.share = share
        self.size = size
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Start the masks anew."""
        self._seed = seed
        self._places = random.Random(seed)
        self._bank: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Drop units of x while training; any shape."""
        if not self.training or self.share == 0.0:
            return x
        count = x.numel()
        bank = self._bank
        if bank is None or bank.dtype != x.dtype or bank.numel() < 2 * count:
            drawn = torch.rand(
                max(self.size, 2 * count), generator=torch.Generator().manual_seed(self._seed)
            )
            bank = ((drawn >= self.share) / (1.0 - self.share)).to(x.device, x.dtype)
            self._bank = bank
        start = self._places.randrange(bank.numel() - count)
        return x * bank[start : start + count].view(x.shape)


class _Layer(nn.Module):
    """One transformer layer, normalised after each residual sum as in BERT."""

    def __init__(self, config: EncoderConfig, dropout: MaskBank) -> None:
        super().__init__()
        hidden = config.hidden_size
        self.heads = config.attention_heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.attention_out = nn.Linear(hidden, hidden)
        self.attention_norm = nn.LayerNorm(hidden, eps=config.layer_norm_eps)
        self.up = nn.Linear(hidden, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=config.layer_norm_eps)
        self.dropout = dropout

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """Map states [n, l, h] under an additive attention bias [n, 1, 1, l]."""
        n, length, hidden = x.shape
        width = hidden // self.heads
        qkv = self.qkv(x).view(n, length, 3, self.heads, width).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        # Written out: at these lengths the CPU's fused kernel takes twice the time backward.
        scores = torch.matmul(q * width**-0.5, k.transpose(-1, -2)) + bias
        mixed = torch.matmul(functional.softmax(scores, -1), v)
        mixed = mixed.transpose(1, 2).reshape(n, length, hidden)
        x = self.attention_norm(x + self.dropout(self.attention_out(mixed)))
        inner = self.down(functional.gelu(self.up(x)))
        normed: Tensor = self.output_norm(x + self.dropout(inner))
        return normed


APART = -1e4
"""Added to the scores of padding."""


class CrossEncoder(nn.Module):
    """Reads evidence, a hypothesis and its context as one sequence and answers what heads ask.

    Args:
        config: Sizes of the encoder.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        hidden = config.hidden_size
        self.words = nn.Embedding(config.vocab_size, hidden, padding_idx=0)
        self.positions = nn.Embedding(config.positions, hidden)
        self.segments = nn.Embedding(SEGMENTS, hidden)
        self.embedding_norm = nn.LayerNorm(hidden, eps=config.layer_norm_eps)
        self.dropout = MaskBank(config.dropout)
        self.layers = nn.ModuleList(_Layer(config, self.dropout) for _ in range(config.layers))
        self.heads = nn.ModuleDict(
            {
                name: nn.Sequential(
                    nn.Linear(2 * hidden, hidden),
                    nn.Tanh(),
                    MaskBank(config.dropout, size=1 << 20),
                    nn.Linear(hidden, len(labels)),
                )
                for name, labels in HEADS.items()
            }
        )
        self.tokens = nn.ModuleDict(
            {name: nn.Linear(hidden, len(labels)) for name, labels in TOKEN_HEADS.items()}
        )

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor
    ) -> dict[str, Tensor]:
        """Score n pairs.

        Args:
            input_ids: Word-piece ids, int64 [n, l].
            attention_mask: 1 for tokens and 0 for padding, int64 [n, l].
            token_type_ids: 0 for the evidence, 1 for the hypothesis and 2 for its context,
                int64 [n, l].

        Returns:
            Raw logits by head: [n, labels] of ``HEADS``, [n, l, labels] of ``TOKEN_HEADS``.
        """
        place = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.words(input_ids) + self.positions(place) + self.segments(token_type_ids)
        x = self.dropout(self.embedding_norm(x))
        keep = attention_mask.to(x.dtype)
        bias = ((1.0 - keep) * APART)[:, None, None, :]
        for layer in self.layers:
            x = layer(x, bias)
        mean = (x * keep[:, :, None]).sum(1) / keep.sum(1, keepdim=True)
        pooled = torch.cat([x[:, 0], mean], dim=-1)
        logits = {name: self.heads[name](pooled) for name in HEADS}
        return logits | {name: self.tokens[name](x) for name in TOKEN_HEADS}
