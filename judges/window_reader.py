"""Reads claims against windows of evidence; each window is encoded once and kept.

``OnnxReader`` runs on the CPU: a window or a claim has a forward pass of its own, so that a result
depends on neither the batch nor the cache. ``training.torch_reader`` does the same with PyTorch.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from judges.sequences import IDS, OFFSET, Claim
from judges.session import OnnxTextModel

__all__ = ["CACHE_BYTES", "GRAPH", "OnnxReader", "Reader", "Reading", "canonical"]

GRAPH = "judge.onnx"
"""Name of the graph; a judge's folder that has it encodes evidence once."""

CACHE_BYTES = 256 * 2**20
"""Bytes of encoded windows that are kept: some 14,000 tokens of a network of 12 × 768."""

Floats = NDArray[np.float32]
Task = tuple[tuple[IDS, ...], Claim]


class Reading(NamedTuple):
    """What the network gives for a claim.

    Attributes:
        labels: Logits, [4].
        features: What the head reads, [2 · width].
        states: Final states of the block's tokens, [n, width].
        attention: Attention of the sentence to each evidence token, [layers · heads, p]; the
            windows follow each other in canonical order.
    """

    labels: Floats
    features: Floats
    states: Floats
    attention: Floats


class Reader(Protocol):
    """Runs the network over claims and their windows."""

    def read(self, tasks: Sequence[Task]) -> list[Reading]:
        """Read n claims, each with its windows in canonical order.

        Raises:
            JudgeError: The model failed or gave numbers that are not finite.
        """
        ...


def canonical(windows: Iterable[IDS]) -> tuple[IDS, ...]:
    """The distinct windows in a fixed order, so that the order of evidence cannot matter."""
    return tuple(sorted(set(windows)))


class _Encoded(NamedTuple):
    """Keys [layers, heads, d, n] and values [layers, heads, n, d] of a window."""

    keys: NDArray[np.int8]
    values: NDArray[np.int8]

    @property
    def size(self) -> int:
        return self.keys.nbytes + self.values.nbytes


class OnnxReader(OnnxTextModel):
    """The ONNX graph that ``training.export`` writes, with its tokenizer.

    Args:
        folder: Holds ``judge.onnx``, its weights and ``tokenizer.json``.
        threads: Passes run at the same time; all cores by default.
        cache_bytes: Bytes of encoded windows to keep, least recently used dropped first.
    """

    _graph = GRAPH
    end_tokens = ("<s>", "</s>")

    def __init__(
        self, folder: Path, *, threads: int | None = None, cache_bytes: int = CACHE_BYTES
    ) -> None:
        super().__init__(folder, threads=threads)
        self._cache_bytes = cache_bytes
        self._cache: OrderedDict[IDS, _Encoded] = OrderedDict()
        self._guard = threading.Lock()
        self._held = self.hits = self.misses = 0

    @property
    def ends(self) -> tuple[int, int]:
        """Ids of the tokens that start and end a sequence."""
        self.warm_up()
        return self._ends

    @property
    def held(self) -> int:
        """Bytes of encoded windows in the cache."""
        return self._held

    @property
    def held_tokens(self) -> int:
        """Tokens of the windows in the cache."""
        with self._guard:
            return sum(map(len, self._cache))

    def forget(self) -> None:
        """Empty the cache."""
        with self._guard:
            self._cache.clear()
            self._held = 0

    def _forked(self) -> None:
        super()._forked()
        self._guard = threading.Lock()

    def read(self, tasks: Sequence[Task]) -> list[Reading]:
        """Read n claims; see ``Reader``."""
        self.warm_up()
        assert self._pool is not None
        groups: dict[tuple[IDS, ...], list[int]] = {}
        for number, (windows, _) in enumerate(tasks):
            groups.setdefault(windows, []).append(number)
        found: dict[int, Reading] = {}
        waiting: dict[Future[Reading], int] = {}
        try:
            for windows, numbers in groups.items():
                # Few groups are in memory at once: their keys and values take megabytes.
                while len(waiting) >= 2 * self.threads:
                    for done in wait(waiting, return_when=FIRST_COMPLETED).done:
                        found[waiting.pop(done)] = done.result()
                evidence = self._evidence(windows)
                for number in numbers:
                    future = self._pool.submit(self._claim, tasks[number][1], evidence)
                    waiting[future] = number
            for future, number in waiting.items():
                found[number] = future.result()
        except JudgeError:
            raise
        except Exception as error:
            raise JudgeError(f"the model in {self.folder} failed: {error}") from error
        finally:
            for future in waiting:
                future.cancel()
        return [found[number] for number in range(len(tasks))]

    def _evidence(self, windows: Sequence[IDS]) -> dict[str, NDArray[np.generic]]:
        """Keys, values and positions of some windows, one after the other."""
        assert self._pool is not None
        with self._guard:
            known = {ids: self._cache[ids] for ids in windows if ids in self._cache}
            for ids in known:
                self._cache.move_to_end(ids)
            self.hits += len(known)
            self.misses += len(windows) - len(known)
        new = sorted((ids for ids in windows if ids not in known), key=len, reverse=True)
        for ids, encoded in zip(new, self._pool.map(self._encode, new), strict=True):
            known[ids] = encoded
            self._keep(ids, encoded)
        nothing = self._nothing()
        parts = [known[ids] for ids in windows] or [nothing]
        return {
            "keys": np.concatenate([part.keys for part in parts], axis=3),
            "values": np.concatenate([part.values for part in parts], axis=2),
            "places": np.array([at for ids in windows for at in range(len(ids))], np.int64),
        }

    def _keep(self, ids: IDS, encoded: _Encoded) -> None:
        with self._guard:
            if ids not in self._cache:
                self._cache[ids] = encoded
                self._held += encoded.size
            while self._held > self._cache_bytes:
                _, dropped = self._cache.popitem(last=False)
                self._held -= dropped.size

    def _nothing(self) -> _Encoded:
        """Keys and values of no evidence."""
        assert self._session is not None
        shapes = {item.name: item.shape for item in self._session.get_inputs()}
        empty = [
            np.zeros([side if isinstance(side, int) else 0 for side in shapes[name]], np.int8)
            for name in ("keys", "values")
        ]
        return _Encoded(*empty)

    def _encode(self, ids: IDS) -> _Encoded:
        nothing = self._nothing()
        feed = {
            "ids": np.array(ids, np.int64),
            "first": np.zeros(1, np.int64),
            "start": np.zeros(1, np.int64),
            "places": np.zeros(0, np.int64),
            "keys": nothing.keys,
            "values": nothing.values,
        }
        assert self._session is not None
        return _Encoded(*self._session.run(["own_keys", "own_values"], feed))

    def _claim(self, claim: Claim, evidence: dict[str, NDArray[np.generic]]) -> Reading:
        feed = {
            "ids": np.array(claim.ids, np.int64),
            "first": np.array([OFFSET], np.int64),
            "start": np.array([claim.start], np.int64),
            **evidence,
        }
        assert self._session is not None
        reading = Reading(*self._session.run(list(Reading._fields), feed))
        if not np.isfinite(reading.labels).all():
            raise JudgeError(
                f"the model in {self.folder} gave numbers that are not finite; its files may be "
                "damaged"
            )
        return reading
