"""Runs an ONNX text model on the CPU: one forward pass a sequence, many passes at once.

8-bit kernels with dynamic activation scales take one scale for a whole batch, so that a pair's
result would depend on its neighbours. Here every sequence has a pass of its own: results are the
same bit for bit whatever else is judged, no token of padding is computed, and a pool of
single-threaded passes keeps all cores busy without waiting at barriers.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from guardrail.core.workers import usable_cpus
from judges.letters import readable, without_unknown_symbols

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

__all__ = [
    "SAFE_WEIGHT",
    "SUMS",
    "WEIGHTS",
    "OnnxTextModel",
    "Segments",
    "check_sums",
    "open_session",
    "softmax",
    "write_sums",
]

WEIGHTS = Path(__file__).resolve().parent / "weights"
"""Folder of the models that come with the package."""

SAFE_WEIGHT = 63
"""Largest 8-bit weight of the shipped files. On x86 processors without VNNI onnxruntime multiplies
unsigned activations by signed weights two at a time and adds both products in signed 16 bits:
2 · 255 · 63 = 32,130 fits, larger weights may saturate."""

SUMS = "SHA256SUMS"
"""Name of the file with a folder's checksums, in the form that ``sha256sum --check`` reads."""

LEFT_OUT = (SUMS, "README.md")
"""Files that no verdict depends on."""

GROUP_TOKENS = 512
"""Tokens per task of the pool: large enough that the cost of scheduling is negligible,
small enough that all cores finish together."""

ERRORS_ONLY = 3
"""onnxruntime's log level: its warnings on graph clean-up are of no use to a user."""

Arrays = list[NDArray[np.float32]]


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

    Products of 8-bit numbers are added exactly on every processor. Files that do not come with
    the package may have weights beyond ``SAFE_WEIGHT``; processors whose kernel would saturate
    take a slower one for them.

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
    if not path.resolve().is_relative_to(WEIGHTS):
        options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise JudgeError(f"the model {path} cannot be read: {error}") from error


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

    @property
    def ends(self) -> tuple[int, int]:
        """Ids of the tokens that start and end a sequence."""
        self.warm_up()
        return self._ends

    def token(self, text: str) -> int | None:
        """Id of a token by its text; None where the vocabulary lacks it."""
        found: int | None = self._loaded_tokenizer().token_to_id(text)
        return found

    def offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Offsets of the tokens of n texts: of first characters and past the last."""
        tokenizer = self._loaded_tokenizer()
        encodings = tokenizer.encode_batch(
            [self.readable(text) for text in texts], add_special_tokens=False
        )
        return [encoding.offsets for encoding in encodings]

    def tokenize(self, texts: Iterable[str]) -> list[list[int]]:
        """Token ids of n texts, without special tokens and without truncation."""
        tokenizer = self._loaded_tokenizer()
        encodings = tokenizer.encode_batch_fast(
            [self.readable(text) for text in texts], add_special_tokens=False
        )
        return [encoding.ids for encoding in encodings]

    def ids(self, texts: Iterable[str]) -> dict[str, list[int]]:
        """Token ids of the distinct texts among n, by text."""
        different = dict.fromkeys(texts)
        return dict(zip(different, self.tokenize(different), strict=True))

    def readable(self, text: str) -> str:
        """What is read of a text; offsets stay."""
        if text.isascii():
            return text
        return without_unknown_symbols(readable(text), lambda sign: self.token(sign) is not None)

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

    def _run_group(self, group: Sequence[Segments]) -> list[Arrays]:
        return [self._run_one(sequence) for sequence in group]

    def _run_one(self, sequence: Segments) -> Arrays:
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
        outputs: Arrays = self._session.run(self._outputs, feed)
        return outputs

    def _loaded_tokenizer(self) -> Tokenizer:
        self.warm_up()
        assert self._tokenizer is not None
        return self._tokenizer

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
        tasks: Sequence[tuple[list[int], Future[list[Arrays]]]],
    ) -> None:
        self._model = model
        self._count = count
        self._tasks = tasks

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
        rows: list[Arrays] = [[] for _ in range(self._count)]
        try:
            for group, task in self._tasks:
                for index, outputs in zip(group, task.result(), strict=True):
                    rows[index] = outputs
        except Exception as error:
            raise JudgeError(f"the model in {self._model.folder} failed: {error}") from error
        finally:
            for _, task in self._tasks:
                task.cancel()
        named = [dict(zip(self._model.outputs, row, strict=True)) for row in rows]
        for row in named:
            for name, values in row.items():
                if not np.isfinite(values).all():
                    raise JudgeError(
                        f"the model in {self._model.folder} gave numbers that are not finite "
                        f"in {name!r}; its file may be damaged"
                    )
        return [{name: values[0] for name, values in row.items()} for row in named]


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


# --- Checksums ----------------------------------------------------------------------------------


def check_sums(folder: Path) -> None:
    """Compare the files of a folder with its checksums.

    Raises:
        JudgeError: The folder has no checksums, they leave a file out, or a file is missing,
            cannot be read, or is not the one that was written.
    """
    sums = folder / SUMS
    write = f"if the files are right, write their checksums: cd {folder} && sha256sum * > {SUMS}"
    if not sums.is_file():
        raise JudgeError(f"the model in {folder} has no {SUMS}, so it is not loaded; {write}")
    try:
        lines = sums.read_text("ascii").splitlines()
        wanted = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
        wanted.pop(SUMS, None)
        unnamed = [name for name in _files(folder) if name not in wanted]
        wrong = [name for name, digest in wanted.items() if _digest(folder / name) != digest]
    except (OSError, UnicodeDecodeError) as error:
        raise JudgeError(f"the files that {sums} names cannot be read: {error}") from error
    if unnamed or wrong:
        raise JudgeError(
            f"{folder / (wrong or unnamed)[0]} is not the file that {SUMS} names: it is damaged or "
            f"was changed; install it again, or {write}"
        )


def write_sums(folder: Path) -> None:
    """Write the checksums of a folder's files, once they are all written."""
    lines = "".join(f"{_digest(folder / name)}  {name}\n" for name in _files(folder))
    (folder / SUMS).write_text(lines, encoding="ascii")


def _files(folder: Path) -> list[str]:
    """Names of the files that verdicts depend on."""
    names = (item.name for item in folder.iterdir() if item.is_file())
    return sorted(name for name in names if name not in LEFT_OUT and not name.startswith("."))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
