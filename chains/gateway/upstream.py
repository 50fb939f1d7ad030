"""The model's server behind the gateway, over one pool of connections, and streams of it."""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from urllib.parse import quote

import anyio
import httpx
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from chains.gateway.requests import (
    PREFIX,
    BrokenOffError,
    RejectedError,
    T,
    UpstreamUnreachableError,
    local_path,
    require_json,
    unless_gone,
)
from chains.gateway.settings import GatewaySettings
from chains.openai_fields import identifier, sealed
from chains.openai_wire import (
    EVENT_STREAM,
    JSON,
    MOST_REPLY_BYTES,
    Reply,
    UnreadableReplyError,
    failed_reply,
    read_body,
    reply_body,
    safe_headers,
)
from guardrail.core.http_clients import reading_environment


class Upstream:
    """Sends requests to the configured server, and to no other."""

    def __init__(self, settings: GatewaySettings, client: httpx.AsyncClient | None) -> None:
        self._settings = settings
        self._azure = (settings.upstream or "").endswith("/openai")
        with reading_environment():
            self._client = client or httpx.AsyncClient(
                timeout=httpx.Timeout(settings.timeout_s, connect=10.0),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
                follow_redirects=False,
            )
        self._probing = asyncio.Lock()
        self._probed = -math.inf
        self._answers = False

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def reachable(self) -> bool:
        """Whether the server answers; probed at most every 5 seconds, with 2 seconds to answer."""
        async with self._probing:
            if time.monotonic() - self._probed > 5.0:
                request = self._client.build_request("GET", f"{self._settings.upstream}/models")
                try:
                    async with asyncio.timeout(2.0), opened(self._client, request):
                        self._answers = True
                except (httpx.HTTPError, TimeoutError):
                    self._answers = False
                self._probed = time.monotonic()
        return self._answers

    def path_of(self, request: Request) -> str:
        """The path and query of a call after the upstream's address.

        An Azure resource gets deployment and version as the caller wrote them; any other server
        gets the deployment as the model.
        """
        path = local_path(request.scope).removeprefix(PREFIX)
        azure = getattr(request.state, "azure", None)
        if azure is None:
            return path + (f"?{request.url.query}" if request.url.query else "")
        if not self._azure:
            return path
        deployment = f"/deployments/{quote(azure.name, safe='')}" if azure.name else ""
        return f"{deployment}{path}" + (f"?{azure.query}" if azure.query else "")

    async def send(self, path: str, headers: Mapping[str, str], body: JSON) -> Reply:
        """Send a JSON request and read the whole reply; see ``open`` and ``read``."""
        content = (await asyncio.to_thread(json.dumps, body)).encode()
        async with self.open("POST", path, headers, content) as response:
            return await self.read(response)

    @asynccontextmanager
    async def open(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes
    ) -> AsyncIterator[httpx.Response]:
        """Send a request to a path and query; the reply's body is still to be read."""
        url = f"{self._settings.upstream}{path}"
        forwarded = self._forwarded_headers(headers)
        request = self._client.build_request(method, url, headers=forwarded, content=content)
        async with AsyncExitStack() as stack:
            with _connection_errors("cannot be reached"):
                response = await stack.enter_async_context(opened(self._client, request))
            if response.is_redirect:
                raise UnreadableReplyError("the model's server redirects; give its final address")
            if not 200 <= response.status_code < 600:
                raise UnreadableReplyError(
                    f"the model's server answered with the invalid status {response.status_code}"
                )
            yield response

    async def read(self, response: httpx.Response) -> Reply:
        """Read a whole reply; raises UpstreamUnreachableError or UnreadableReplyError."""
        with _connection_errors("broke off"):
            body = await read_body(chunks_of(response), MOST_REPLY_BYTES)
        headers = safe_headers(response.headers.multi_items())
        return Reply(response.status_code, headers, body)

    async def forward(self, request: Request) -> Response:
        """Send a call whose reply is numbers and names, and return it without any text."""
        content = b"" if request.method == "GET" else await require_json(request)
        # Path traversal would lead to calls that are judged or refused.
        plain = r"(?:/(?!\.{1,2}(?:/|$))[\w.:@+~ -]+)+/?"
        if not re.fullmatch(plain, local_path(request.scope).removeprefix(PREFIX)):
            raise RejectedError(400, "the path is not one of this gateway's", "invalid_path")
        path = self.path_of(request)

        async def exchange() -> Reply:
            async with self.open(request.method, path, request.headers, content) as response:
                return await self.read(response)

        def without_text(reply: Reply) -> Reply:
            if (failed := failed_reply(reply)) is not None:
                return failed
            return reply.with_body(json.dumps(_without_text(reply_body(reply), depth=8)).encode())

        reply = await unless_gone(request.receive, exchange())
        return response_of(await asyncio.to_thread(without_text, reply))

    def _forwarded_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        forwarded = (
            "accept|content-type|idempotency-key|traceparent|tracestate|user-agent|"
            "x-client-request-id|x-request-id|openai-.*|x-stainless-.*"
        )
        if not (self._settings.needs_key or self._settings.upstream_key):
            # Else the caller's key is this gateway's, not the upstream's.
            forwarded += "|api-key|authorization"
        found = {
            name: value
            for name, value in headers.items()
            if re.fullmatch(forwarded, name, re.IGNORECASE)
        }
        if self._settings.upstream_key:
            key = self._settings.upstream_key.get_secret_value()
            found |= {"api-key": key} if self._azure else {"authorization": f"Bearer {key}"}
        return found


def response_of(reply: Reply) -> Response:
    """A reply of the upstream, with a body of the gateway's own."""
    return Response(reply.body, reply.status, dict(reply.headers))


def _without_text(value: object, depth: int) -> object:
    """The numbers, truth values and names in a value; None if there are none."""
    if isinstance(value, dict | list) and not depth:
        return None
    if isinstance(value, list):
        if all(type(item) is float for item in value):  # an embedding; there may be many
            return value
        return [held for item in value if (held := _without_text(item, depth - 1)) is not None]
    if isinstance(value, dict):
        named = {name: held for name, held in value.items() if identifier(name)}
        return {name: _without_text(held, depth - 1) for name, held in named.items()}
    return value if isinstance(value, int | float) else identifier(value) or sealed(value)


@contextmanager
def _connection_errors(happened: str) -> Iterator[None]:
    """Turns errors of the connection into one without addresses."""
    try:
        yield
    except httpx.TimeoutException as error:
        raise UpstreamUnreachableError("the model's server took too long", status=504) from error
    except httpx.HTTPError as error:
        message = f"the model's server {happened} ({type(error).__name__})"
        raise UpstreamUnreachableError(message) from error


@asynccontextmanager
async def opened(
    client: httpx.AsyncClient, request: httpx.Request
) -> AsyncIterator[httpx.Response]:
    """Send a request; its reply is closed at the end, and its body is still to be read."""
    begun: list[httpx.Response] = []  # also filled if the caller is cancelled as the reply comes

    async def send() -> None:
        begun.append(await client.send(request, stream=True))

    try:
        await _cancelled_by_scope(send())
        yield begun[0]
    finally:
        for response in begun:
            await _cancelled_by_scope(response.aclose())


async def chunks_of(response: httpx.Response) -> AsyncIterator[bytes]:
    """The unpacked body of a reply as it arrives."""
    chunks = response.aiter_bytes()
    while (chunk := await _cancelled_by_scope(anext(chunks, None))) is not None:
        yield chunk


async def _cancelled_by_scope(work: Coroutine[object, object, T]) -> T:
    """Do the work in its own task, cancelled by an anyio scope.

    Cancelled by asyncio alone, httpcore can leave a connection of its pool open for ever.
    """
    scope = anyio.CancelScope()

    async def inside() -> T:
        with scope:
            return await work
        raise asyncio.CancelledError  # the scope swallows its own

    task = asyncio.ensure_future(inside())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        scope.cancel()
        await asyncio.wait({task})
        _ = task.cancelled() or task.exception()  # retrieved, so that asyncio does not log it
        raise


class JudgedStream(StreamingResponse):
    """A stream of judged bytes, of ``seconds`` at most; ``closed`` is called at its end.

    If the upstream breaks off (``BrokenOffError``), the connection is closed without the end that
    the protocol asks for, as the caller would see it without the gateway.
    """

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        response: httpx.Response,
        headers: Mapping[str, str],
        *,
        seconds: float,
        closed: Callable[[], Awaitable[None]],
    ) -> None:
        passed = dict(safe_headers(response.headers.multi_items()))
        passed.pop("content-type", None)
        super().__init__(pieces, response.status_code, {**passed, **headers}, EVENT_STREAM)
        self._seconds = seconds
        self._closed = closed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the pieces until they end, the upstream breaks off, or the caller goes away."""
        with suppress(BrokenOffError, ClientDisconnect, TimeoutError, OSError):
            try:
                async with asyncio.timeout(self._seconds):
                    await super().__call__(scope, receive, send)
            finally:
                await self._closed()
