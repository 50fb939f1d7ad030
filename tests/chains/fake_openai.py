"""A server that speaks the OpenAI protocol, for tests; the name of the model selects its answer.

``plain`` answers with one false sentence among true ones; ``tools`` calls a tool; ``json`` and
``broken-json`` answer JSON mode; ``error-401`` and so on fail; ``cut`` breaks off in the middle;
``slow`` never answers, and ``held`` once ``let_go`` is set.
"""

import asyncio
import json
import random
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import uvicorn
from openai import AsyncOpenAI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from chains import EvidenceSettings, guard_openai
from chains.gateway import GatewaySettings, create_app
from tests.chains.conftest import ANSWER, CANARY, FALSE_MIDDLE, TRUE_END, TRUE_START
from tests.clock import PATIENCE_S, until

GOOD, FALSE, MORE = TRUE_START, FALSE_MIDDLE, TRUE_END
JSON_ANSWER = '{"name": "Mary Shelley", "note": "any text"}'
LOOK_UP = {"name": "look_up", "arguments": '{"name": "Mary Shelley"}'}
TOOL_CALL = {"id": "call_1", "type": "function", "function": LOOK_UP}
USAGE = {"prompt_tokens": 12, "completion_tokens": 30, "total_tokens": 42}
BORN = f"Mary Shelley was born in {CANARY} on 4 May 1999."
CANDIDATES = [BORN, GOOD, MORE + " " + FALSE, ANSWER, FALSE]
TEXTS = {"json": JSON_ANSWER, "tools": "I will look that up.", "false-only": FALSE}
SHOP_QUESTIONS = ("Can I send it back?",)
SHOP_ANSWER = "You can send a bicycle back within 30 days of delivery."
"""Questions in the pages of the documentation, and their answer."""
JUDGED = {"Ann's sister runs the shop.": "A"}
"""Its labels as a judge; any other sentence is unsupported."""
THOUGHT = f"Perhaps {CANARY}."
SECRETS = {
    "reasoning_content": THOUGHT, "audio": {"transcript": FALSE}, "x_debug": {"raw": ANSWER},
}  # fmt: skip


class FakeOpenAI:
    """The server, and its requests; ``seed`` is that of the random sizes of a stream's chunks."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.seed = 0
        self.cancelled = threading.Event()
        self.let_go = threading.Event()
        self.app = Starlette(
            routes=[
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
                Route("/v1/deployments/{name}/chat/completions", self.chat, methods=["POST"]),
                Route("/v1/responses", self.responses, methods=["POST"]),
                Route("/v1/completions", self.legacy, methods=["POST"]),
                Route("/v1/embeddings", self.embeddings, methods=["POST"]),
                Route("/v1/models", self.models),
            ]
        )

    async def _asked(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        return body

    async def models(self, request: Request) -> Response:
        self.headers.append(dict(request.headers))
        model = {"id": "plain", "object": "model", "created": 0, "owned_by": "tests"}
        return JSONResponse({"object": "list", "data": [model]})

    async def legacy(self, request: Request) -> Response:
        return JSONResponse({"object": "text_completion", "choices": [{"text": ANSWER}]})

    async def embeddings(self, request: Request) -> Response:
        await self._asked(request)
        data = [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return JSONResponse({"object": "list", "data": data, "model": "e", "usage": usage})

    async def chat(self, request: Request) -> Response:
        body = await self._asked(request)
        model = body["model"]
        if model.startswith("error-"):
            return self._error(int(model.removeprefix("error-")))
        if model == "one-slot" and body.get("n", 1) > 1:
            return self._error(400)
        if model == "slow":
            await self._until_gone(request)
        while model == "held" and not self.let_go.is_set():
            await asyncio.sleep(0.02)
        head = {"id": "chatcmpl-1", "created": 1, "model": model, "x_debug": SECRETS}
        if body.get("stream"):
            events = self._cut_events if model == "cut" else self._chat_events
            return stream_reply(self._chunked(events(head, body)))
        choices = [
            {
                "index": index,
                "finish_reason": "tool_calls" if model == "tools" else "stop",
                "logprobs": {"content": [{"token": text, "logprob": 0.0}], "refusal": None},
                "message": {"role": "assistant", "content": text, "refusal": None, **SECRETS}
                | ({"tool_calls": [TOOL_CALL]} if model == "tools" else {}),
            }
            for index, text in enumerate(self._texts(body))
        ]
        whole = head | {"object": "chat.completion", "choices": choices, "usage": USAGE}
        return JSONResponse(whole, headers={"x-request-id": "req_7"})

    def _texts(self, body: dict[str, Any]) -> list[str]:
        return CANDIDATES[: body["n"]] if body.get("n", 1) > 1 else [self._text(body)]

    def _text(self, body: dict[str, Any]) -> str:
        if any(question in str(body["messages"][-1:]) for question in SHOP_QUESTIONS):
            return SHOP_ANSWER
        if "<sentence>" in str(body["messages"][-1]["content"]):
            asked = body["messages"][-1]["content"]
            found = (letter for text, letter in JUDGED.items() if f"<sentence>\n{text}" in asked)
            return next(found, "B")
        if body["model"] == "learns" and len(body["messages"]) > 1:
            return GOOD
        return TEXTS.get(body["model"], ANSWER)

    async def _chat_events(self, head: dict[str, Any], body: dict[str, Any]) -> AsyncIterator[str]:
        rng = random.Random(self.seed)
        head = head | {"object": "chat.completion.chunk"}

        def event(delta: dict[str, Any], finish: str | None = None, index: int = 0) -> str:
            choice = {"index": index, "delta": delta, "finish_reason": finish, "logprobs": None}
            return f"data: {json.dumps(head | {'choices': [choice]})}\n\n"

        yield event({"role": "assistant", "content": ""})
        yield event({"reasoning_content": THOUGHT})
        for piece in pieces(self._text(body), rng):
            yield event({"content": piece, "audio": {"transcript": piece}})
        if body["model"] == "tools":
            first = TOOL_CALL | {"index": 0, "function": LOOK_UP | {"arguments": ""}}
            yield event({"tool_calls": [first]})
            for part in ('{"name": ', '"Mary Shelley"}'):
                yield event({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
        yield event({}, "tool_calls" if body["model"] == "tools" else "stop")
        if (body.get("stream_options") or {}).get("include_usage"):
            yield f"data: {json.dumps(head | {'choices': [], 'usage': USAGE})}\n\n"
        yield "data: [DONE]\n\n"

    async def _cut_events(self, head: dict[str, Any], body: dict[str, Any]) -> AsyncIterator[str]:
        count = 0
        async for event in self._chat_events(head, body | {"model": "plain"}):
            yield event
            count += 1
            if count == 6:
                await asyncio.sleep(0.05)
                raise ConnectionResetError("the server breaks off, as the test asks")

    async def _chunked(self, events: AsyncIterator[str]) -> AsyncIterator[bytes]:
        """The same bytes in chunks that end anywhere."""
        rng = random.Random(self.seed)
        async for event in events:
            for piece in pieces(event.encode(), rng, 200):
                yield piece

    async def _until_gone(self, request: Request) -> None:
        while not await request.is_disconnected():
            await asyncio.sleep(0.05)
        self.cancelled.set()

    async def responses(self, request: Request) -> Response:
        body = await self._asked(request)
        if body.get("stream"):
            return stream_reply(self._chunked(self._response_events(*self._response(body))))
        return JSONResponse(self._response(body)[0])

    def _response_text(self, body: dict[str, Any]) -> str:
        return TEXTS.get(body["model"], ANSWER)

    def _response(self, body: dict[str, Any]) -> tuple[dict[str, Any], str]:
        text = self._response_text(body)
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
            "content": [part],
        }  # fmt: skip
        summary = [{"type": "summary_text", "text": FALSE}]
        thought = {"id": "rs_1", "type": "reasoning", "summary": summary}
        whole = {
            "id": "resp_1", "object": "response", "created_at": 1, "status": "completed",
            "model": body["model"], "output": [thought, message], "output_text": text,
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        }  # fmt: skip
        return whole, text

    async def _response_events(self, whole: dict[str, Any], text: str) -> AsyncIterator[str]:
        thought, message = whole["output"]
        begun = whole | {"output": [], "status": "in_progress"}
        added = message | {"content": [], "status": "in_progress"}
        where = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": begun},
            {"type": "response.in_progress", "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": thought},
            {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": FALSE},
            {"type": "response.output_item.done", "output_index": 0, "item": thought},
            {"type": "response.output_item.added", "output_index": 1, "item": added},
            {"type": "response.content_part.added", **where, "part": part},
        ]
        events += [
            *(
                {"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []}
                for piece in pieces(text, random.Random(self.seed))
            ),
            {"type": "response.output_text.done", **where, "text": text, "logprobs": []},
            {"type": "response.content_part.done", **where, "part": part | {"text": text}},
            {"type": "response.output_item.done", "output_index": 1, "item": message},
            {"type": "response.completed", "response": whole},
        ]
        for number, event in enumerate(events):
            numbered = event | {"sequence_number": number}
            yield f"event: {event['type']}\ndata: {json.dumps(numbered)}\n\n"

    def _error(self, status: int) -> Response:
        error = {"message": f"simulated failure with {status}", "type": "test", "param": None}
        headers = {"retry-after": "7"} if status == 429 else {}
        return JSONResponse({"error": error | {"code": "simulated"}}, status, headers=headers)


def stream_reply(content: AsyncIterator[Any]) -> Response:
    return StreamingResponse(content, media_type="text/event-stream")


def client_over(way, guard, app, *, policy="strict", style="footnotes", **more: Any) -> AsyncOpenAI:
    """A client of a model, guarded itself or behind a gateway with the guardrail's policy."""
    http = httpx.AsyncClient(transport=httpx.ASGITransport(app))
    if way == "gateway":
        settings = GatewaySettings(upstream="http://model/v1", style=style, **more)
        gateway = create_app(guard, settings, client=http)
        http = httpx.AsyncClient(transport=httpx.ASGITransport(gateway))
        return AsyncOpenAI(base_url="http://model/v1", api_key="k", http_client=http)
    client = AsyncOpenAI(base_url="http://model/v1", api_key="k", http_client=http)
    if way == "bare":
        return client
    evidence = EvidenceSettings(**{name.removeprefix("evidence_"): it for name, it in more.items()})
    return guard_openai(client, guard, evidence=evidence, policy=policy, style=style)


def pieces(text: Any, rng: random.Random, most: int = 12) -> Iterator[Any]:
    while text:
        size = rng.randint(1, most)
        yield text[:size]
        text = text[size:]


@contextmanager
def served(app: Any, **options: Any) -> Iterator[str]:
    """Serve an app on a free port, with options of the server; yields its address."""
    options = {"log_level": "critical", "timeout_graceful_shutdown": 1} | options
    server = uvicorn.Server(uvicorn.Config(app, port=0, **options))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        threading.Event().wait(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)


def connected(url: str, start: bytes = b"") -> socket.socket:
    """A connection to a server that has sent so much."""
    host, _, port = url.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    connection.sendall(start)
    return connection


def until_ready(url: str) -> None:
    """Wait until a gateway serves in a process of its own."""

    def ready() -> bool:
        try:
            return httpx.get(f"{url}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    until(ready)
