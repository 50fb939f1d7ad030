"""The gateway as an ASGI application."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

import httpx
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from chains.gateway.callers import AuthMiddleware, CallSettings, caller_of
from chains.gateway.limits import LimitsMiddleware
from chains.gateway.metrics import Judging, Metrics, MetricsMiddleware, start_judging
from chains.gateway.pages import Dashboard, docs_page, start_page
from chains.gateway.requests import (
    JSON_TYPE,
    PREFIX,
    ApiRoute,
    AzurePathMiddleware,
    BrokenOffError,
    ChatBody,
    CheckBody,
    RankBody,
    RejectedError,
    ResponsesBody,
    T,
    error_response,
    in_reader_thread,
    local_path,
    openapi,
    read_json,
    read_model,
    unless_gone,
)
from chains.gateway.settings import PROTOCOL_PATHS, GatewaySettings
from chains.gateway.upstream import JudgedStream, Upstream, chunks_of, response_of
from chains.openai_exchange import Exchange, GuardedReply
from chains.openai_reply import ReplyStream
from chains.openai_wire import EVENT_STREAM, JSON, Endpoint, Event, Reply, error_body
from guardrail import GuardedAnswer, Guardrail, GuardrailConfig, Policy
from guardrail.core.errors import GuardrailError, KnowledgeGraphError
from guardrail.core.secrets import get_logger, redact
from guardrail.log.records import Feedback

if TYPE_CHECKING:
    from chains.gateway.protocols import Protocol

log = get_logger("chains.gateway")

DRAIN_S = 30.0
"""Seconds for running exchanges when the gateway stops."""
CHAT, RESPONSES = f"{PREFIX}/chat/completions", f"{PREFIX}/responses"
PAUSES_S = (1.0, 60.0)
"""Seconds before a graph that failed is asked again: the first pause, doubled up to the last."""


def create_app(
    guard: Guardrail | GuardrailConfig,
    settings: GatewaySettings | None = None,
    *,
    client: httpx.AsyncClient | None = None,
    on_loaded: Callable[[], object] | None = None,
) -> Starlette:
    """Make the gateway.

    Args:
        guard: The guardrail; or its settings, to make one that is closed with the application and
            whose verdicts are cached for all callers, unless the settings name a ``judge_cache``.
            Its policy applies: ``annotate`` unless set, where ``guardrail serve`` takes ``strict``.
        settings: Upstream, keys and limits; the environment's when None.
        client: HTTP client for the upstream; one is made by default.
        on_loaded: Called once, when the guardrail is loaded, such as ``freeze_loaded``.
    """
    gateway = _Gateway(guard, settings or GatewaySettings.from_env(), client, on_loaded)
    app = _App(
        routes=gateway.routes(),
        middleware=[Middleware(AzurePathMiddleware), Middleware(_ApiMiddleware, gateway=gateway)],
        exception_handlers={GuardrailError: gateway.failed, HTTPException: _not_served},
        lifespan=gateway.lifespan,
    )
    app.router.redirect_slashes = False
    app.state.gateway = gateway
    return app


def sharing(config: GuardrailConfig) -> GuardrailConfig:
    """The guardrail's settings with a cache of verdicts for all callers, unless they set one."""
    if "judge_cache" in config.model_fields_set:
        return config
    return config.model_copy(update={"judge_cache": 65_536})  # about 50 MB with short texts


def freeze_loaded() -> None:
    """Take everything loaded so far out of garbage collection, for the life of the process.

    Searching it would hold up requests for a quarter of a second from time to time.
    """
    gc.collect()
    gc.freeze()


class _App(Starlette):
    """Removes secrets from queries before any middleware, tracers included, sees them."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if query := scope.get("query_string"):
            clean = redact(f"?{query.decode('latin-1')}")[1:].encode("latin-1")
            scope = scope if clean == query else {**scope, "query_string": clean}
        await super().__call__(scope, receive, send)


class _ApiMiddleware:
    """Counts, authenticates and bounds the calls of the API; pages pass."""

    def __init__(self, app: ASGIApp, gateway: _Gateway) -> None:
        settings = gateway.settings
        self.app = app
        self._paths = gateway.protocols.keys()
        guarded = AuthMiddleware(LimitsMiddleware(app, settings), settings)
        self._api = MetricsMiddleware(guarded, gateway.metrics)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = local_path(scope) if scope["type"] == "http" else ""
        api = path.startswith(f"{PREFIX}/") or path in self._paths
        await (self._api if api else self.app)(scope, receive, send)


async def _not_served(request: Request, error: Exception) -> Response:
    """A path or method that is not served, in the form of the protocol."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    if error.status_code == 404 and local_path(request.scope).startswith(f"{PREFIX}/"):
        message = (
            f"this gateway does not judge what {path} returns and therefore does not pass it on; "
            f"use {CHAT} or {RESPONSES}, or see /docs"
        )
        return error_response(RejectedError(403, message, "not_guarded"))
    message = f"{request.method} {path}: {error.detail}; see /docs"
    return error_response(RejectedError(error.status_code, message, "not_served", error.headers))


class _Gateway:
    def __init__(
        self,
        guard: Guardrail | GuardrailConfig,
        settings: GatewaySettings,
        client: httpx.AsyncClient | None,
        on_loaded: Callable[[], object] | None,
    ) -> None:
        self._owns_guard = isinstance(guard, GuardrailConfig)
        self.guard = Guardrail(sharing(guard)) if isinstance(guard, GuardrailConfig) else guard
        self.settings = settings
        self.metrics = Metrics(self.guard.usage)
        self._dashboard = Dashboard(self.guard.config, settings)
        self._call_settings = CallSettings(self.guard, settings)
        self.protocols: dict[str, Protocol] = {}  # by path
        if settings.protocols:
            from chains.gateway.protocols import PROTOCOLS

            self.protocols = {
                PROTOCOL_PATHS[name]: PROTOCOLS[name]() for name in settings.protocols
            }
        self._upstream = Upstream(settings, client)
        self._background = set[asyncio.Task[None]]()  # for exchanges whose callers are gone
        self._on_loaded = on_loaded
        self._loading: asyncio.Future[None] | None = None
        self._retrying: asyncio.Future[None] | None = None
        self._unready: str | None = "the guardrail is loading"

    def routes(self) -> list[BaseRoute]:
        """The calls and pages of the gateway."""
        # Replies of these are numbers, names and truth values; anything else in them is dropped.
        textless = [
            ("GET", "models"),
            ("GET", "models/{rest:path}"),
            ("POST", "embeddings"),
            ("POST", "moderations"),
        ]
        return [
            ApiRoute("POST", CHAT, self.judged, ChatBody),
            ApiRoute("POST", RESPONSES, self.judged, ResponsesBody),
            *(ApiRoute(method, f"{PREFIX}/{path}", self.textless) for method, path in textless),
            *(ApiRoute("POST", path, self.protocol) for path in self.protocols),
            ApiRoute("POST", f"{PREFIX}/checks", self.checks, CheckBody),
            ApiRoute("POST", f"{PREFIX}/rank", self.rank, RankBody),
            ApiRoute("POST", f"{PREFIX}/feedback", self._dashboard.feedback, Feedback),
            ApiRoute("GET", "/healthz", self.healthz),
            ApiRoute("GET", "/readyz", self.readyz),
            ApiRoute("GET", "/metrics", self.metrics_page),
            ApiRoute("GET", "/dashboard", self._dashboard.page),
            ApiRoute("GET", "/docs", docs_page),
            ApiRoute("GET", "/", start_page),
            Route("/openapi.json", self.description),
        ]

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Load the guardrail during the first requests; release everything at the end."""
        loading = asyncio.ensure_future(self.loaded())
        try:
            yield
        finally:
            self._unready = "the gateway is stopping"
            with suppress(GuardrailError):
                await loading
            if self._retrying is not None:
                self._retrying.cancel()
            await asyncio.gather(*self._background, return_exceptions=True)
            await self._upstream.close()
            if self._owns_guard:
                await asyncio.to_thread(self.guard.close)

    async def loaded(self) -> None:
        """Load the guardrail once; calls wait, so that loading takes no time of an answer.

        They do not wait for a graph that fails, since many bring evidence of their own.
        """
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._load())
        await asyncio.shield(self._loading)

    async def _load(self) -> None:
        if not await self._try_to_load():
            log.warning("%s; the gateway is not ready until it can", self._unready)
            self._retrying = asyncio.ensure_future(self._retry())

    async def _retry(self) -> None:
        pause, longest = PAUSES_S
        await asyncio.sleep(pause)
        while not await self._try_to_load():
            pause = min(2 * pause, longest)
            await asyncio.sleep(pause)
        log.info("the graph answers")

    async def _try_to_load(self) -> bool:
        """Load the guardrail; False if its graph failed, which may answer later."""
        try:
            await asyncio.to_thread(self.guard.warm_up)
            if self._owns_guard:
                await asyncio.to_thread(self.guard.self_test)
        except KnowledgeGraphError as error:
            self._unready = f"the graph cannot be queried: {error}"
            return False
        except GuardrailError as error:  # calls that need the part report it as well
            self._unready = f"the guardrail cannot be loaded: {error}"
            log.error("%s", self._unready)
        else:
            if self._on_loaded is not None:
                self._on_loaded()
            self._unready = None
        return True

    async def failed(self, request: Request, error: Exception) -> Response:
        """Answer a call that ends in an error, and count it if its reply was to be judged."""
        assert isinstance(error, GuardrailError)
        self.metrics.failed(error, request.scope.get("state", {}).get("judging"))
        return error_response(error)

    # --- judged calls --------------------------------------------------------------------

    async def judged(self, request: Request) -> Response:
        """A call whose reply is judged before it is returned."""
        self._need_upstream()
        begin = time.perf_counter()
        body = await read_json(request)
        endpoint = Endpoint.CHAT if request.scope["route"].path == CHAT else Endpoint.RESPONSES
        if (azure := getattr(request.state, "azure", None)) is not None and azure.name:
            body.setdefault("model", azure.name)
        path = self._upstream.path_of(request)
        options = self._call_settings.of(request, body.get("model"))
        start_judging(request, "output", options.policy)
        exchange = await in_reader_thread(Exchange, options, endpoint, body)
        phase = "stream" if exchange.streams_through else "output"
        judging = start_judging(request, phase, exchange.policy)
        await self.loaded()
        if exchange.streams_through:
            await exchange.inject()
            return await self._stream(request, path, exchange, begin, judging)

        async def send(body: JSON) -> Reply:
            return await self._upstream.send(path, request.headers, body)

        guarded = await self._wait_for(request, exchange.whole(send))
        return self._whole(guarded, exchange, judging)

    async def _stream(
        self, request: Request, path: str, exchange: Exchange, begin: float, judging: Judging
    ) -> Response:
        async with AsyncExitStack() as stack:
            content = (await asyncio.to_thread(json.dumps, exchange.body)).encode()
            opening = self._upstream.open("POST", path, request.headers, content)
            async with self._in_time():
                response = await unless_gone(request.receive, stack.enter_async_context(opening))
                kind = response.headers.get("content-type", "")
                if response.status_code >= 300 or not kind.startswith(EVENT_STREAM):
                    reply = await unless_gone(request.receive, self._upstream.read(response))
                    await stack.aclose()
                    return self._whole(await exchange.judge(reply), exchange, judging)
            return JudgedStream(
                self._pieces(response, exchange, begin, judging),
                response,
                self._headers(exchange.policy, ()),
                seconds=self.settings.timeout_s,
                closed=stack.pop_all().aclose,
            )

    async def _pieces(
        self, response: httpx.Response, exchange: Exchange, begin: float, judging: Judging
    ) -> AsyncIterator[bytes]:
        guard, waited, ended = exchange.stream(), False, False
        try:
            async for chunk in chunks_of(response):
                if piece := await guard.feed(chunk):
                    yield piece
                if guard.released and not waited:
                    waited = True
                    self.metrics.first_release.observe(time.perf_counter() - begin)
                if guard.failed:
                    break
            last = await guard.finish()
            ended = True
            yield last
            if not guard.answers:
                self.metrics.answers((), judging)
        except httpx.HTTPError as error:
            log.warning("the upstream broke off in a stream: %s", type(error).__name__)
            raise BrokenOffError("the upstream broke off") from error
        except GuardrailError as error:
            self.metrics.failed(error, judging)
            error_event = error_body(str(error), kind="server_error", code="guardrail_unavailable")
            yield Event(error_event).encode()
        finally:
            if guard.released and not ended:
                task = asyncio.create_task(self._broken_off(guard, judging))
                self._background.add(task)
                task.add_done_callback(self._background.discard)
            elif guard.answers:
                self.metrics.answers(guard.answers, judging)

    async def _broken_off(self, guard: ReplyStream, judging: Judging) -> None:
        """Judge a stream that was released in part, for the log."""
        # The verdict may take longer than the rest of an exchange that was too late.
        seconds = max(self.settings.timeout_s, DRAIN_S)
        try:
            with suppress(GuardrailError, TimeoutError):
                async with asyncio.timeout(seconds):
                    await guard.broken_off()
        finally:
            if guard.answers:
                self.metrics.answers(guard.answers, judging)

    def _whole(self, guarded: GuardedReply, exchange: Exchange, judging: Judging) -> Response:
        if guarded.reply.status < 300:
            self.metrics.answers(guarded.answers, judging)
        response = response_of(guarded.reply)
        response.headers.update(self._headers(exchange.policy, guarded.answers))
        return response

    async def checks(self, request: Request) -> Response:
        """Check an answer; nothing is sent to the upstream."""
        return await self._texts(request, "check", CheckBody)

    async def rank(self, request: Request) -> Response:
        """Rank answers; nothing is sent to the upstream."""
        return await self._texts(request, "rank", RankBody)

    async def _texts(
        self, request: Request, phase: str, kind: type[CheckBody] | type[RankBody]
    ) -> Response:
        options = self._call_settings.of(request)
        policy = options.checks_policy
        judging = start_judging(request, phase, policy)
        body = await read_model(request, kind)
        await self.loaded()
        reply, answers = await self._wait_for(request, body.judge(options))
        self.metrics.answers(answers, judging)
        content = await asyncio.to_thread(reply.model_dump_json)
        return Response(content, media_type=JSON_TYPE, headers=self._headers(policy, answers))

    async def protocol(self, request: Request) -> Response:
        """A call of another gateway's protocol."""
        protocol = self.protocols[request.scope["route"].path]
        body = await read_json(request)
        model = await protocol.model_of(body, caller_of(request).owner)
        options = self._call_settings.of(request, model)
        policy = options.checks_policy if protocol.texts else options.policy
        judging = start_judging(request, "protocol", policy)
        await self.loaded()
        reply, answers = await self._wait_for(request, protocol.answer(body, options))
        if answers:  # calls before a request bring nothing to judge
            self.metrics.answers(answers, judging)
        headers = self._headers(policy, answers)
        return await asyncio.to_thread(JSONResponse, reply, headers=headers)

    def _headers(self, policy: Policy, answers: Sequence[GuardedAnswer]) -> dict[str, str]:
        """Headers with the ids of records, and the actions that a dry run suppressed, in order."""
        headers = self._dashboard.record_header(answers)
        if policy.dry_run:
            headers["x-guardrail-dry-run"] = "true"
            if would := [answer.would.value for answer in answers if answer.would is not None]:
                headers["x-guardrail-would"] = ", ".join(would)
        return headers

    # --- other calls ---------------------------------------------------------------------

    async def textless(self, request: Request) -> Response:
        """A call whose reply holds nothing to judge."""
        self._need_upstream()
        async with self._in_time():
            return await self._upstream.forward(request)

    async def healthz(self, request: Request) -> Response:
        """The process lives."""
        return JSONResponse({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """The guardrail is loaded and the gateway is not stopping; the state of the upstream.

        An upstream that is down does not change the status: checks work without it, and every
        gateway would be taken out at once.
        """
        if self._unready is not None:
            return JSONResponse({"status": self._unready}, 503)
        upstream = "none"
        if self.settings.upstream is not None:
            upstream = "up" if await self._upstream.reachable() else "down"
        return JSONResponse({"status": "ready", "upstream": upstream})

    async def metrics_page(self, request: Request) -> Response:
        """Numbers for Prometheus."""
        if self._dashboard.admit_reader(request).tenant is not None:
            message = "the numbers of all callers need one of the gateway's own keys"
            raise RejectedError(403, message, "closed")
        return Response(self.metrics.page(), media_type=CONTENT_TYPE_LATEST)

    async def description(self, request: Request) -> Response:
        """The OpenAPI description."""
        return JSONResponse(openapi(request.app.routes))

    def _need_upstream(self) -> None:
        if self.settings.upstream is None:
            message = "this gateway has no upstream; start it with --upstream URL"
            raise RejectedError(503, message, "no_upstream")

    async def _wait_for(self, request: Request, work: Awaitable[T]) -> T:
        """Do the work of a call in time, while its caller is there."""
        async with self._in_time():
            return await unless_gone(request.receive, work)

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                yield
        except TimeoutError as error:
            raise RejectedError(504, "the exchange took too long", "timeout") from error
