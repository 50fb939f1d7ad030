"""Training of the encoder's heads on features of the frozen trunk.

The trunk runs once over every text; the heads then train in minutes on one CPU core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from training.encoder_model import INTENT_FEATURES, DiscourseHead, IntentHead

__all__ = ["Recipe", "SentenceTable", "fit_discourse", "fit_intent", "statistics"]

Floats = NDArray[np.float16] | NDArray[np.float32]
Indices = NDArray[np.int64]

NEVER = -1e4
"""Score of a neighbour that cannot be chosen."""


class Recipe(NamedTuple):
    """Settings of both heads; the defaults made the shipped weights."""

    intent_epochs: int = 25
    intent_batch: int = 128
    balance: float = 0.5
    """Intent class weights are count ** -balance: 0 leaves the imbalance, 1 removes it."""
    label_smoothing: float = 0.05
    discourse_epochs: int = 4
    discourse_batch: int = 32
    """Stretches of text a step."""
    stretch: int = 8
    """Most sentences of a stretch."""
    rate: float = 1e-3
    weight_decay: float = 0.05
    max_length: int = 128
    """Tokens a training row is cut to."""
    seed: int = 13


class SentenceTable(NamedTuple):
    """Texts as stretches of rows of one feature matrix.

    Attributes:
        features: [n, 1152] of all sentences, text after text.
        starts: [t] row of each text's first sentence.
        lengths: [t] number of its sentences, at least two.
    """

    features: Floats
    starts: Indices
    lengths: Indices


def statistics(features: Floats) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and standard deviation of each feature, the latter kept off zero."""
    values = features.astype(np.float32)
    return values.mean(0), values.std(0) + 1e-3


def fit_intent(features: Floats, intents: Sequence[int], recipe: Recipe) -> IntentHead:
    """Fit the intent head with class weights against the imbalance.

    Args:
        features: [n, 768] or wider; further columns are left out.
        intents: Class of each of the n questions.
        recipe: Settings.
    """
    torch.manual_seed(recipe.seed)
    rows = torch.tensor(features[:, :INTENT_FEATURES].astype(np.float32))
    labels = torch.tensor(intents)
    counts = Counter(intents)
    weights = torch.tensor([max(1, counts[label]) ** -recipe.balance for label in range(8)])
    weights /= weights[labels].mean()
    head = IntentHead(*statistics(features[:, :INTENT_FEATURES]))
    steps = recipe.intent_epochs * (len(rows) // recipe.intent_batch + 1)
    optimizer = _Optimizer(head, recipe, steps)
    head.train()
    for _ in range(recipe.intent_epochs):
        for chosen in torch.split(torch.randperm(len(rows)), recipe.intent_batch):
            loss = functional.cross_entropy(
                head(rows[chosen]),
                labels[chosen],
                weight=weights,
                label_smoothing=recipe.label_smoothing,
            )
            optimizer.step(loss)
    return head.eval()


def fit_discourse(
    table: SentenceTable, recipe: Recipe
) -> Iterator[tuple[int, float, DiscourseHead]]:
    """Fit the discourse head on stretches of texts.

    The head picks each sentence's next and its former one, among all sentences of the stretch,
    its edges, and all sentences of a stretch of another text; and it tells of every two sentences
    which comes first.

    Yields:
        After each epoch its number from one, the mean loss and the head in evaluation mode.
    """
    torch.manual_seed(recipe.seed)
    rng = np.random.default_rng(recipe.seed)
    head = DiscourseHead(*statistics(table.features))
    stretches = _stretches(table, recipe.stretch)
    batches = len(stretches) // recipe.discourse_batch + 1
    optimizer = _Optimizer(head, recipe, recipe.discourse_epochs * batches)
    for epoch in range(1, recipe.discourse_epochs + 1):
        head.train()
        losses = []
        for chosen in np.array_split(rng.permutation(len(stretches)), batches):
            loss = _discourse_loss(head, table, stretches[chosen])
            optimizer.step(loss)
            losses.append(loss.item())
        yield epoch, float(np.mean(losses)), head.eval()


class _Optimizer:
    """AdamW with a rate that falls linearly to zero."""

    def __init__(self, head: nn.Module, recipe: Recipe, steps: int) -> None:
        self._adam = torch.optim.AdamW(
            head.parameters(), lr=recipe.rate, weight_decay=recipe.weight_decay
        )
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self._adam, lambda step: max(0.0, 1 - step / steps)
        )

    def step(self, loss: Tensor) -> None:
        self._adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._adam.step()
        self._schedule.step()


def _stretches(table: SentenceTable, size: int) -> Indices:
    """First row and length of stretches of at most ``size`` sentences, at least two; [m, 2]."""
    cuts = [
        (start + offset, min(size, length - offset))
        for start, length in zip(table.starts, table.lengths, strict=True)
        for offset in range(0, length, size)
    ]
    return np.array([cut for cut in cuts if cut[1] >= 2], np.int64)


def _discourse_loss(head: DiscourseHead, table: SentenceTable, stretches: Indices) -> Tensor:
    lengths = torch.tensor(stretches[:, 1])
    width = int(lengths.max())
    places = np.arange(width)
    rows = stretches[:, :1] + np.minimum(places, stretches[:, 1:] - 1)
    real = torch.tensor(places < stretches[:, 1:])
    states = head.states(torch.tensor(table.features[rows].astype(np.float32))) * real[..., None]
    edged = functional.pad(states, (0, 0, 1, 0))
    own = head(edged, edged)
    other, there = states.roll(1, 0), real.roll(1, 0)
    after = head(edged, other)[..., 0].masked_fill(~there[:, None], NEVER)
    before = head(other, edged)[..., 0].masked_fill(~there[:, :, None], NEVER)
    valid = functional.pad(real, (1, 0), value=True)
    itself = torch.eye(width + 1, dtype=torch.bool)
    following = own[..., 0].masked_fill(~valid[:, None] | itself, NEVER)
    leading = own[..., 0].masked_fill(~valid[:, :, None] | itself, NEVER)
    place = torch.arange(width + 1).expand(len(stretches), -1)
    next_place = torch.where(place == lengths[:, None], 0, place + 1)
    former_place = torch.where(place == 0, lengths[:, None], place - 1)
    forward = torch.cat([following, after], dim=2)
    backward = torch.cat([leading, before], dim=1).transpose(1, 2)
    later = own[:, 1:, 1:, 1]
    ahead = torch.triu(real[:, :, None] & real[:, None], 1)
    return (
        functional.cross_entropy(forward[valid], next_place[valid])
        + functional.cross_entropy(backward[valid], former_place[valid])
        + 2 * functional.softplus(-(later - later.transpose(1, 2))[ahead]).mean()
    )
