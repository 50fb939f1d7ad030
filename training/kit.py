"""The packed kit: start weights and tokenised rows in small parts, so that any machine can train.

``python -m training pack`` writes it; ``python -m training run`` needs only the kit, torch and
NumPy.
"""

from __future__ import annotations

import io
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from judges.window_reader import IDS, Claim
from training.window_model import Sizes

__all__ = [
    "PAIRED",
    "PART",
    "RESULT_PART",
    "Item",
    "Kit",
    "read_kit",
    "read_parts",
    "read_state",
    "write_kit",
    "write_parts",
    "write_state",
]

PART, RESULT_PART = 45_000_000, 15_000_000
"""Most bytes of a part of the kit, and of a part of a result."""

PAIRED = "counterfactual"
"""The family of pairs: the same sentences with some evidence and with its counterfactual."""

ROOM = 460
"""Most tokens of evidence of an item, as packed."""


class Item(NamedTuple):
    """An evidence set with labelled claims.

    Attributes:
        windows: Token ids of the windows.
        claims: The claims.
        labels: Of each claim, the labels that count as right, one bit each.
        triples: True if the evidence is triples.
    """

    windows: tuple[IDS, ...]
    claims: tuple[Claim, ...]
    labels: tuple[int, ...]
    triples: bool

    @property
    def size(self) -> int:
        """Tokens of windows and claims."""
        return sum(map(len, self.windows)) + sum(len(claim.ids) for claim in self.claims)


class Kit(NamedTuple):
    """What training needs.

    Attributes:
        sizes: Sizes of the network.
        start: Start weights, by the names of ``WindowModel`` or of the published encoder.
        families: Items to train on, by family.
        shares: Share of each family in the sentences.
        validation: Items that measure, by family.
    """

    sizes: Sizes
    start: dict[str, Tensor]
    families: dict[str, list[Item]]
    shares: dict[str, float]
    validation: dict[str, list[Item]]


def write_kit(folder: Path, kit: Kit) -> None:
    """Write a kit in parts."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {"sizes": kit.sizes._asdict(), "shares": kit.shares}
    (folder / "kit.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    write_state(folder / "start", kit.start, size=PART)
    for name, families in (("train", kit.families), ("valid", kit.validation)):
        write_parts(folder / name, _packed(families), size=PART)


def read_kit(folder: Path) -> Kit:
    """Read a kit.

    Raises:
        OSError: A part is missing.
    """
    about = json.loads((folder / "kit.json").read_text("utf-8"))
    return Kit(
        Sizes(**about["sizes"]),
        read_state(folder / "start"),
        _unpacked(read_parts(folder / "train")),
        about["shares"],
        _unpacked(read_parts(folder / "valid")),
    )


def write_parts(path: Path, data: bytes, *, size: int) -> list[Path]:
    """Write bytes as ``path.000``, ``path.001``, … of at most ``size`` bytes each."""
    for old in path.parent.glob(f"{path.name}.[0-9][0-9][0-9]"):
        old.unlink()
    written = []
    for number, at in enumerate(range(0, max(1, len(data)), size)):
        part = path.with_name(f"{path.name}.{number:03}")
        part.write_bytes(data[at : at + size])
        written.append(part)
    return written


def read_parts(path: Path) -> bytes:
    """Read what ``write_parts`` wrote.

    Raises:
        FileNotFoundError: There is none.
    """
    parts = sorted(path.parent.glob(f"{path.name}.[0-9][0-9][0-9]"))
    if not parts:
        raise FileNotFoundError(f"{path}.000 does not exist")
    return b"".join(part.read_bytes() for part in parts)


SCALE = "/scale"
"""Ending of the name of a matrix's scales."""


def write_state(
    path: Path, state: Mapping[str, Tensor], *, size: int = RESULT_PART, compact: bool = False
) -> None:
    """Write parameters in parts.

    Args:
        path: Start of the names of the parts.
        state: The parameters.
        size: Most bytes of a part.
        compact: Matrices in 8 bits with a scale for each row, all else in 16 bits. They are rounded
            at random, up or down by the nearer value, so that updates below a step are kept on
            average: to the nearest, all that some hours had learned was lost.
    """
    buffer = io.BytesIO()
    chance = np.random.default_rng(1)
    arrays: dict[str, NDArray[np.generic]] = {}
    for name, value in state.items():
        numbers = value.detach().cpu().float().numpy()
        if compact and numbers.ndim == 2:
            scale = np.maximum(np.abs(numbers).max(1, keepdims=True), 1e-12) / 127
            lifted = numbers / scale + chance.random(numbers.shape, np.float32)
            arrays[name] = np.clip(np.floor(lifted), -127, 127).astype(np.int8)
            arrays[name + SCALE] = scale
        else:
            arrays[name] = numbers.astype(np.float16)
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    write_parts(path, buffer.getvalue(), size=size)


def read_state(path: Path) -> dict[str, Tensor]:
    """Read parameters: parts of ``write_state``, or a file of ``torch.save``.

    Raises:
        FileNotFoundError: There is neither.
    """
    if path.is_file():
        loaded: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
        return loaded
    with np.load(io.BytesIO(read_parts(path)), allow_pickle=False) as stored:
        return {
            name: torch.from_numpy(
                stored[name] * stored[name + SCALE]
                if name + SCALE in stored.files
                else stored[name]
            )
            for name in stored.files
            if not name.endswith(SCALE)
        }


def _packed(families: Mapping[str, Sequence[Item]]) -> bytes:
    arrays: dict[str, NDArray[np.generic]] = {}
    for name, items in families.items():
        windows = [window for item in items for window in item.windows]
        claims = [claim for item in items for claim in item.claims]
        kinds = {
            "windows": [token for window in windows for token in window],
            "window_lengths": list(map(len, windows)),
            "window_counts": [len(item.windows) for item in items],
            "claims": [token for claim in claims for token in claim.ids],
            "claim_lengths": [len(claim.ids) for claim in claims],
            "claim_starts": [claim.start for claim in claims],
            "sentence_lengths": [claim.length for claim in claims],
            "claim_counts": [len(item.claims) for item in items],
            "labels": [label for item in items for label in item.labels],
            "triples": [item.triples for item in items],
        }
        arrays |= {f"{name}/{kind}": np.array(values, np.uint16) for kind, values in kinds.items()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _unpacked(data: bytes) -> dict[str, list[Item]]:
    tables: dict[str, dict[str, list[int]]] = defaultdict(dict)
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        for key in stored.files:
            name, _, kind = key.rpartition("/")
            tables[name][kind] = stored[key].tolist()
    return {name: list(_items(table)) for name, table in tables.items()}


def _items(table: Mapping[str, Sequence[int]]) -> Iterator[Item]:
    windows = _cut(table["windows"], table["window_lengths"])
    claims = map(
        Claim,
        _cut(table["claims"], table["claim_lengths"]),
        table["claim_starts"],
        table["sentence_lengths"],
    )
    labels = iter(table["labels"])
    counts = zip(table["window_counts"], table["claim_counts"], table["triples"], strict=True)
    for some, many, triples in counts:
        yield Item(
            tuple(next(windows) for _ in range(some)),
            tuple(next(claims) for _ in range(many)),
            tuple(next(labels) for _ in range(many)),
            bool(triples),
        )


def _cut(tokens: Sequence[int], lengths: Iterable[int]) -> Iterator[IDS]:
    at = 0
    for length in lengths:
        yield tuple(tokens[at : at + length])
        at += length


def drawn(
    families: Mapping[str, Sequence[Item]],
    shares: Mapping[str, float],
    *,
    chooser: random.Random,
    room: int = ROOM + 120,
    claims: int = 16,
) -> Iterator[tuple[Item, ...]]:
    """Items without end, so that the sentences of the families keep their shares.

    Windows of other items join some sets (up to six), and the windows are shuffled: neither may
    change a verdict. The two items of a counterfactual pair come together, others alone.

    Args:
        families: The items.
        shares: Share of each family; families without one are left out.
        chooser: Makes the choices.
        room: Most tokens of evidence.
        claims: Most claims of an item that are drawn at once; neighbours are drawn together.
    """
    names = [name for name in families if shares.get(name, 0) > 0 and families[name]]
    seen = dict.fromkeys(names, 0.0)
    pools: dict[str, list[Sequence[Item]]] = {name: [] for name in names}
    unrelated = [window for name in names for item in families[name] for window in item.windows]
    while names:
        name = min(names, key=lambda one: seen[one] / shares[one])
        if not pools[name]:
            items, step = families[name], 2 if name == PAIRED else 1
            groups = [items[at : at + step] for at in range(0, len(items), step)]
            pools[name] = chooser.sample(groups, len(groups))
        group = pools[name].pop()
        size = len(group[0].claims)
        first = chooser.randrange(size)
        picked = [(first + step) % size for step in range(min(claims, size))]
        seen[name] += len(picked) * len(group)
        left = room - max(sum(map(len, item.windows)) for item in group)
        more = []
        if chooser.random() < (0.5 if size > 3 else 0.15):
            for window in chooser.choices(unrelated, k=chooser.choice((1, 1, 2, 3, 6))):
                if len(window) <= left:
                    more.append(window)
                    left -= len(window)
        yield tuple(
            Item(
                tuple(chooser.sample(windows := [*item.windows, *more], len(windows))),
                tuple(item.claims[i] for i in picked),
                tuple(item.labels[i] for i in picked),
                item.triples,
            )
            for item in group
        )
