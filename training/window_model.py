"""The network of a judge that encodes evidence once, in plain PyTorch: MPNet with one head.

Windows of evidence never attend to each other; a claim attends to all windows and to itself. The
parameters have the names of Hugging Face's ``MPNetModel`` under ``encoder``, so that published
weights and checkpoints load as they are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from judges.window_reader import IDS, OFFSET, Claim

__all__ = ["LABELS", "Packed", "Sizes", "WindowModel", "bucket", "pack"]

LABELS = ("supported", "unsupported", "contradicted", "no_claim")
"""Labels of the head, in the order of its logits."""

MASKED = -1e4
"""Bias of attention to padding."""

PADDED, MOST_PADDED = 1.3, 2_000_000
"""Pairs of tokens that a group computes: at most this many times those it needs, and in all."""


class Sizes(NamedTuple):
    """Sizes of a network, by the names of Hugging Face's configuration."""

    vocab_size: int = 30_527
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3_072
    max_position_embeddings: int = 514
    relative_attention_num_buckets: int = 32
    layer_norm_eps: float = 1e-5

    @classmethod
    def read(cls, path: Path) -> Sizes:
        """Read a ``config.json``."""
        found = json.loads(path.read_text("utf-8"))
        return cls(**{name: found[name] for name in cls._fields if name in found})


class Packed(NamedTuple):
    """Evidence sets with their claims as one row of tokens, without padding.

    Attributes:
        ids: Token ids, [tokens].
        positions: Positions, from 0 in each window and from ``OFFSET`` in each claim, [tokens].
        evidence: True for tokens of windows, [tokens].
        groups: Segments of like length whose attention is computed together: the tokens that
            attend, [segments, q], and those that they attend to, [segments, k]; ``tokens`` pads.
        order: Place of each token among those of all groups, [tokens].
        spans: Of each claim: its first token, the first token of its sentence, and its end.
    """

    ids: Tensor
    positions: Tensor
    evidence: Tensor
    groups: list[tuple[Tensor, Tensor]]
    order: Tensor
    spans: list[tuple[int, int, int]]


def pack(
    sets: Sequence[tuple[Sequence[IDS], Sequence[Claim]]], *, device: str | torch.device = "cpu"
) -> Packed:
    """Pack windows and claims; the claims of all sets follow each other in ``spans``."""
    ids: list[int] = []
    positions: list[int] = []
    evidence: list[bool] = []
    spans: list[tuple[int, int, int]] = []
    segments: list[_Segment] = []
    for windows, claims in sets:
        seen: list[int] = []
        for window in windows:
            own = range(len(ids), len(ids) + len(window))
            ids += window
            positions += range(len(window))
            seen += own
            segments.append(_Segment(own, own))
        for claim in claims:
            own = range(len(ids), len(ids) + len(claim.ids))
            ids += claim.ids
            positions += range(OFFSET, OFFSET + len(claim.ids))
            spans.append((own.start, own.start + claim.start, own.stop))
            segments.append(_Segment(own, [*seen, *own]))
        evidence += [True] * len(seen) + [False] * (len(ids) - len(evidence) - len(seen))
    none = len(ids)
    groups = [
        (
            _table([one.queries for one in group], none).to(device),
            _table([one.keys for one in group], none).to(device),
        )
        for group in _groups(segments)
    ]
    places = torch.cat([queries.flatten() for queries, _ in groups])
    order = torch.empty(none + 1, dtype=torch.long, device=places.device)
    order[places] = torch.arange(len(places), device=places.device)
    return Packed(
        torch.tensor(ids).to(device),
        torch.tensor(positions).to(device),
        torch.tensor(evidence).to(device),
        groups,
        order[:none],
        spans,
    )


class _Segment(NamedTuple):
    queries: Sequence[int]
    keys: Sequence[int]

    @property
    def cost(self) -> int:
        return len(self.queries) * len(self.keys)


def _groups(segments: Sequence[_Segment]) -> list[list[_Segment]]:
    """Segments of like length together, so that little is spent on padding."""
    groups: list[list[_Segment]] = []
    cost = widest = 0
    for segment in sorted(segments, key=lambda one: (len(one.keys), len(one.queries))):
        width = max(widest, len(segment.queries))
        count = len(groups[-1]) + 1 if groups else 1
        padded = count * width * len(segment.keys)
        if groups and padded <= PADDED * (cost + segment.cost) and padded <= MOST_PADDED:
            groups[-1].append(segment)
            cost, widest = cost + segment.cost, width
        else:
            groups.append([segment])
            cost, widest = segment.cost, len(segment.queries)
    return groups


def _table(rows: Sequence[Sequence[int]], padding: int) -> Tensor:
    """Rows of different lengths as one tensor."""
    length = max(map(len, rows))
    return torch.tensor([[*row, *[padding] * (length - len(row))] for row in rows])


class WindowModel(nn.Module):
    """MPNet with a head over the first token of a claim and the mean of its sentence.

    Args:
        sizes: Sizes of the network.
        freeze: Number of lower layers that are not trained, with the embeddings.
    """

    def __init__(self, sizes: Sizes, *, freeze: int = 6) -> None:
        super().__init__()
        self.sizes, self.freeze = sizes, freeze
        width = sizes.hidden_size
        self.encoder = _Encoder(sizes)
        self.hidden = nn.Linear(2 * width, width)
        self.output = nn.Linear(width, len(LABELS))

    def forward(self, packed: Packed) -> Tensor:
        """Logits of the claims, [claims, labels]."""
        return self.head(self.features(self.states(packed), packed))

    def states(self, packed: Packed) -> Tensor:
        """Final states of all tokens, [tokens, width]."""
        frozen = self.freeze > 0 or not torch.is_grad_enabled()
        with torch.set_grad_enabled(not frozen):
            biases = self.encoder.encoder.biases(packed)
            states = self.encoder.embeddings(packed.ids, packed.positions)
            for layer in self.encoder.encoder.layer[: self.freeze]:
                states = layer(states, packed, biases)
        for layer in self.encoder.encoder.layer[self.freeze :]:
            states = layer(states, packed, biases)
        return states  # type: ignore[no-any-return]

    def features(self, states: Tensor, packed: Packed) -> Tensor:
        """What the head reads of each claim, [claims, 2 · width]."""
        return torch.stack(
            [
                torch.cat([states[first], states[start:end].mean(0)])
                for first, start, end in packed.spans
            ]
        )

    def head(self, features: Tensor) -> Tensor:
        """Logits from features."""
        return self.output(torch.tanh(self.hidden(features)))  # type: ignore[no-any-return]

    def trained(self) -> dict[str, Tensor]:
        """The parameters that training changes, in 16 bits: what a checkpoint holds."""
        frozen = (
            *(("encoder.embeddings", "encoder.encoder.relative") if self.freeze else ()),
            *(f"encoder.encoder.layer.{i}." for i in range(self.freeze)),
        )
        return {
            name: value.detach().cpu().half()
            for name, value in self.state_dict().items()
            if not name.startswith(frozen)
        }

    def load(self, *states: Mapping[str, Tensor]) -> None:
        """Load published weights and then checkpoints; later ones win.

        Raises:
            ValueError: A parameter of the encoder is missing in all of them.
        """
        found: dict[str, Tensor] = {}
        for state in states:
            found |= {_own_name(name): value.float() for name, value in state.items()}
        missing, _ = self.load_state_dict(found, strict=False)
        if lacking := [name for name in missing if name.startswith("encoder.")]:
            raise ValueError(f"no weights for {', '.join(lacking[:3])}")


def _own_name(name: str) -> str:
    """The name of a published weight in this network."""
    return name if name.startswith(("encoder.e", "hidden", "output")) else f"encoder.{name}"


def bucket(distance: Tensor, buckets: int, furthest: int = 128) -> Tensor:
    """MPNet's bucket of a distance from query to key (Raffel et al. 2020, 2.1)."""
    half = buckets // 2
    exact = half // 2
    size = distance.abs()
    scale = (half - exact) / math.log(furthest / exact)
    large = exact + (torch.log(size.clamp(min=1).float() / exact) * scale).long()
    near = torch.where(size < exact, size, large.clamp(max=half - 1))
    return near + (distance > 0) * half


class _Encoder(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.embeddings = _Embeddings(sizes)
        self.encoder = _Layers(sizes)


class _Embeddings(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(sizes.vocab_size, sizes.hidden_size)
        self.position_embeddings = nn.Embedding(sizes.max_position_embeddings, sizes.hidden_size)
        self.LayerNorm = nn.LayerNorm(sizes.hidden_size, eps=sizes.layer_norm_eps)

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        # MPNet's first two positions belong to padding.
        total = self.word_embeddings(ids) + self.position_embeddings(positions + 2)
        return self.LayerNorm(total)  # type: ignore[no-any-return]


class _Layers(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.layer = nn.ModuleList(_Layer(sizes) for _ in range(sizes.num_hidden_layers))
        self.buckets = sizes.relative_attention_num_buckets
        self.relative_attention_bias = nn.Embedding(self.buckets, sizes.num_attention_heads)

    def biases(self, packed: Packed) -> list[Tensor]:
        """Bias of attention by distance, [segments, heads, q, k] for each group."""
        none = len(packed.positions)
        positions = functional.pad(packed.positions, (0, 1))
        found = []
        for queries, keys in packed.groups:
            distance = positions[keys][:, None, :] - positions[queries][:, :, None]
            bias = self.relative_attention_bias(bucket(distance, self.buckets)).movedim(3, 1)
            found.append(bias.masked_fill((keys == none)[:, None, None], MASKED))
        return found


class _Attention(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width = sizes.hidden_size
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, states: Tensor, packed: Packed, biases: Sequence[Tensor]) -> Tensor:
        # The row of zeros is what padding reads. One gather for all groups: the gradient of each
        # is as large as all states.
        query, key, value = (
            functional.pad(layer(states), (0, 0, 0, 1)) for layer in (self.q, self.k, self.v)
        )
        queries, keys = (
            torch.cat([places.flatten() for places in side])
            for side in zip(*packed.groups, strict=True)
        )
        sizes = [places.numel() for places, _ in packed.groups]
        key_sizes = [places.numel() for _, places in packed.groups]
        rows = zip(
            torch.split(functional.embedding(queries, query), sizes),
            torch.split(functional.embedding(keys, key), key_sizes),
            torch.split(functional.embedding(keys, value), key_sizes),
            biases,
            strict=True,
        )
        mixed = [self._mixed(q, k, v, bias) for q, k, v, bias in rows]
        return self.o(torch.cat(mixed)[packed.order])  # type: ignore[no-any-return]

    def _mixed(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
        """Values that the tokens of a group attend to, [segments · q, width].

        Written out: on a CPU that is faster than ``scaled_dot_product_attention``, whose backward
        pass is slow with a bias.
        """
        segments, heads, length, keys = bias.shape
        q, k, v = (
            rows.view(segments, size, heads, -1).transpose(1, 2).flatten(0, 1)
            for rows, size in ((query, length), (key, keys), (value, keys))
        )
        with torch.autocast(q.device.type, enabled=False):
            bias = bias.to(q.dtype).flatten(0, 1)
            scores = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=q.shape[-1] ** -0.5)
            found = torch.bmm(scores.softmax(-1), v)
        return found.view(segments, heads, length, -1).transpose(1, 2).reshape(len(query), -1)


class _Layer(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, epsilon = sizes.hidden_size, sizes.layer_norm_eps
        self.attention = nn.ModuleDict(
            {
                "attn": _Attention(sizes),
                "LayerNorm": nn.LayerNorm(width, eps=epsilon),
            }
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, sizes.intermediate_size)})
        self.output = nn.ModuleDict(
            {
                "dense": nn.Linear(sizes.intermediate_size, width),
                "LayerNorm": nn.LayerNorm(width, eps=epsilon),
            }
        )

    def forward(self, states: Tensor, packed: Packed, biases: Sequence[Tensor]) -> Tensor:
        mixed = self.attention["attn"](states, packed, biases)
        states = self.attention["LayerNorm"](mixed + states)
        wide = functional.gelu(self.intermediate["dense"](states))
        change = self.output["dense"](wide)
        return self.output["LayerNorm"](change + states)  # type: ignore[no-any-return]
