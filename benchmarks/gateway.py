"""How much the gateway carries: requests a second, latencies, and memory over many requests.

    python -m benchmarks.gateway [--requests 640] [--clients 1 16 64] [--workers 1]
        [--judge none] [--stream [--pause 20]] [--json]

Starts an upstream and a gateway in front of it, each in a process of its own, and calls from this
one first the upstream alone and then the gateway. The upstream answers at once; with ``--pause`` it
streams 64 deltas that many milliseconds apart. Latencies are wall times in milliseconds; memory is
the resident set of the gateway's processes in MiB, and ``cpu s`` the processor time that they took
in a step. ``--url`` measures a gateway that runs already.

What the gateway adds is the difference of the two, percentile by percentile. Requests/s per core
are requests divided by the processor seconds that the gateway took for them, which is the same as
their rate divided by the cores it kept busy. One number stands for the gateway: that of the step
with the most requests/s among those to whose p99 it adds less than a second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import httpx

from guardrail.core.errors import GuardrailError, InputError
from guardrail.core.types import Value

__all__ = ["AddedStep", "LoadReport", "LoadStep", "compared", "measure"]

QUESTION = "Who was Mary Shelley, the wife of Percy Bysshe Shelley?"
ANSWER = "Mary Shelley was a travel writer. Her mother was Mary Wollstonecraft."
STREAMED = (
    "Mary Shelley was a travel writer. She was born in London. Her father was William Godwin. "
    "Her husband was Percy Bysshe Shelley. Her mother was Mary Wollstonecraft."
)
DELTAS = 64
HEADS = (
    "clients", "requests", "errors", "req/s", "p50 ms",
    "p95 ms", "p99 ms", "first ms", "MiB", "cpu s",
)  # fmt: skip
ADDED_HEADS = ("clients", "first ms", "p50 ms", "p99 ms", "req/s", "per core")
MOST_ADDED_MS = 1000.0
"""Bound on what the gateway adds to the p99 of a step that counts, milliseconds."""
START_S = 300.0
"""Seconds that a gateway gets to load its judge and its graph."""


class LoadStep(Value):
    """What was measured with one number of clients at once.

    Attributes:
        clients: Requests in work at once.
        requests: Requests sent.
        errors: Those without status 200 or without an answer.
        per_second: Requests a second.
        p50_ms: Median wall time of a request, milliseconds.
        p95_ms: 95th percentile.
        p99_ms: 99th percentile.
        first_ms: Median time to the first text; None without ``--stream``.
        memory_mib: Resident memory of the gateway afterwards; None where it is not ours.
        cpu_s: Processor seconds of the gateway in this step; None where it is not ours.
    """

    clients: int
    requests: int
    errors: int
    per_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    first_ms: float | None
    memory_mib: float | None
    cpu_s: float | None


class AddedStep(Value):
    """What the gateway adds with one number of clients at once.

    Attributes:
        clients: Requests in work at once.
        first_ms: Added to the median time to the first text; None without ``--stream``.
        p50_ms: Added to the median wall time, milliseconds.
        p99_ms: Added to the 99th percentile.
        per_second: Requests a second through the gateway.
        per_core: Requests for each processor second of the gateway; None where that is not known.
    """

    clients: int
    first_ms: float | None
    p50_ms: float
    p99_ms: float
    per_second: float
    per_core: float | None


class LoadReport(Value):
    """What was measured, in the order it was run.

    Attributes:
        memory_mib: Resident memory of the gateway before the first step.
        steps: Through the gateway.
        upstream: The same calls without the gateway; empty with ``--url``.
        added: What the gateway adds to them, step by step.
        per_core: ``per_core`` of the step with the most requests a second among those without
            errors whose added p99 is below one second; None where there is none.
    """

    memory_mib: float | None
    steps: tuple[LoadStep, ...]
    upstream: tuple[LoadStep, ...] = ()
    added: tuple[AddedStep, ...] = ()
    per_core: float | None = None


def compared(report: LoadReport, upstream: Sequence[LoadStep]) -> LoadReport:
    """The report with the same steps of the upstream alone, and the difference.

    Args:
        report: Of the gateway.
        upstream: One step for each of the report's, with as many clients.
    """
    added, counting = [], []
    for through, alone in zip(report.steps, upstream, strict=True):
        first_ms = None
        if through.first_ms is not None and alone.first_ms is not None:
            first_ms = through.first_ms - alone.first_ms
        step = AddedStep(
            clients=through.clients,
            first_ms=first_ms,
            p50_ms=through.p50_ms - alone.p50_ms,
            p99_ms=through.p99_ms - alone.p99_ms,
            per_second=through.per_second,
            per_core=through.requests / through.cpu_s if through.cpu_s else None,
        )
        added.append(step)
        if step.p99_ms < MOST_ADDED_MS and not through.errors:
            counting.append(step)
    best = max(counting, key=lambda step: step.per_second, default=None)
    changes = {
        "upstream": tuple(upstream),
        "added": tuple(added),
        "per_core": best.per_core if best else None,
    }
    return report.model_copy(update=changes)


async def measure(
    url: str, clients: Sequence[int], requests: int, *, stream: bool = False, pid: int | None = None
) -> LoadReport:
    """Load a gateway.

    Args:
        url: Its address, without ``/v1``.
        clients: Numbers of requests in work at once, one step each.
        requests: Requests of each step.
        stream: Whether streams are asked for.
        pid: The gateway's process, to read its memory and processor time.
    """
    body = {"model": "load", "messages": [{"role": "user", "content": QUESTION}], "stream": stream}
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=max(clients))
    steps = []
    async with httpx.AsyncClient(base_url=url, timeout=300, limits=limits) as client:
        await _call(client, body)
        before = _memory_mib(pid)
        for count in clients:
            steps.append(await _step(client, body, count, requests, pid))
    return LoadReport(memory_mib=before, steps=tuple(steps))


async def _step(
    client: httpx.AsyncClient, body: dict[str, object], count: int, requests: int, pid: int | None
) -> LoadStep:
    todo = iter(range(requests))
    done: list[tuple[float, float, bool]] = []

    async def one_client() -> None:
        for _ in todo:
            done.append(await _call(client, body))

    busy = _processor_s(pid)
    begin = time.perf_counter()
    await asyncio.gather(*(one_client() for _ in range(count)))
    spent = time.perf_counter() - begin
    busy_after = _processor_s(pid)
    walls = [wall for wall, _, _ in done]
    cuts = statistics.quantiles(walls, n=100, method="inclusive")
    return LoadStep(
        clients=count,
        requests=requests,
        errors=sum(not well for _, _, well in done),
        per_second=requests / spent,
        p50_ms=cuts[49] * 1000,
        p95_ms=cuts[94] * 1000,
        p99_ms=cuts[98] * 1000,
        first_ms=statistics.median(first for _, first, _ in done) * 1000
        if body["stream"]
        else None,
        memory_mib=_memory_mib(pid),
        cpu_s=None if busy is None or busy_after is None else busy_after - busy,
    )


async def _call(client: httpx.AsyncClient, body: dict[str, object]) -> tuple[float, float, bool]:
    """Wall time, time to the first judged text, and whether there was an answer; seconds."""
    begin = time.perf_counter()
    first, seen = 0.0, b""
    try:
        async with client.stream("POST", "/v1/chat/completions", json=body) as response:
            async for chunk in response.aiter_bytes():
                seen += chunk
                if not first and b'"content"' in seen:
                    first = time.perf_counter() - begin
            end = b"[DONE]" if body["stream"] else b"Wollstonecraft"
            well = response.status_code == 200 and end in seen
    except httpx.HTTPError:
        well = False
    return time.perf_counter() - begin, first, well


def _memory_mib(pid: int | None) -> float | None:
    """Resident memory of a process and its children, where /proc tells it."""
    family = _family(pid)
    if family is None:
        return None
    pages = 0
    for item in family:
        try:
            pages += int(Path(f"/proc/{item}/statm").read_text().split()[1])
        except OSError:
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _processor_s(pid: int | None) -> float | None:
    """Processor seconds of a process and its children so far, where /proc tells them."""
    family = _family(pid)
    if family is None:
        return None
    ticks = sum(int(fields[11]) + int(fields[12]) for fields in family.values())
    return ticks / os.sysconf("SC_CLK_TCK")


def _family(pid: int | None) -> dict[int, list[str]] | None:
    """A process and its children with their fields of /proc/PID/stat from the third on."""
    if pid is None or not Path("/proc").is_dir():
        return None
    known = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            known[int(status.parent.name)] = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
    family = {pid}
    while more := {item for item, fields in known.items() if int(fields[1]) in family} - family:
        family |= more
    return {item: known[item] for item in family if item in known}


# --- the two servers ---------------------------------------------------------------------


def _upstream(port: int, pause: float) -> None:
    """Serve a model until killed; its streams pause that many milliseconds before each delta."""
    from collections.abc import AsyncIterator

    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.routing import Route

    head = {"id": "load", "created": 0, "model": "load"}
    message = {"role": "assistant", "content": ANSWER}
    whole = head | {
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
    }
    cuts = [len(STREAMED) * place // DELTAS for place in range(DELTAS + 1)]
    deltas = [{"content": STREAMED[start:end]} for start, end in pairwise(cuts)]
    choices = [
        *({"index": 0, "delta": delta} for delta in deltas),
        {"index": 0, "delta": {}, "finish_reason": "stop"},
    ]
    chunks = [head | {"object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]

    async def stream() -> AsyncIterator[str]:
        for event in events:
            if pause:
                await asyncio.sleep(pause / 1000)
            yield event
        yield "data: [DONE]\n\n"

    async def chat(request: Request) -> Response:
        if (await request.json()).get("stream"):
            return StreamingResponse(stream(), media_type="text/event-stream")
        return JSONResponse(whole)

    app = Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])
    uvicorn.run(app, port=port, log_level="critical")


@contextmanager
def _servers(workers: int, judge: str, pause: float) -> Iterator[tuple[str, str, int]]:
    """Start both; yields the addresses of upstream and gateway, and the gateway's process."""
    upstream, gateway = _free_port(), _free_port()
    # The current folder stays importable, as it is for this process.
    module = "import sys; sys.path[:0] = ['']; from benchmarks import gateway; "
    commands = [
        [sys.executable, "-c", f"{module}gateway._upstream({upstream}, {pause})"],
        [
            sys.executable, "-c", "from guardrail.cli import main; main()", "serve",
            "--upstream", f"http://127.0.0.1:{upstream}/v1", "--port", str(gateway),
            "--workers", str(workers), "--judge", judge,
        ],
    ]  # fmt: skip
    started = [
        subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for command in commands
    ]
    url = f"http://127.0.0.1:{gateway}"
    try:
        end = time.monotonic() + START_S
        while not _is_ready(url):
            if time.monotonic() > end or started[1].poll() is not None:
                raise GuardrailError('the gateway did not start; try "guardrail serve" by hand')
            time.sleep(0.5)
        yield f"http://127.0.0.1:{upstream}", url, started[1].pid
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=10).status_code == 200
    except httpx.HTTPError:
        return False


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _table(report: LoadReport) -> str:
    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.1f}"

    def row(cells: Iterable[str]) -> str:
        return " ".join(f"{cell:>9}" for cell in cells)

    def rows(steps: Sequence[LoadStep]) -> Iterator[str]:
        yield row(HEADS)
        for step in steps:
            counts = (step.clients, step.requests, step.errors)
            latencies = (step.p50_ms, step.p95_ms, step.p99_ms, step.first_ms)
            values = (step.per_second, *latencies, step.memory_mib, step.cpu_s)
            yield row([*map(str, counts), *map(number, values)])

    lines = [f"memory before: {number(report.memory_mib)} MiB", *rows(report.steps)]
    if report.upstream:
        lines += ["", "the upstream alone", *rows(report.upstream)]
        lines += ["", "added by the gateway", row(ADDED_HEADS)]
        for step in report.added:
            times = (step.first_ms, step.p50_ms, step.p99_ms)
            values = (*times, step.per_second, step.per_core)
            lines.append(row([str(step.clients), *map(number, values)]))
        bound = f"with less than {MOST_ADDED_MS:g} ms added to p99"
        lines.append(f"requests/s per core, {bound}: {number(report.per_core)}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line described at the top of this module."""
    parser = argparse.ArgumentParser(description="Load the HTTP gateway.")
    parser.add_argument("--requests", type=int, default=640, help="requests of each step")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--workers", type=int, default=1, help="gateway processes")
    parser.add_argument("--judge", default="onnx", help="judge by name; none for exact evidence")
    parser.add_argument("--stream", action="store_true", help="ask for streams")
    parser.add_argument(
        "--pause", type=float, default=0.0, help="milliseconds before each of the stream's deltas"
    )
    parser.add_argument("--url", help="a gateway that runs already, without /v1")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    if options.requests < 2 or min(options.clients) < 1:
        raise InputError("at least two requests and one client are needed")
    asked = (options.clients, options.requests)
    if options.url:
        report = asyncio.run(measure(options.url, *asked, stream=options.stream))
    else:
        with _servers(options.workers, options.judge, options.pause) as (upstream, gateway, pid):
            alone = asyncio.run(measure(upstream, *asked, stream=options.stream))
            report = asyncio.run(measure(gateway, *asked, stream=options.stream, pid=pid))
        report = compared(report, alone.steps)
    print(report.model_dump_json(indent=2) if options.json else _table(report))


if __name__ == "__main__":
    main()
