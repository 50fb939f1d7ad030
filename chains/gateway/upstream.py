"""The model's server behind the gateway, over one pool of connections."""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

import anyio
import httpx

from chains.openai_wire import JSON, Reply, UnreadableReplyError, few_enough_bytes, safe_headers
from guardrail.core.errors import ModelError
from guardrail.core.http_clients import reading_environment

if TYPE_CHECKING:
    from fastapi import Request

    from chains.gateway.settings import GatewaySettings

__all__ = ["Upstream", "UpstreamUnreachableError", "chunks_of", "opened"]

T = TypeVar("T")

FORWARDED = re.compile(
    "accept|api-key|authorization|content-type|idempotency-key|traceparent|tracestate|user-agent|"
    "x-client-request-id|x-request-id|openai-.*|x-stainless-.*"
)
"""Headers of a request that the upstream gets."""
KEY_HEADERS = frozenset({"authorization", "api-key"})
FINAL_STATUSES = range(200, 600)
CONNECT_S = 10.0
PROBE_S = 2.0
"""Seconds that the server has to answer a probe, whatever it answers."""
PROBE_EVERY_S = 5.0


class UpstreamUnreachableError(ModelError):
    """The upstream could not be reached, or broke off.

    Args:
        message: What happened; without addresses or content.
        late: Whether time ran out.
    """

    def __init__(self, message: str, *, late: bool) -> None:
        super().__init__(message)
        self.late = late


class Upstream:
    """Sends requests to the configured server, and to no other.

    Args:
        settings: Address, key and limits.
        client: An HTTP client to use; one is made by default.
    """

    def __init__(self, settings: GatewaySettings, client: httpx.AsyncClient | None = None) -> None:
        self._settings = settings
        self._azure = (settings.upstream or "").endswith("/openai")
        with reading_environment():
            self._client = client or httpx.AsyncClient(
                timeout=httpx.Timeout(settings.timeout_s, connect=CONNECT_S),
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
        """Whether the server has answered anything within the last seconds."""
        async with self._probing:
            if time.monotonic() - self._probed > PROBE_EVERY_S:
                url = f"{self._settings.upstream}/models"
                request = self._client.build_request("GET", url, timeout=PROBE_S)
                try:
                    async with opened(self._client, request, PROBE_S):
                        self._answers = True
                except (httpx.HTTPError, TimeoutError):
                    self._answers = False
                self._probed = time.monotonic()
        return self._answers

    def path_of(self, request: Request, prefix: str) -> str:
        """The path and query of a call after the upstream's address.

        An Azure resource gets deployment and version as the caller wrote them; any other server
        gets the deployment as the model.
        """
        path = request.url.path.removeprefix(prefix)
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
        """Send a request; the reply's body is still to be read.

        Args:
            method: HTTP method.
            path: Path and query after the upstream's address.
            headers: The caller's headers; some are forwarded.
            content: The body.

        Raises:
            UpstreamUnreachableError: There is no reply.
            UnreadableReplyError: It redirects, or its status is not one of HTTP.
        """
        url = f"{self._settings.upstream}{path}"
        request = self._client.build_request(
            method, url, headers=self._forwarded(headers), content=content
        )
        seconds = self._settings.first_byte_s
        async with AsyncExitStack() as stack:
            try:
                with _connection_errors("cannot be reached"):
                    response = await stack.enter_async_context(
                        opened(self._client, request, seconds)
                    )
            except TimeoutError as error:
                raise UpstreamUnreachableError(
                    f"the model's server did not begin a reply within {seconds:g} s (first_byte_s)",
                    late=True,
                ) from error
            if response.is_redirect:
                raise UnreadableReplyError("the model's server redirects; give its final address")
            if response.status_code not in FINAL_STATUSES:
                raise UnreadableReplyError(
                    f"the model's server answered with the invalid status {response.status_code}"
                )
            yield response

    async def read(self, response: httpx.Response) -> Reply:
        """Read a whole reply.

        Raises:
            UpstreamUnreachableError: It breaks off.
            UnreadableReplyError: It is too large.
        """
        body = bytearray()
        with _connection_errors("broke off"):
            async for chunk in chunks_of(response):
                body += chunk
                few_enough_bytes(len(body), self._settings.max_reply_bytes)
        headers = safe_headers(response.headers.multi_items())
        return Reply(response.status_code, headers, bytes(body))

    def _forwarded(self, headers: Mapping[str, str]) -> dict[str, str]:
        found = {
            name: value for name, value in headers.items() if FORWARDED.fullmatch(name.lower())
        }
        if self._settings.needs_key or self._settings.upstream_key:
            # The caller's key is this gateway's, not the upstream's.
            found = {name: held for name, held in found.items() if name.lower() not in KEY_HEADERS}
        if self._settings.upstream_key:
            key = self._settings.upstream_key.get_secret_value()
            found |= {"api-key": key} if self._azure else {"authorization": f"Bearer {key}"}
        return found


@contextmanager
def _connection_errors(happened: str) -> Iterator[None]:
    """Turns errors of the connection into one without addresses."""
    try:
        yield
    except httpx.TimeoutException as error:
        raise UpstreamUnreachableError("the model's server took too long", late=True) from error
    except httpx.HTTPError as error:
        message = f"the model's server {happened} ({type(error).__name__})"
        raise UpstreamUnreachableError(message, late=False) from error


@asynccontextmanager
async def opened(
    client: httpx.AsyncClient, request: httpx.Request, seconds: float
) -> AsyncIterator[httpx.Response]:
    """Send a request; its reply is closed at the end, and its body is still to be read.

    Args:
        client: Sends it.
        request: The request.
        seconds: Most time until the reply begins.

    Raises:
        TimeoutError: It does not begin in time.
        httpx.HTTPError: There is no reply.
    """
    begun: list[httpx.Response] = []  # also filled if the caller is cancelled as the reply comes

    async def send() -> None:
        with anyio.fail_after(seconds):
            begun.append(await client.send(request, stream=True))

    try:
        await _cancelled_by_scope(send())
        yield begun[0]
    finally:
        for response in begun:
            await _cancelled_by_scope(response.aclose())


async def chunks_of(response: httpx.Response) -> AsyncIterator[bytes]:
    """The unpacked body of a reply as it arrives.

    Raises:
        httpx.HTTPError: It breaks off.
    """
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
