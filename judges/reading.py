"""Runs a judge that reads evidence once: windows are kept, sentences are read upon them.

A window of evidence gets a pass of its own, and its keys and values are kept by its word pieces,
bounded in bytes; a sentence gets a pass upon those of its windows. What a sentence gets depends on
its own text and its windows alone, so it is the same bit for bit in any batch, order and state of
the cache.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from judges.session import GROUP_TOKENS, OnnxTextModel

__all__ = ["CACHE_BYTES", "Answers", "Asked", "EvidenceCache", "ReadingModel", "Window"]

Floats = NDArray[np.float32]

CACHE_BYTES = 256 << 20
"""Memory for windows that were read: some 14,000 word pieces of the shipped judge."""


class Window(NamedTuple):
    """A window of evidence.

    Attributes:
        ids: Word pieces, special ones included.
        marks: Places in ``ids`` of the marks before its statements.
    """

    ids: tuple[int, ...]
    marks: tuple[int, ...] = ()

    @property
    def ends(self) -> tuple[int, ...]:
        """Places past the last words of its statements."""
        return (*self.marks[1:], len(self.ids) - 1) if self.marks else ()


class Asked(NamedTuple):
    """A sentence upon its windows.

    Attributes:
        ids: Word pieces of the sentence and its context, special ones included.
        context: How many of them, at the end, are context.
        windows: What it is read upon, at least one.
    """

    ids: tuple[int, ...]
    context: int
    windows: tuple[Window, ...]


class Read(NamedTuple):
    """What is kept of windows, one or several joined.

    Attributes:
        keys: By layer, [attention heads, width, word pieces].
        values: By layer, [attention heads, word pieces, width].
        marks: What is compared of each statement, [statements, width].
    """

    keys: tuple[Floats, ...]
    values: tuple[Floats, ...]
    marks: Floats

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(item.nbytes for item in (*self.keys, *self.values, self.marks))


class EvidenceCache:
    """Windows that were read, those used last first, bounded in bytes; safe to share.

    Args:
        most: Bytes kept at most; 0 keeps nothing.
    """

    def __init__(self, most: int = CACHE_BYTES) -> None:
        self.most = most
        self.hits = 0
        self.misses = 0
        self._size = 0
        self._kept: OrderedDict[tuple[int, ...], Read] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, window: Window) -> Read | None:
        """What is kept of a window; None where nothing is."""
        with self._lock:
            found = self._kept.get(window.ids)
            if found is None:
                self.misses += 1
                return None
            self.hits += 1
            self._kept.move_to_end(window.ids)
            return found

    def put(self, window: Window, read: Read) -> None:
        """Keep a window; what was not used for longest goes."""
        with self._lock:
            if window.ids in self._kept or read.size > self.most:
                return
            self._kept[window.ids] = read
            self._size += read.size
            while self._size > self.most:
                self._size -= self._kept.popitem(last=False)[1].size

    def forked(self) -> None:
        """Replace the lock in a forked child, whoever held it."""
        self._lock = threading.Lock()


class ReadingModel(OnnxTextModel):
    """An ONNX judge whose sentences are read upon kept windows.

    Args:
        folder: Holds ``model.onnx`` and ``tokenizer.json``.
        threads: Sequences read at the same time; by default all cores this process may use.
    """

    def __init__(self, folder: Path, *, threads: int | None = None) -> None:
        super().__init__(folder, threads=threads)
        self.cache = EvidenceCache()

    @property
    def ends(self) -> tuple[int, int]:
        """Ids of [CLS] and [SEP]."""
        self.warm_up()
        return self._ends

    @property
    def said(self) -> tuple[str, ...]:
        """Names of the outputs that say something of a sentence, not what would be kept of it."""
        return tuple(name for name in self.outputs if not name.startswith("own_"))

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the outputs that are kept of a window."""
        return tuple(name for name in self.outputs if name.startswith("own_"))

    def ask(self, asked: Sequence[Asked]) -> Answers:
        """Read n sentences, and those of their windows that are not kept; returns at once."""
        self.warm_up()
        assert self._pool is not None
        windows = dict.fromkeys(window for item in asked for window in item.windows)
        read: dict[Window, Read] = {}
        missing = []
        for window in windows:
            kept = self.cache.get(window)
            if kept is None:
                missing.append(window)
            else:
                read[window] = kept
        first = [
            (group, self._pool.submit(self._read_group, group))
            for group in _shared(missing, [len(window.ids) for window in missing], self.threads)
        ]
        return Answers(self, asked, read, first)

    def submit(self, asked: Sequence[Asked], read: dict[Window, Read]) -> Future[list[list[Any]]]:
        """Hand sentences that share their windows to the pool."""
        assert self._pool is not None
        return self._pool.submit(self._ask_group, asked, read)

    def _read_group(self, windows: Sequence[Window]) -> list[Read]:
        nothing = self._nothing()
        found = []
        for window in windows:
            types = np.zeros(len(window.ids), np.int64)
            stretches = (window.marks, window.ends)
            outputs = self._pass(window.ids, types, 0, stretches, nothing, self.kept)
            named = dict(zip(self.kept, outputs, strict=True))
            layers = range(len(nothing.keys))
            read = Read(
                tuple(named[f"own_key_{i}"] for i in layers),
                tuple(named[f"own_value_{i}"] for i in layers),
                named["own_marks"],
            )
            self.cache.put(window, read)
            found.append(read)
        return found

    def _ask_group(
        self, asked: Sequence[Asked], read: dict[Window, Read]
    ) -> list[list[NDArray[np.float32]]]:
        past = _joined([read[window] for window in asked[0].windows])
        start = max(len(window.ids) for window in asked[0].windows)
        rows = []
        for item in asked:
            types = np.ones(len(item.ids), np.int64)
            types[len(item.ids) - item.context :] = 2
            own = ((0,), (len(item.ids) - item.context - 1,))
            rows.append(self._pass(item.ids, types, start, own, past, self.said))
        return rows

    def _pass(
        self,
        ids: Sequence[int],
        types: NDArray[np.int64],
        start: int,
        stretches: tuple[Sequence[int], Sequence[int]],
        past: Read,
        wanted: Sequence[str],
    ) -> list[NDArray[np.float32]]:
        feed: dict[str, NDArray[Any]] = {
            "input_ids": np.array([ids], np.int64),
            "token_type_ids": types[None],
            "position_ids": np.arange(start, start + len(ids), dtype=np.int64)[None],
            "marks": np.array(stretches[0], np.int64),
            "ends": np.array(stretches[1], np.int64),
            "past_marks": past.marks,
        }
        for number, (keys, values) in enumerate(zip(past.keys, past.values, strict=True)):
            feed[f"past_key_{number}"] = keys
            feed[f"past_value_{number}"] = values
        outputs: list[NDArray[np.float32]] = self._session.run(wanted, feed)
        return outputs

    def _nothing(self) -> Read:
        """What is read before a window."""
        shapes = {item.name: item.shape for item in self._session.get_inputs()}
        layers = sum(name.startswith("past_key_") for name in shapes)
        heads, width, _ = shapes["past_key_0"] if layers else (0, 0, 0)
        return Read(
            tuple(np.zeros((heads, width, 0), np.float32) for _ in range(layers)),
            tuple(np.zeros((heads, 0, width), np.float32) for _ in range(layers)),
            np.zeros((0, shapes["past_marks"][1]), np.float32),
        )

    def _load(self) -> None:
        super()._load()
        if "ends" not in {item.name for item in self._session.get_inputs()}:
            self._session = None
            raise JudgeError(
                f"the model in {self.folder} reads evidence beside each sentence, as judges before "
                "3.1 did; train it anew with python -m training"
            )

    def _forked(self) -> None:
        super()._forked()
        self.cache.forked()


class Answers:
    """Sentences on their way through a model."""

    def __init__(
        self,
        model: ReadingModel,
        asked: Sequence[Asked],
        read: dict[Window, Read],
        first: Sequence[tuple[list[Window], Future[list[Read]]]],
    ) -> None:
        self._model = model
        self._asked = asked
        self._read = read
        self._first = first

    def rows(self) -> Iterator[dict[str, NDArray[np.float32]]]:
        """What heads say of each sentence, in order: [labels], or [word pieces, labels].

        Raises:
            JudgeError: The model failed or gave numbers that are not finite.
        """
        model, asked = self._model, self._asked
        tasks: list[tuple[list[int], Future[list[list[Any]]]]] = []
        try:
            for windows, reading in self._first:
                self._read.update(zip(windows, reading.result(), strict=True))
            together: dict[tuple[Window, ...], list[int]] = {}
            for place, item in enumerate(asked):
                together.setdefault(item.windows, []).append(place)
            for places in together.values():
                lengths = [len(asked[place].ids) for place in places]
                for group in _shared(places, lengths, model.threads):
                    task = model.submit([asked[place] for place in group], self._read)
                    tasks.append((group, task))
            found: dict[int, list[Any]] = {}
            for group, task in tasks:
                found.update(zip(group, task.result(), strict=True))
        except Exception as error:
            raise JudgeError(f"the model in {model.folder} failed: {error}") from error
        finally:
            for _, reading in self._first:
                reading.cancel()
            for _, task in tasks:
                task.cancel()
        for place in range(len(asked)):
            yield self._named(found[place])

    def _named(self, outputs: Sequence[NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
        named = {
            name: values if name == "statements" else values[0]
            for name, values in zip(self._model.said, outputs, strict=True)
        }
        for name, values in named.items():
            if not np.isfinite(values).all():
                raise JudgeError(
                    f"the model in {self._model.folder} gave numbers that are not finite in "
                    f"{name!r}; its file may be damaged"
                )
        return named


def _joined(read: Sequence[Read]) -> Read:
    """Several windows as one past, in their order."""
    if len(read) == 1:
        return read[0]
    return Read(
        tuple(np.concatenate(some, axis=2) for some in zip(*(r.keys for r in read), strict=True)),
        tuple(np.concatenate(some, axis=1) for some in zip(*(r.values for r in read), strict=True)),
        np.concatenate([item.marks for item in read]),
    )


def _shared(items: Sequence[Any], lengths: Sequence[int], threads: int) -> Iterator[list[Any]]:
    """Cut items into groups of about equal cost, at least one for each thread."""
    share = min(GROUP_TOKENS, sum(lengths) / threads)
    group: list[Any] = []
    tokens = 0
    for item, length in zip(items, lengths, strict=True):
        if group and tokens + length / 2 > share:
            yield group
            group, tokens = [], 0
        group.append(item)
        tokens += length
    if group:
        yield group
