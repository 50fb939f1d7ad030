"""Reads claims against windows of evidence; each window is encoded once and cached.

A window holds the triples of one entity or neighbouring sentences of one passage; its positions
start at 0. A claim block holds the question, the previous sentences and the sentence; its positions
start at ``OFFSET``. ``OnnxReader`` runs on the CPU: a window or a claim has a forward pass of its
own, so that a result depends on neither the batch nor the cache. ``training.torch_reader`` does the
same with PyTorch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judges.session import OnnxTextModel

GRAPH = "judge.onnx"
"""Name of the graph; a judge's folder that has it encodes evidence once."""

CACHE_BYTES = 256 * 2**20
"""Bytes of encoded windows in the cache: some 14,000 tokens of a network of 12 × 768."""

WINDOW, BLOCK, OFFSET = 200, 110, 256
"""Most tokens of a window and of a claim block; position of the first token of a block."""

IDS = tuple[int, ...]
Floats = NDArray[np.float32]


class Claim(NamedTuple):
    """A claim block.

    Attributes:
        ids: Token ids.
        start: Index of the first token of the sentence; the tokens from there on are pooled.
        length: Tokens of the sentence, the end token after it not counted.
    """

    ids: IDS
    start: int
    length: int


Task = tuple[tuple[IDS, ...], Claim]


def windows_of(
    parts: Sequence[Sequence[int]], *, start: int, end: int, closed: bool
) -> list[tuple[IDS, tuple[tuple[int, int], ...]]]:
    """Pack statements into windows of at most ``WINDOW`` tokens.

    Args:
        parts: Token ids of the statements of one entity or passage; longer ones are cut.
        start: Id of the token that starts a window.
        end: Id of the token that ends it.
        closed: Whether ``end`` also follows each statement, as for triples and NLI premises.

    Returns:
        Ids of each window, and the span (start, end) of each of its statements.
    """
    made: list[tuple[IDS, tuple[tuple[int, int], ...]]] = []
    ids: list[int] = [start]
    spans: list[tuple[int, int]] = []
    for part in parts:
        piece = ([*part, end] if closed else list(part))[: WINDOW - 2]
        if spans and len(ids) + len(piece) > WINDOW:
            made.append(((*ids, end), tuple(spans)))
            ids, spans = [start], []
        spans.append((len(ids), len(ids) + len(piece)))
        ids += piece
    return [*made, ((*ids, end), tuple(spans))]


def claims_of(context: Sequence[int], sentence: Sequence[int], *, end: int) -> list[Claim]:
    """The blocks of a sentence: one, or several of equal length where it is longer than a block.

    Args:
        context: Token ids of the question and the previous sentences.
        sentence: Token ids of the sentence.
        end: Id of the token that separates the parts.
    """
    before = list(context)
    if len(before) > 60:  # the question at its start, and the previous sentence at its end
        before = [*before[:24], *before[-36:]]
    count = max(1, -(-len(sentence) // (BLOCK - 5)))
    size = -(-len(sentence) // count)
    claims = []
    for at in range(0, max(1, len(sentence)), max(1, size)):
        part = sentence[at : at + size]
        shown = before[max(0, len(before) - (BLOCK - 3 - len(part))) :]
        claims.append(Claim((end, *shown, end, *part, end), len(shown) + 2, len(part)))
    return claims


def canonical(windows: Iterable[IDS]) -> tuple[IDS, ...]:
    """The distinct windows in a fixed order, so that the order of evidence cannot matter."""
    return tuple(sorted(set(windows)))


class Reading(NamedTuple):
    """Outputs of the network for a claim.

    Attributes:
        labels: Logits, [4].
        features: Input of the heads, [2 · width].
        states: Final states of the block's tokens, [n, width].
        attention: Attention of the sentence to each evidence token, [layers · heads, p]; the
            windows follow each other in canonical order.
    """

    labels: Floats
    features: Floats
    states: Floats
    attention: Floats


class _Encoded(NamedTuple):
    """Keys [layers, heads, d, n] and values [layers, heads, n, d] of a window."""

    keys: NDArray[np.int8]
    values: NDArray[np.int8]


class OnnxReader(OnnxTextModel):
    """The ONNX graph that ``training.export`` writes, with its tokenizer.

    Args:
        folder: Holds ``judge.onnx``, its weights and ``tokenizer.json``.
        threads: Passes run at the same time; all cores by default.
    """

    _graph = GRAPH
    end_tokens = ("<s>", "</s>")

    def __init__(self, folder: Path, *, threads: int | None = None) -> None:
        super().__init__(folder, threads=threads)
        self._cache: OrderedDict[IDS, _Encoded] = OrderedDict()
        self._held = 0

    @property
    def cached(self) -> tuple[int, int]:
        """Tokens and bytes of the windows in the cache."""
        with self._lock:
            return sum(map(len, self._cache)), self._held

    def forget(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._cache.clear()
            self._held = 0

    def read(self, tasks: Sequence[Task]) -> list[Reading]:
        """Read n claims, each with its windows in canonical order.

        Raises:
            JudgeError: The model failed or gave numbers that are not finite.
        """
        self.warm_up()
        groups: dict[tuple[IDS, ...], list[int]] = {}
        for number, (windows, _) in enumerate(tasks):
            groups.setdefault(windows, []).append(number)
        found: dict[int, Reading] = {}
        waiting: dict[Future[Reading], int] = {}
        with self.awaiting(waiting):
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
        return [found[number] for number in range(len(tasks))]

    def _evidence(self, windows: Sequence[IDS]) -> dict[str, NDArray[np.generic]]:
        """Keys, values and positions of some windows, one after the other."""
        with self._lock:
            known = {ids: self._cache[ids] for ids in windows if ids in self._cache}
            for ids in known:
                self._cache.move_to_end(ids)
        new = sorted((ids for ids in windows if ids not in known), key=len, reverse=True)
        for ids, encoded in zip(new, self._pool.map(self._encode, new), strict=True):
            known[ids] = encoded
        with self._lock:
            for ids in new:
                if ids not in self._cache:
                    self._cache[ids] = known[ids]
                    self._held += known[ids].keys.nbytes + known[ids].values.nbytes
            while self._held > CACHE_BYTES:
                _, dropped = self._cache.popitem(last=False)
                self._held -= dropped.keys.nbytes + dropped.values.nbytes
        parts = [known[ids] for ids in windows] or [self._nothing()]
        return {
            "keys": np.concatenate([part.keys for part in parts], axis=3),
            "values": np.concatenate([part.values for part in parts], axis=2),
            "places": np.array([at for ids in windows for at in range(len(ids))], np.int64),
        }

    def _nothing(self) -> _Encoded:
        """Keys and values of no evidence."""
        shapes = {item.name: item.shape for item in self._session.get_inputs()}
        empty = [
            np.zeros([side if isinstance(side, int) else 0 for side in shapes[name]], np.int8)
            for name in ("keys", "values")
        ]
        return _Encoded(*empty)

    def _encode(self, ids: IDS) -> _Encoded:
        feed = {
            "ids": np.array(ids, np.int64),
            "first": np.zeros(1, np.int64),
            "start": np.zeros(1, np.int64),
            "places": np.zeros(0, np.int64),
            **self._nothing()._asdict(),
        }
        return _Encoded(*self._session.run(["own_keys", "own_values"], feed))

    def _claim(self, claim: Claim, evidence: dict[str, NDArray[np.generic]]) -> Reading:
        feed = {
            "ids": np.array(claim.ids, np.int64),
            "first": np.array([OFFSET], np.int64),
            "start": np.array([claim.start], np.int64),
            **evidence,
        }
        reading = Reading(*self._session.run(list(Reading._fields), feed))
        self.require_finite("labels", reading.labels)
        return reading
