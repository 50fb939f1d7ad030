"""Runs one case by each way in, in this process, over real sockets and files."""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import mcp
import uvicorn

from benchmarks.faults.disk import failing_log
from benchmarks.faults.facts import DEADLINE_S, Case
from benchmarks.faults.files import run_bulk_case, run_load_case
from benchmarks.faults.seen import Began, Seen, seen_answers, seen_error, seen_reply
from chains.gateway import GatewaySettings, create_app
from chains.mcp_server import mcp_server
from guardrail import STRICT, Guardrail, GuardrailConfig, Policy
from guardrail.bulk.scorer import release
from guardrail.core.errors import GuardrailError
from guardrail.engine.recording import WAIT_S
from guardrail.log.records import open_log
from kg import endpoint

__all__ = ["GATEWAY_S", "Ways", "config_of"]

REPLY_BYTES = 1 << 20
GATEWAY_S = DEADLINE_S + 0.5
"""Seconds for one exchange of the gateway: a little more than for the verdict alone."""


def config_of(url: str, **fields: object) -> GuardrailConfig:
    """The settings of the bench: the graph, the model and the judge are those that fail.

    Args:
        url: Address of the stand-in server.
        fields: Other settings.
    """
    os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{url}/v1"}
    # Faults come faster here than in use, and no endpoint is paused for them.
    endpoint.BACKOFF_S, endpoint.CONNECTIONS = 0.05, 16
    endpoint.FAILURES, endpoint.MAX_BYTES = sys.maxsize, REPLY_BYTES
    endpoint.ATTEMPTS = 2
    limits: dict[str, object] = {"deadline_s": 1.8, "cache": None}
    graph = {"location": f"{url}/sparql", "profile": "wikidata-mirror", "endpoint": limits}
    settings: dict[str, object] = {"graph": graph, "model": "openai:faults"}
    settings |= {"judge": "benchmarks.faults.judge:FaultyJudge", "limits": {"concurrency": 250}}
    settings["policy"] = STRICT.changed(deadline_s=DEADLINE_S)
    return GuardrailConfig().changed(**{**settings, **fields})


class _Opened:
    """A guardrail and its servers."""

    def __init__(self, guard: Guardrail, client: mcp.Client, gateway: str) -> None:
        self.guard, self.mcp, self.gateway = guard, client, gateway


class Ways:
    """Every way into one guardrail.

    Args:
        url: Address of the stand-in server.
        folder: For files.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._folder = url, folder
        self._files = asyncio.Lock()
        self._made = 0

    async def __aenter__(self) -> Ways:
        self._stack = AsyncExitStack()
        self._http = await self._stack.enter_async_context(httpx.AsyncClient(timeout=60))
        self._opened = await self._stack.enter_async_context(self._open(config_of(self._url)))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        await asyncio.to_thread(release)  # of the jobs in this process

    async def run(self, case: Case, rng: random.Random) -> Seen:
        """Run a case.

        Args:
            case: The case; one whose disk fails must run alone, since its fault is the process's.
            rng: Of what is random in it.
        """
        if case.way in ("bulk", "load"):
            async with self._files:
                self._made += 1
                folder = self._folder / f"{case.way}-{self._made}"
                folder.mkdir()
                if case.way == "load":
                    return await asyncio.to_thread(run_load_case, case, rng, folder)
                config = config_of(self._url)
                return await asyncio.to_thread(run_bulk_case, case, rng, folder, config)
        if case.part == "disk":
            return await self._on_a_failing_disk(case, rng)
        return await self._asked(self._opened, case, rng)

    @asynccontextmanager
    async def _open(self, config: GuardrailConfig) -> AsyncIterator[_Opened]:
        """A guardrail, a gateway and an MCP server round it."""
        async with AsyncExitStack() as stack:
            guard = await stack.enter_async_context(Guardrail(config))
            guard.warm_up()
            settings = GatewaySettings(upstream=f"{self._url}/v1", timeout_s=GATEWAY_S)
            server = uvicorn.Server(
                uvicorn.Config(create_app(guard, settings), log_level="critical")
            )
            with socket.socket() as listening:
                listening.bind(("127.0.0.1", 0))
                port = listening.getsockname()[1]
                serving = asyncio.create_task(server.serve(sockets=[listening]))
                while not server.started:
                    await asyncio.sleep(0.01)
                try:
                    client = await stack.enter_async_context(mcp.Client(mcp_server(guard)))
                    yield _Opened(guard, client, f"http://127.0.0.1:{port}")
                finally:
                    server.should_exit = True
                    await serving

    async def _on_a_failing_disk(self, case: Case, rng: random.Random) -> Seen:
        """One answer before its log fails, one meanwhile, one after."""
        self._made += 1
        path = self._folder / f"log-{self._made}" / "scores.sqlite"
        path.parent.mkdir()
        sound = Case(case.way, "none", "none")
        async with self._open(config_of(self._url, log=path)) as opened:
            seen = [await self._asked(opened, sound, rng)]
            with failing_log(path, case.fault, rng):
                seen.append(await self._asked(opened, case, rng))
                seen.append(await self._asked(opened, case, rng))
            seen.append(await self._asked(opened, sound, rng))
        lost = 0
        if case.fault not in ("garbage", "half"):  # which spoil what is there already
            kept = seen[2:] if case.fault == "reset" else seen
            lost = max(0, sum(item.recorded for item in kept) - _rows(path))
        worst = max(seen, key=lambda item: (item.unjudged, item.wrong, item.bad, item.late_s))
        return worst._replace(lost=lost)

    async def _asked(self, opened: _Opened, case: Case, rng: random.Random) -> Seen:
        began = Began.now()
        try:
            seen = await _ASK[case.way](self, opened, case, rng)
        except Exception as error:  # what comes is what is measured
            seen = seen_error(error)
        allowed = GATEWAY_S if case.way in ("gateway", "stream") else DEADLINE_S
        # An answer waits for its record, too.
        allowed += WAIT_S if case.part == "disk" else 0.0
        return seen.timed(began, allowed)

    async def _check(self, opened: _Opened, case: Case, rng: random.Random) -> Seen:
        answer = await opened.guard.acheck(
            question=case.question, answer=case.answer, policy=_policy(rng)
        )
        return seen_answers(case, [answer])

    async def _ask(self, opened: _Opened, case: Case, rng: random.Random) -> Seen:
        answer = await opened.guard.aask(question=case.question, policy=_policy(rng))
        return seen_answers(case, [answer])

    async def _rank(self, opened: _Opened, case: Case, rng: random.Random) -> Seen:
        answers = [case.answer, case.answer.partition(". ")[2], case.answer]
        ranked = await opened.guard.arank(
            question=case.question, answers=answers, policy=_policy(rng)
        )
        return seen_answers(case, ranked)

    async def _mcp(self, opened: _Opened, case: Case, rng: random.Random) -> Seen:
        asked = {"question": case.question, "answer": case.answer, "policy": "strict"}
        result = await opened.mcp.call_tool("check_answer", asked)
        text = "".join(getattr(item, "text", "") for item in result.content)
        if result.is_error:
            typed = "Error executing tool" in text and "Traceback" not in text
            return Seen("typed error" if typed else "untyped error", detail=text)
        fields = json.loads(text)
        message = {"content": fields["text"], "guardrail": fields | {"sentences": ()}}
        seen = seen_reply(case, 200, json.dumps({"choices": [{"message": message}]}))
        # It tells an agent nothing of the log.
        return seen._replace(recorded=False, detail="; ".join(fields["reasons"]))

    async def _whole(self, opened: _Opened, case: Case, rng: random.Random) -> Seen:
        reply = await self._http.post(f"{opened.gateway}/v1/chat/completions", json=_body(case))
        return seen_reply(case, reply.status_code, reply.text)

    async def _stream(self, opened: _Opened, case: Case, rng: random.Random) -> Seen:
        body = _body(case) | {"stream": True}
        came, status, whole = b"", 0, True
        url = f"{opened.gateway}/v1/chat/completions"
        try:
            async with self._http.stream("POST", url, json=body) as reply:
                status = reply.status_code
                async for piece in reply.aiter_raw():
                    came += piece
        except httpx.TransportError:
            whole = False
        return seen_reply(case, status, came.decode(errors="replace"), whole=whole)


_ASK = {
    "check": Ways._check,
    "ask": Ways._ask,
    "rank": Ways._rank,
    "gateway": Ways._whole,
    "stream": Ways._stream,
    "mcp": Ways._mcp,
}


def _policy(rng: random.Random) -> Policy:
    policy = STRICT.changed(deadline_s=DEADLINE_S)
    return policy.changed(unavailable="raise") if rng.random() < 0.5 else policy


def _body(case: Case) -> dict[str, object]:
    return {"model": "faults", "messages": [{"role": "user", "content": case.question}]}


def _rows(path: Path) -> int:
    """Records in a log; 0 where it cannot be read."""
    try:
        log = open_log(path, read_only=True)
    except GuardrailError:
        return 0
    try:
        return sum(1 for _ in log.records())
    except GuardrailError:
        return 0
    finally:
        log.close()
