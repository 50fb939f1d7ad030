"""Runs an ONNX text model on the CPU: one forward pass a sequence, many passes at once.

8-bit kernels with dynamic activation scales take one scale for a whole batch, so that a pair's
result would depend on its neighbours. Here every sequence has a pass of its own: results are the
same bit for bit whatever else is judged, no token of padding is computed, and a pool of
single-threaded passes keeps all cores busy without waiting at barriers.
"""

from __future__ import annotations

import os
import re
import threading
import unicodedata
import weakref
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardrail.core.cpus import usable_cpus
from guardrail.core.errors import JudgeError
from guardrail.core.secrets import get_logger
from guardrail.core.text.words import is_writing
from judges.exactness import SAFE_WEIGHT, has_exact_kernel, largest_weight
from judges.letters import plain_letters
from judges.sums import check_sums

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

__all__ = ["OnnxTextModel", "Segments", "open_session", "readable", "softmax"]

logger = get_logger(__name__)

GROUP_TOKENS = 512
"""Tokens per task of the pool: large enough that the cost of scheduling is negligible,
small enough that all cores finish together."""

ERRORS_ONLY = 3
"""onnxruntime's log level: its warnings on graph clean-up are of no use to a user."""

SIGNS = re.compile(r"[^\x00-\xff\w\s]+")
SYMBOLS = frozenset({"Cn", "Sc", "Sk", "Sm", "So"})
"""Categories of symbols; what is not assigned is a new emoji, or nothing that can be read."""

UNSEEN = "\u200b"
"""What a tokenizer passes over, within a word, too: for circles drawn round the letter before."""


class Segments(NamedTuple):
    """One input sequence: token ids of the first text, of the second of a pair, of its context."""

    first: Sequence[int]
    second: Sequence[int] | None = None
    third: Sequence[int] | None = None

    @property
    def length(self) -> int:
        """Tokens of the sequence, special ones included."""
        more = (len(item) + 1 for item in (self.second, self.third) if item is not None)
        return len(self.first) + 2 + sum(more)


def readable(text: str) -> str:
    """Write what a reader sees as letters in plain ones; offsets stay.

    Lone surrogates, which no tokenizer can read, become U+FFFD.
    """
    if text.isascii():
        return text
    return plain_letters(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def softmax(
    logits: NDArray[np.float32] | NDArray[np.float64], temperature: float = 1.0
) -> NDArray[np.float64]:
    """Probabilities along the last axis, in double precision."""
    scaled = np.asarray(logits, np.float64) / temperature
    scaled -= scaled.max(axis=-1, keepdims=True)
    weights = np.exp(scaled)
    result: NDArray[np.float64] = weights / weights.sum(axis=-1, keepdims=True)
    return result


def open_session(path: Path) -> InferenceSession:
    """Open an ONNX file for single-threaded passes on the CPU.

    8-bit products are added up exactly on every processor, at some cost in speed where the file's
    weights need it on this one; see ``judges.exactness``.

    Raises:
        JudgeError: The file is missing or cannot be read.
    """
    import onnxruntime

    if not path.is_file():
        raise JudgeError(f"{path} does not exist; name a folder that holds the model's files")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    if _needs_exact_path(path):
        options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise JudgeError(f"the model {path} cannot be read: {error}") from error


@lru_cache(maxsize=32)
def _needs_exact_path(path: Path) -> bool:
    """Whether this processor's 8-bit kernel would saturate with a file's weights; logged once."""
    if has_exact_kernel():
        return False
    try:
        most = largest_weight(path)
    except (OSError, ValueError) as error:
        raise JudgeError(f"the model {path} cannot be read: {error}") from error
    if most <= SAFE_WEIGHT:
        return False
    logger.warning(
        "%s holds 8-bit weights up to %d; beyond %d this processor does not multiply them exactly, "
        "so a slower exact path is used. A judge that python -m training writes stays within.",
        path,
        most,
        SAFE_WEIGHT,
    )
    return True


_models: weakref.WeakSet[OnnxTextModel] = weakref.WeakSet()
"""Every model of this process, for its forked children."""


class OnnxTextModel:
    """A BERT-like ONNX model with its tokenizer, loaded on first use and safe to share.

    A forked child uses what its parent loaded, with threads of its own.

    Args:
        folder: Holds ``model.onnx`` and ``tokenizer.json``.
        threads: Sequences run at the same time; by default all cores this process may use, or as
            many as ``OMP_NUM_THREADS`` says.
    """

    _graph: ClassVar[str] = "model.onnx"
    end_tokens: ClassVar[tuple[str, str]] = ("[CLS]", "[SEP]")

    def __init__(self, folder: Path, *, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ValueError(f"threads is at least 1, not {threads}")
        self.folder = folder
        self.threads = threads or _cores()
        self._lock = threading.Lock()
        self._session: InferenceSession | None = None
        self._tokenizer: Tokenizer | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._outputs: list[str] = []
        self._ends = (0, 0)
        _models.add(self)

    def warm_up(self) -> None:
        """Load model and tokenizer; later calls do nothing.

        Raises:
            JudgeError: A file is missing, cannot be read, or is not what its checksum says.
        """
        with self._lock:
            if self._session is None:
                self._load()

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the model's outputs."""
        self.warm_up()
        return tuple(self._outputs)

    def token(self, text: str) -> int | None:
        """Id of a token by its text; None where the vocabulary lacks it."""
        self.warm_up()
        assert self._tokenizer is not None
        found: int | None = self._tokenizer.token_to_id(text)
        return found

    def offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Where the tokens of n texts stand: offsets of first characters and past the last."""
        self.warm_up()
        assert self._tokenizer is not None
        encodings = self._tokenizer.encode_batch(
            [self.readable(text) for text in texts], add_special_tokens=False
        )
        return [encoding.offsets for encoding in encodings]

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of n texts, without special tokens and without truncation."""
        self.warm_up()
        assert self._tokenizer is not None
        encodings = self._tokenizer.encode_batch_fast(
            [self.readable(text) for text in texts], add_special_tokens=False
        )
        return [encoding.ids for encoding in encodings]

    def readable(self, text: str) -> str:
        """What is read of a text, sign by sign.

        Symbols that are not known go where they touch a word: else it would not be known either.
        """
        return text if text.isascii() else SIGNS.sub(self._apart, readable(text))

    def _apart(self, found: re.Match[str]) -> str:
        text, (start, end) = found.string, found.span()
        touching = text[max(0, start - 1) : start].isalnum() or text[end : end + 1].isalnum()
        return "".join(map(self._known, found.group())) if touching else found.group()

    def _known(self, sign: str) -> str:
        kind = unicodedata.category(sign)
        if kind == "Me":
            return UNSEEN
        symbol = kind in SYMBOLS and not is_writing(sign)
        return " " if symbol and self.token(sign) is None else sign

    def run(self, sequences: Sequence[Segments]) -> dict[str, NDArray[np.float32]]:
        """Run n sequences; raw outputs of whole sequences by name, [n, width].

        Raises:
            JudgeError: The model failed or gave numbers that are not finite.
        """
        return self.start(sequences).result()

    def start(self, sequences: Sequence[Segments]) -> Running:
        """Hand n sequences to the pool and return at once."""
        self.warm_up()
        assert self._pool is not None
        order = sorted(range(len(sequences)), key=lambda i: -sequences[i].length)
        tasks = [
            (group, self._pool.submit(self._run_group, [sequences[i] for i in group]))
            for group in _groups(order, sequences, self.threads)
        ]
        return Running(self, len(sequences), tasks)

    def _run_group(self, group: Sequence[Segments]) -> list[list[NDArray[np.float32]]]:
        return [self._run_one(sequence) for sequence in group]

    def _run_one(self, sequence: Segments) -> list[NDArray[np.float32]]:
        start, end = self._ends
        ids = [start, *sequence.first, end]
        types = np.zeros((1, sequence.length), np.int64)
        for number, segment in enumerate((sequence.second, sequence.third), start=1):
            if segment is not None:
                types[0, len(ids) :] = number
                ids += [*segment, end]
        feed = {
            "input_ids": np.array([ids], np.int64),
            "attention_mask": np.ones((1, len(ids)), np.int64),
            "token_type_ids": types,
        }
        assert self._session is not None
        outputs: list[NDArray[np.float32]] = self._session.run(self._outputs, feed)
        return outputs

    def _load(self) -> None:
        from tokenizers import Tokenizer

        check_sums(self.folder)
        session = open_session(self.folder / self._graph)
        vocabulary = self.folder / "tokenizer.json"
        try:
            tokenizer = Tokenizer.from_file(str(vocabulary))
        except Exception as error:
            raise JudgeError(f"the tokenizer {vocabulary} cannot be read: {error}") from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        start, end = (tokenizer.token_to_id(token) for token in self.end_tokens)
        if start is None or end is None:
            raise JudgeError(f"{vocabulary} has no {' and '.join(self.end_tokens)} tokens")
        self._ends = (start, end)
        self._outputs = [output.name for output in session.get_outputs()]
        self._tokenizer = tokenizer
        self._pool = self._new_pool()
        self._session = session

    def _new_pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.threads, thread_name_prefix="judge")

    def _forked(self) -> None:
        """Replace what does not live on in a forked child: threads, and whoever held the lock."""
        self._lock = threading.Lock()
        if self._pool is not None:
            self._pool = self._new_pool()


def _after_fork() -> None:
    for model in list(_models):
        model._forked()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


class Running:
    """Sequences on their way through a model."""

    def __init__(
        self,
        model: OnnxTextModel,
        count: int,
        tasks: Iterable[tuple[list[int], Future[list[list[NDArray[np.float32]]]]]],
    ) -> None:
        self._model = model
        self._count = count
        self._tasks = list(tasks)

    def result(self) -> dict[str, NDArray[np.float32]]:
        """Wait for the outputs of whole sequences, by name, [n, width], in the order of the input.

        Raises:
            JudgeError: The model failed or gave numbers that are not finite.
        """
        rows = self.rows()
        if not rows:
            return {name: np.zeros((0, 0), np.float32) for name in self._model.outputs}
        wide = [name for name, values in rows[0].items() if values.ndim == 1]
        return {name: np.stack([row[name] for row in rows]) for name in wide}

    def rows(self) -> list[dict[str, NDArray[np.float32]]]:
        """Wait for the outputs of each sequence, by name: [width], or [tokens, width] of tokens.

        Raises:
            JudgeError: The model failed or gave numbers that are not finite.
        """
        rows: list[list[NDArray[np.float32]]] = [[] for _ in range(self._count)]
        try:
            for group, task in self._tasks:
                for index, outputs in zip(group, task.result(), strict=True):
                    rows[index] = outputs
        except Exception as error:
            raise JudgeError(f"the model in {self._model.folder} failed: {error}") from error
        finally:
            for _, task in self._tasks:
                task.cancel()
        names = self._model.outputs
        for row in rows:
            for name, values in zip(names, row, strict=True):
                if not np.isfinite(values).all():
                    raise JudgeError(
                        f"the model in {self._model.folder} gave numbers that are not finite "
                        f"in {name!r}; its file may be damaged"
                    )
        return [{name: item[0] for name, item in zip(names, row, strict=True)} for row in rows]


def _groups(
    order: Sequence[int], sequences: Sequence[Segments], threads: int
) -> Iterable[list[int]]:
    """Cut into groups of about equal cost, at least one for each thread."""
    share = sum(sequence.length for sequence in sequences) / threads
    group: list[int] = []
    tokens = 0
    for index in order:
        if group and tokens + sequences[index].length / 2 > min(GROUP_TOKENS, share):
            yield group
            group, tokens = [], 0
        group.append(index)
        tokens += sequences[index].length
    if group:
        yield group


def _cores() -> int:
    """Processors this process may use, or as many as ``OMP_NUM_THREADS`` allows."""
    cores, allowed = usable_cpus(), os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, int(allowed))) if allowed.isdecimal() else cores
