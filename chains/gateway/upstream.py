"""The model's server behind the gateway, over one pool of connections."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, TypeVar

import anyio
import httpx

from chains.openai_headers import kept_headers
from chains.openai_wire import JSON, Reply, UnreadableReplyError, few_enough_bytes
from guardrail.core.errors import ModelError
from guardrail.core.http_clients import reading_environment

if TYPE_CHECKING:
    from chains.gateway.settings import GatewaySettings

__all__ = ["Upstream", "UpstreamUnreachableError", "chunks_of", "opened"]

PASSED_ON = frozenset(
    {
        "accept",
        "api-key",
        "authorization",
        "content-type",
        "idempotency-key",
        "traceparent",
        "tracestate",
        "user-agent",
        "x-client-request-id",
        "x-request-id",
    }
)
"""Headers of a request that the upstream sees, beside those of the prefixes below."""
PASSED_ON_PREFIXES = ("openai-", "x-stainless-")

AZURE = "/openai"
"""End of the address of an Azure resource."""

FINAL_STATUSES = range(200, 600)
"""Statuses of a reply that HTTP knows; those below say that it is still to come."""

PROBE_S = 2.0
"""Seconds that the server has to answer a probe, whatever it answers."""
PROBE_EVERY_S = 5.0
"""Seconds for which the answer to a probe counts."""


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
        client: An HTTP client to use in place of one made here.

    Attributes:
        azure: Whether the server is an Azure resource, by the end of its address.
    """

    def __init__(self, settings: GatewaySettings, client: httpx.AsyncClient | None = None) -> None:
        self._settings = settings
        self.azure = (settings.upstream or "").endswith(AZURE)
        with reading_environment():
            self._client = client or httpx.AsyncClient(
                timeout=httpx.Timeout(settings.timeout_s, connect=settings.connect_timeout_s),
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
        """Whether the server answers at all, as seen within the last seconds."""
        async with self._probing:
            if time.monotonic() - self._probed > PROBE_EVERY_S:
                self._answers = await self._probe()
                self._probed = time.monotonic()
        return self._answers

    async def _probe(self) -> bool:
        request = self._client.build_request(
            "GET", f"{self._settings.upstream}/models", timeout=PROBE_S
        )
        try:
            async with opened(self._client, request, PROBE_S):
                return True
        except (httpx.HTTPError, TimeoutError):
            return False

    async def send(self, path: str, headers: Mapping[str, str], body: JSON) -> Reply:
        """Send a JSON request and read the whole reply.

        Raises:
            UpstreamUnreachableError: There is no reply.
            UnreadableReplyError: It is too large, or a redirection.
        """
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
            path: Path and query behind the upstream's address.
            headers: The caller's headers, of which some are passed on.
            content: The body.

        Raises:
            UpstreamUnreachableError: There is no reply.
            UnreadableReplyError: It is a redirection, which would lead round the gateway, or has
                a status that HTTP does not know.
        """
        request = self._client.build_request(
            method,
            f"{self._settings.upstream}{path}",
            headers=self._passed_on(headers),
            content=content,
        )
        seconds = self._settings.first_byte_s
        async with AsyncExitStack() as stack:
            try:
                with _told("cannot be reached"):
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
                    f"the model's server answered with status {response.status_code}, which HTTP "
                    "does not know"
                )
            yield response

    async def read(self, response: httpx.Response) -> Reply:
        """Read a whole reply.

        Raises:
            UpstreamUnreachableError: It breaks off.
            UnreadableReplyError: It is too large.
        """
        body = bytearray()
        with _told("broke off"):
            async for chunk in chunks_of(response):
                body += chunk
                few_enough_bytes(len(body), self._settings.max_reply_bytes)
        return Reply(
            response.status_code, kept_headers(response.headers.multi_items()), bytes(body)
        )

    def _passed_on(self, headers: Mapping[str, str]) -> dict[str, str]:
        kept = {
            name: value
            for name, value in headers.items()
            if name.lower() in PASSED_ON or name.lower().startswith(PASSED_ON_PREFIXES)
        }
        if self._settings.needs_key or self._settings.upstream_key:
            # The caller's key is this gateway's, not the upstream's.
            kept = {
                name: value
                for name, value in kept.items()
                if name.lower() not in ("authorization", "api-key")
            }
        if self._settings.upstream_key:
            key = self._settings.upstream_key.get_secret_value()
            kept |= {"api-key": key} if self.azure else {"authorization": f"Bearer {key}"}
        return kept


@contextmanager
def _told(happened: str) -> Iterator[None]:
    """What goes wrong with the connection, in the gateway's words."""
    try:
        yield
    except httpx.TimeoutException as error:
        raise UpstreamUnreachableError("the model's server took too long", late=True) from error
    except httpx.HTTPError as error:
        message = f"the model's server {happened} ({type(error).__name__})"
        raise UpstreamUnreachableError(message, late=False) from error


T = TypeVar("T")


@asynccontextmanager
async def opened(
    client: httpx.AsyncClient, request: httpx.Request, seconds: float
) -> AsyncIterator[httpx.Response]:
    """Send a request and close its reply in the end; the body is still to be read.

    Args:
        client: What sends it.
        request: What is sent.
        seconds: Most time until the reply begins.

    Raises:
        TimeoutError: It does not begin in time.
        httpx.HTTPError: There is no reply.
    """
    begun: list[httpx.Response] = []  # kept where the caller goes as it comes

    async def send() -> None:
        with anyio.fail_after(seconds):
            begun.append(await client.send(request, stream=True))

    try:
        await _by_scope(send())
        yield begun[0]
    finally:
        for response in begun:
            await _by_scope(response.aclose())


async def chunks_of(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body of a reply as it comes, unpacked.

    Raises:
        httpx.HTTPError: It breaks off.
    """
    chunks = response.aiter_bytes()
    while (chunk := await _by_scope(anext(chunks, None))) is not None:
        yield chunk


async def _by_scope(work: Coroutine[object, object, T]) -> T:
    """Do the work in a task of its own; a cancellation reaches it by anyio's scope."""
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
        _ = task.cancelled() or task.exception()  # nobody waits for it
        raise
