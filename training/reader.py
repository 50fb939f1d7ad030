"""The judge as a PyTorch model that reads evidence once: windows apart, sentences upon them.

A window of evidence attends to itself alone, so that its keys and values can be kept. A sentence,
with the context it needs, attends to the windows chosen for it and to itself, and to no other
sentence. DeFormer (arXiv 2005.00697) keeps the lower layers apart; here all are.

In training many windows and sentences stand in one sequence, kept apart by a mask; what a sentence
gets is the same as alone.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from judges.heads import HEADS, TOKEN_HEADS
from training.model import SEGMENTS, EncoderConfig, EncoderLayer, MaskBank, distance_buckets

__all__ = ["EvidenceReader", "Packed", "StatementHead"]

APART = -1e4
"""Added to the scores of tokens that must not see each other."""

STATEMENT_WIDTH = 128
"""Numbers in which a sentence and a statement are compared."""

ALIKE = 10.0
"""Scale of the cosine of their words, so that its weights are of the size of the others."""


class Packed(NamedTuple):
    """n sequences of l tokens, each with windows and sentences side by side.

    Attributes:
        ids: Word-piece ids, int64 [n, l].
        types: 0 for evidence, 1 for a sentence, 2 for its context, int64 [n, l].
        positions: Of a window from 0; of a sentence from the end of its longest window, int64
            [n, l].
        windows: Number of the token's window in its sequence, from 1; 0 for none, int64 [n, l].
        sentences: Number of the token's sentence, likewise, int64 [n, l].
        reads: Whether a sentence reads a window, bool [n, sentences + 1, windows + 1]; place 0 of
            both is never read.
        first: Place of the first token of each of k sentences in ``ids.flatten()``, int64 [k].
        own: Sequence and number of each sentence, int64 [k, 2].
        words: Places of the words that are asked about, int64 [w].
        tails: Places past the last own word of each of them, its context left out, int64 [k].
        marks: Places of the statements' marks that are asked about, int64 [p].
        ends: Places past their last words, int64 [p].
        asked_by: Which of the k sentences asks about a mark, int64 [p].
    """

    ids: Tensor
    types: Tensor
    positions: Tensor
    windows: Tensor
    sentences: Tensor
    reads: Tensor
    first: Tensor
    own: Tensor
    words: Tensor
    tails: Tensor
    marks: Tensor
    ends: Tensor
    asked_by: Tensor


class StatementHead(nn.Module):
    """Tells how a statement and a sentence bear on each other.

    It compares the states of the statement's mark and of the sentence's first token, and the
    cosine of what their words are before they are read: without the latter a mark that never saw
    the sentence learns slowly which words it shares with it.

    Args:
        hidden: Width of the states.
        width: Numbers in which they are compared.
        labels: Number of answers.
    """

    def __init__(self, hidden: int, width: int, labels: int) -> None:
        super().__init__()
        self.statement = nn.Linear(hidden, 2 * width)
        self.sentence = nn.Linear(hidden, 2 * width)
        self.words = nn.Linear(hidden, width, bias=False)
        self.out = nn.Linear(width + 1, labels)
        nn.init.orthogonal_(self.words.weight)

    def forward(self, statements: Tensor, sentences: Tensor, alike: Tensor) -> Tensor:
        """Logits [p, labels] of p pairs of states, [p, hidden] each, and cosines [p]."""
        added, times = self.statement(statements).chunk(2, -1)
        more, by = self.sentence(sentences).chunk(2, -1)
        inner = functional.gelu(added + more + times * by)
        logits: Tensor = self.out(torch.cat([inner, ALIKE * alike[:, None].to(inner.dtype)], -1))
        return logits

    def direction(self, embedded: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
        """Unit vectors [s, width] of the words of s stretches.

        Args:
            embedded: Word embeddings of all tokens, [tokens, hidden].
            starts: Places of the tokens before the first words, int64 [s].
            ends: Places past the last words, int64 [s].
        """
        total = embedded.cumsum(0)
        return functional.normalize(self.words(total[ends - 1] - total[starts]).float(), dim=-1)


class EvidenceReader(nn.Module):
    """Encodes windows of evidence and judges sentences upon them.

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
        self.layers = nn.ModuleList(
            EncoderLayer(config, self.dropout) for _ in range(config.layers)
        )
        if config.relative_buckets:
            self.distances = nn.Embedding(config.relative_buckets, config.attention_heads)
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
        self.tokens = nn.ModuleDict({"words": nn.Linear(hidden, len(TOKEN_HEADS["words"]))})
        self.statements = StatementHead(hidden, STATEMENT_WIDTH, len(TOKEN_HEADS["statements"]))

    def forward(self, packed: Packed) -> dict[str, Tensor]:
        """Judge k sentences.

        Args:
            packed: Windows and sentences.

        Returns:
            Raw logits: by name of ``HEADS`` [k, labels], ``words`` [w, 3], ``statements`` [p, 3].
        """
        embedded = self.words(packed.ids)
        x = embedded + self.positions(packed.positions) + self.segments(packed.types)
        x = self.dropout(self.embedding_norm(x))
        seen, mine = attention(packed, x.dtype)
        bias = ((1.0 - seen) * APART)[:, None]
        if self.config.relative_buckets:
            buckets = distance_buckets(packed.positions, self.config.relative_buckets)
            bias = bias + self.distances(buckets).permute(0, 3, 1, 2)
        for layer in self.layers:
            x = layer(x, bias)
        flat = x.reshape(-1, x.shape[-1])
        first = flat[packed.first]
        totals = torch.bmm(mine.transpose(1, 2), x) / mine.sum(1).clamp(min=1.0)[:, :, None]
        pooled = torch.cat([first, totals[packed.own[:, 0], packed.own[:, 1]]], -1)
        logits = {name: self.heads[name](pooled) for name in HEADS}
        told = embedded.reshape(flat.shape)
        stated = self.statements.direction(told, packed.marks, packed.ends)
        said = self.statements.direction(told, packed.first, packed.tails)
        asked_by = packed.asked_by
        alike = (stated * said[asked_by]).sum(-1)
        return logits | {
            "words": self.tokens["words"](flat[packed.words]),
            "statements": self.statements(flat[packed.marks], first[asked_by], alike),
        }


def attention(packed: Packed, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Which token sees which, [n, l, l], and which sentence each is of, [n, l, sentences + 1]."""
    windows = functional.one_hot(packed.windows, packed.reads.shape[2]).to(dtype)
    mine = functional.one_hot(packed.sentences, packed.reads.shape[1]).to(dtype)
    windows[:, :, 0] = 0.0
    mine[:, :, 0] = 0.0
    reads = torch.bmm(mine, packed.reads.to(dtype))
    seen = torch.bmm(windows + reads, windows.transpose(1, 2))
    return seen + torch.bmm(mine, mine.transpose(1, 2)), mine
