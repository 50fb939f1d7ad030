"""Runs an ONNX text model on the CPU: one forward pass a sequence, many passes at once.

8-bit kernels with dynamic activation scales take one scale for a whole batch, so that a pair's
result would depend on its neighbours. Here every sequence has a pass of its own: results are
identical bit for bit whatever else is judged, no padding is computed, and a pool of single-threaded
passes keeps all cores busy without barriers.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from guardrail.core.workers import usable_cpus
from judges.letters import readable, without_unknown_symbols

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

Output = TypeVar("Output")

WEIGHTS = Path(__file__).resolve().parent / "weights"
"""Folder of the models that come with the package."""

SAFE_WEIGHT = 63
"""Largest 8-bit weight of the shipped files. On x86 processors without VNNI onnxruntime multiplies
unsigned activations by signed weights two at a time and adds both products in signed 16 bits:
2 · 255 · 63 = 32,130 fits, larger weights may saturate."""

SUMS = "SHA256SUMS"
"""Name of the file with a folder's checksums, in the form that ``sha256sum --check`` reads."""

Segments = Sequence[Sequence[int]]
"""One input sequence: token ids of a text; of a second one of a pair; of the pair's context."""

Row = dict[str, NDArray[np.float32]]
"""Outputs of one sequence by name."""


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
    options.log_severity_level = 3  # errors: warnings on graph clean-up are of no use to a user
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

    Attributes:
        outputs: Names of the model's outputs, once it is loaded.
        ends: Ids of the tokens that start and end a sequence, once it is loaded.
        unknown: Id of the token for unknown words, once it is loaded; None if there is none.
    """

    _graph: ClassVar[str] = "model.onnx"
    end_tokens: ClassVar[tuple[str, str]] = ("[CLS]", "[SEP]")
    outputs: tuple[str, ...]
    ends: tuple[int, int]
    unknown: int | None
    _session: InferenceSession

    def __init__(self, folder: Path, *, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ValueError(f"threads is at least 1, not {threads}")
        self.folder = folder
        self.threads = threads or _cores()
        self._tokenizer: Tokenizer | None = None
        _models.add(self)
        self._start_threads()

    def _start_threads(self) -> None:
        """Make a lock and threads: a forked child lacks its parent's threads and lock holder."""
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="judge")

    def warm_up(self) -> None:
        """Load model and tokenizer; later calls do nothing.

        Raises:
            JudgeError: A file is missing, cannot be read, or does not match its checksum.
        """
        self._loaded_tokenizer()

    def token(self, text: str) -> int | None:
        """Id of a token by its text; None if it is not in the vocabulary."""
        found: int | None = self._loaded_tokenizer().token_to_id(text)
        return found

    def offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Offsets (start, end) of the tokens of n texts."""
        read = [text if text.isascii() else self.readable(text) for text in texts]
        encodings = self._loaded_tokenizer().encode_batch(read, add_special_tokens=False)
        return [encoding.offsets for encoding in encodings]

    def tokenize(self, texts: Iterable[str]) -> list[list[int]]:
        """Token ids of n texts, without special tokens and without truncation."""
        read = [text if text.isascii() else self.readable(text) for text in texts]
        encodings = self._loaded_tokenizer().encode_batch_fast(read, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def ids(self, texts: Iterable[str]) -> dict[str, list[int]]:
        """Token ids of the distinct texts among n, by text."""
        different = dict.fromkeys(texts)
        return dict(zip(different, self.tokenize(different), strict=True))

    def readable(self, text: str) -> str:
        """The text as the model reads it, with the same offsets."""
        if text.isascii():
            return text
        return without_unknown_symbols(readable(text), lambda sign: self.token(sign) is not None)

    def start(self, sequences: Sequence[Segments]) -> list[Future[Row]]:
        """Start n sequences in the pool, the longest first, and return without waiting."""
        self.warm_up()
        lengths = [sum(map(len, segments)) for segments in sequences]
        order = sorted(range(len(sequences)), key=lambda place: -lengths[place])
        started = {place: self._pool.submit(self._run, sequences[place]) for place in order}
        return [started[place] for place in range(len(sequences))]

    def rows(self, started: Sequence[Future[Row]]) -> list[Row]:
        """Wait for the outputs of each sequence, by name: [width], or [tokens, width] of tokens.

        Raises:
            JudgeError: The model failed or gave numbers that are not finite.
        """
        with self.awaiting(started):
            return [future.result() for future in started]

    def whole(self, started: Sequence[Future[Row]]) -> dict[str, NDArray[np.float32]]:
        """Wait for the outputs of whole sequences, by name, [n, width]; see ``rows``."""
        rows = self.rows(started)
        wide = [name for name, values in rows[0].items() if values.ndim == 1] if rows else []
        return {name: np.stack([row[name] for row in rows]) for name in wide}

    @contextmanager
    def awaiting(self, started: Collection[Future[Output]]) -> Iterator[None]:
        """Wait for passes in a block; one that fails cancels the others.

        Raises:
            JudgeError: The model failed.
        """
        try:
            yield
        except JudgeError:
            raise
        except Exception as error:
            raise JudgeError(f"the model in {self.folder} failed: {error}") from error
        finally:
            for future in started:
                future.cancel()

    def require_finite(self, name: str, values: NDArray[np.float32]) -> None:
        """Raise a JudgeError if an output has numbers that are not finite."""
        if not np.isfinite(values).all():
            raise JudgeError(
                f"the model in {self.folder} gave numbers that are not finite in {name!r}; "
                "its file may be damaged"
            )

    def _run(self, segments: Segments) -> Row:
        ids, types = [self.ends[0]], [0]
        for number, segment in enumerate(segments):
            ids += [*segment, self.ends[1]]
            types += [number] * (len(segment) + 1)
        feed = {
            "input_ids": np.array([ids], np.int64),
            "attention_mask": np.ones((1, len(ids)), np.int64),
            "token_type_ids": np.array([types], np.int64),
        }
        outputs = zip(self.outputs, self._session.run(self.outputs, feed), strict=True)
        row = {name: values[0] for name, values in outputs}
        for name, values in row.items():
            self.require_finite(name, values)
        return row

    def _loaded_tokenizer(self) -> Tokenizer:
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = self._load()
            return self._tokenizer

    def _load(self) -> Tokenizer:
        from tokenizers import Tokenizer

        check_sums(self.folder)
        self._session = open_session(self.folder / self._graph)
        self.outputs = tuple(output.name for output in self._session.get_outputs())
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
        self.ends = (start, end)
        self.unknown = tokenizer.token_to_id("[UNK]")
        return tokenizer


def _after_fork() -> None:
    for model in list(_models):
        model._start_threads()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


def _cores() -> int:
    """Processors this process may use, or as many as ``OMP_NUM_THREADS`` allows."""
    cores, allowed = usable_cpus(), os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, int(allowed))) if allowed.isdecimal() else cores


# --- Checksums ----------------------------------------------------------------------------------


def check_sums(folder: Path) -> None:
    """Compare the files of a folder with its checksums.

    Raises:
        JudgeError: The folder has no checksums, they lack a file, or a file is missing, cannot be
            read, or was changed.
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
    unread = {SUMS, "README.md"}
    return sorted(name for name in names if name not in unread and not name.startswith("."))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
