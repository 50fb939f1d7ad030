"""A guardrail in an OpenAI client: same class, same methods, same types, judged text.

The guarded client is a copy whose HTTP client judges replies before the client parses them.
So every way in is guarded alike: ``create``, ``parse``, ``stream``, ``with_raw_response``,
``with_streaming_response``, copies made by ``with_options``, and classes such as AzureOpenAI.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from chains.evidence.base import EvidenceSettings
from chains.openai_exchange import Exchange, GuardedReply
from chains.openai_reply import ReplyStream
from chains.openai_request import GuardSettings
from chains.openai_wire import (
    EVENT_STREAM,
    JSON,
    MOST_REPLY_BYTES,
    Reply,
    endpoint_of,
    error_body,
    is_unguarded,
    read_body,
    request_body,
    safe_headers,
    status_of,
)
from chains.options import CallerRights, Inject, MarkerStyle, StreamMode
from guardrail import STRICT, Guardrail, Policy
from guardrail.core.errors import ConfigError, GuardrailError
from guardrail.core.workers import run_sync
from guardrail.policy import policy_named

if TYPE_CHECKING:
    # Newer clients use httpx2, whose classes have the same names and methods.
    import httpx

Client = TypeVar("Client")


def guard_openai(
    client: Client,
    guard: Guardrail,
    *,
    policy: Policy | str = STRICT,
    style: MarkerStyle | str = MarkerStyle.FOOTNOTES,
    stream_mode: StreamMode | str = StreamMode.SENTENCE,
    inject: Inject | str = Inject.OFF,
    evidence: EvidenceSettings | None = None,
    reasons: bool = True,
    max_reply_bytes: int = MOST_REPLY_BYTES,
) -> Client:
    """Guard the answers of an OpenAI client.

    ``chat.completions`` and ``responses`` are judged, streams included; with ``n > 1`` the
    choices come best first. Tool calls and requested JSON pass unchanged and are reported as
    ``unjudged``, unless the policy says ``structured``. Citations are ``annotations`` of type
    ``url_citation``; the verdict, with triples and scores, is the extra field ``guardrail`` of a
    message or an output text. Headers of replies are reduced to ids, limits and types. Calls whose
    replies hold answers in another form (legacy completions, assistants, agents, conversations,
    evaluation runs) are refused with status 403. All others work as before and are not judged:
    transcripts, prompts of images, and files such as the output of a batch. The given client
    stays unguarded.

    Args:
        client: An ``OpenAI`` or ``AsyncOpenAI`` client, or one of a class derived from them.
        guard: The guardrail.
        policy: A policy or its name; ``candidates`` answers are sampled and ranked, ``attempts``
            bounds the rounds.
        style: How markers look in the text: ``footnotes``, ``kalma`` or ``none``.
        stream_mode: ``sentence`` releases each sentence once it is judged, ``buffer`` waits for
            the whole answer; a policy that samples or retries always waits.
        inject: What the model is shown of the evidence, in the system message or the
            instructions: ``off``, ``facts``, or ``prompt`` with KaLMA's instruction and
            demonstration.
        evidence: Where requests may hold evidence, and whether it replaces the graph.
        reasons: Whether refused and filtered answers carry their reasons.
        max_reply_bytes: Most bytes of a judged reply, whole or streamed; more is an error.

    A call brings its own evidence with
    ``extra_body={"guardrail": {"evidence": [...], "policy": "strict"}}``: texts,
    ``{"text", "id", "title", "url"}`` or ``{"triple": [subject, property, value]}``. The field is
    not forwarded.

    Returns:
        A client of the same class that shares the connections of the given one.

    Raises:
        ConfigError: ``client`` is not an OpenAI client.

    Example:
        >>> client = guard_openai(OpenAI(), Guardrail())                  # doctest: +SKIP
        >>> client.chat.completions.create(model="…", messages=[…])       # doctest: +SKIP
    """
    from openai import AsyncOpenAI, OpenAI

    if not isinstance(client, OpenAI | AsyncOpenAI):
        raise ConfigError(f"{type(client).__name__} is not an OpenAI or AsyncOpenAI client")
    options = GuardSettings(
        guard=guard,
        policy=guard.require(policy_named(policy) if isinstance(policy, str) else policy),
        style=MarkerStyle(style),
        mode=StreamMode(stream_mode),
        inject=Inject(inject),
        evidence=evidence or EvidenceSettings(),
        rights=CallerRights(reasons=reasons),
        max_reply_bytes=max_reply_bytes,
    )
    inner: Any = client._client
    library = _library(inner)
    kind = library.Client if isinstance(client, OpenAI) else library.AsyncClient
    outer = kind(
        transport=_Transport(options, inner, library),
        timeout=inner.timeout,
        headers=inner.headers,
        params=inner.params,
    )
    return client.with_options(  # type: ignore[return-value]
        http_client=outer,
        # Cannot be reached: answers over websockets would not be judged.
        websocket_base_url="wss://answers-over-websockets-are-not-guarded.invalid",
    )


def _library(inner: object) -> ModuleType:
    """The HTTP library that a client uses: httpx, or the httpx2 of newer releases."""
    for kind in type(inner).__mro__:
        name = kind.__module__.partition(".")[0]
        if name in ("httpx", "httpx2"):
            return sys.modules[name]
    raise ConfigError(f"the client's HTTP client is a {type(inner).__name__}, not one of httpx")


class _Transport:
    """The transport of guarded clients: judges what another HTTP client receives.

    A synchronous client is called in threads: the event loop of synchronous callers is shared.
    """

    def __init__(self, options: GuardSettings, inner: Any, library: ModuleType) -> None:
        self._options = options
        self._inner = inner
        self._library = library
        self._synchronous = isinstance(inner, library.Client)
        self._new_request: type[httpx.Request] = library.Request
        self._new_response: type[httpx.Response] = library.Response

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return run_sync(self._handle(request, request.read()))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._handle(request, await request.aread())

    def close(self) -> None:
        self._inner.close()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _handle(self, request: httpx.Request, content: bytes) -> httpx.Response:
        try:
            endpoint = endpoint_of(request.method, request.url.path)
            if endpoint is None and is_unguarded(request.url.path):
                return self._error(
                    403,
                    f"the guardrail does not judge what {request.url.path} returns, so the call "
                    "was refused; use chat.completions or responses, or the unguarded client",
                    "not_guarded",
                )
            if endpoint is None:
                return await self._send(request)
            body = request_body(content or b"{}")
            if request.url.params.get("stream") == "true":
                body = body | {"stream": True}
            return await self._judge(request, Exchange(self._options, endpoint, body))
        except GuardrailError as error:
            status, code = status_of(error)
            return self._error(status, str(error), code)

    async def _judge(self, request: httpx.Request, exchange: Exchange) -> httpx.Response:
        if request.method == "GET":
            return await self._send_once(request, exchange)
        if exchange.streams_through:
            await exchange.inject()
            return await self._send_once(self._with_body(request, exchange.body), exchange)

        async def send(body: JSON) -> Reply:
            return await self._read(await self._send(self._with_body(request, body)))

        return self._response(await exchange.whole(send))

    async def _send_once(self, request: httpx.Request, exchange: Exchange) -> httpx.Response:
        """Send a request once, and judge its response as it streams or as a whole."""
        response = await self._send(request)
        kind = response.headers.get("content-type", "")
        if response.status_code >= 300 or not kind.startswith(EVENT_STREAM):
            return self._response(await exchange.judge(await self._read(response)))
        return self._new_response(
            response.status_code,
            headers=list(safe_headers(response.headers.multi_items())),
            stream=self._stream(exchange.stream(), response),
        )

    async def _send(self, request: httpx.Request) -> httpx.Response:
        """Send a request; its response is still to be read."""
        send = partial(self._inner.send, request, stream=True, follow_redirects=False)
        response: httpx.Response = await (asyncio.to_thread(send) if self._synchronous else send())
        return response

    async def _read(self, response: httpx.Response) -> Reply:
        """Read a whole response and close it."""
        try:
            body = await read_body(self._chunks(response), self._options.max_reply_bytes)
        finally:
            await (asyncio.to_thread(response.close) if self._synchronous else response.aclose())
        return Reply(response.status_code, tuple(response.headers.multi_items()), body)

    async def _chunks(self, response: httpx.Response) -> AsyncIterator[bytes]:
        if self._synchronous:
            chunks = response.iter_bytes()
            while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
                yield chunk
            return
        async for chunk in response.aiter_bytes():
            yield chunk

    def _stream(self, guard: ReplyStream, response: httpx.Response) -> Any:
        """A byte stream of the judged response, of the class that the HTTP library requires."""

        async def judged() -> AsyncIterator[bytes]:
            async for chunk in self._chunks(response):
                yield await guard.feed(chunk)
                if guard.failed:
                    break
            yield await guard.finish()

        pieces = judged()

        async def following() -> bytes | None:
            return await anext(pieces, None)

        library: Any = self._library

        class Judged(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc]
            def __iter__(self) -> Iterator[bytes]:
                while (piece := run_sync(following())) is not None:
                    yield piece

            def close(self) -> None:
                response.close()

            def __aiter__(self) -> AsyncIterator[bytes]:
                return pieces

            async def aclose(self) -> None:
                await response.aclose()

        return Judged()

    def _with_body(self, request: httpx.Request, body: JSON) -> httpx.Request:
        """The request with another body; the same request, signatures included, if none changes."""
        if body == json.loads(request.content or b"{}"):
            return request
        headers = request.headers.copy()
        headers.pop("content-length", None)
        return self._new_request(
            request.method,
            request.url,
            headers=headers,
            content=json.dumps(body).encode(),
            extensions=request.extensions,
        )

    def _response(self, guarded: GuardedReply) -> httpx.Response:
        reply = guarded.reply
        headers = list(safe_headers(reply.headers))
        return self._new_response(reply.status, headers=headers, content=reply.body)

    def _error(self, status: int, message: str, code: str) -> httpx.Response:
        body = error_body(message, kind="guardrail_error", code=code)
        # A retry would meet the same guardrail.
        return self._new_response(status, json=body, headers={"x-should-retry": "false"})
