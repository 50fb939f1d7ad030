"""The gateway as an ASGI application."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TypeVar

import httpx
from fastapi import FastAPI, Request
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from chains.gateway.azure import AzurePathMiddleware, deployment_of, upstream_path
from chains.gateway.checks import CheckBody, RankBody, Ranking, check, rank
from chains.gateway.dashboard import Dashboard
from chains.gateway.loading import Loading
from chains.gateway.metrics import CONTENT_TYPE_LATEST, Judging, Metrics, begun
from chains.gateway.middleware import AuthMiddleware
from chains.gateway.page import docs_response, page_response
from chains.gateway.passthrough import MEDIA, UNTOUCHED, dry_run_headers, pass_on, response_of
from chains.gateway.protocols import PROTOCOLS, Protocol
from chains.gateway.requests import (
    JSON_TYPE,
    PREFIX,
    RejectedError,
    caller_of,
    failed_call,
    misspelled,
    no_such_call,
    read_json,
    read_model,
)
from chains.gateway.schemas import (
    JSON_BODY,
    UPSTREAM_BODY,
    ChatBody,
    ResponsesBody,
    described,
    request_body_of,
)
from chains.gateway.settings import GatewaySettings, sharing
from chains.gateway.streaming import Afterwards, BrokenOffError, JudgedStream, unless_gone
from chains.gateway.tenants import GuardOptions
from chains.gateway.threads import in_reader_thread
from chains.gateway.upstream import Upstream, chunks_of
from chains.openai_errors import error_body
from chains.openai_exchange import Exchange, GuardedReply, StreamGuard
from chains.openai_headers import kept_headers
from chains.openai_sse import Event
from chains.openai_wire import JSON, Endpoint, Reply
from guardrail import GuardedAnswer, Guardrail, GuardrailConfig, Policy
from guardrail.core.errors import GuardrailError
from guardrail.core.secrets import get_logger, redact
from guardrail.log.records import Feedback

__all__ = ["create_app"]

log = get_logger("chains.gateway")

T = TypeVar("T")

JUDGED: dict[str, tuple[Endpoint, type[BaseModel]]] = {
    "chat/completions": (Endpoint.CHAT, ChatBody),
    "responses": (Endpoint.RESPONSES, ResponsesBody),
}
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


class _App(FastAPI):
    """The application, which never sees a secret in a query: its traces and logs would show it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if query := scope.get("query_string"):
            clean = redact(f"?{query.decode('latin-1')}")[1:].encode("latin-1")
            scope = scope if clean == query else {**scope, "query_string": clean}
        await super().__call__(scope, receive, send)


def create_app(
    guard: Guardrail | GuardrailConfig,
    settings: GatewaySettings | None = None,
    *,
    client: httpx.AsyncClient | None = None,
    on_loaded: Callable[[], object] | None = None,
) -> FastAPI:
    """Make the gateway.

    Args:
        guard: The guardrail, or its settings to make one that is closed with the application and
            whose judges' verdicts all callers share, unless the settings name a ``judge_cache``.
            The policy of the settings decides on answers.
        settings: Upstream, keys and limits; the environment's when None.
        client: HTTP client for the upstream, in place of one made here.
        on_loaded: Called once, when the guardrail is loaded. In a server of your own give
            ``freeze_loaded``, as ``guardrail serve`` does: without it full collections of garbage
            hold requests up for a quarter of a second.
    """
    gateway = _Gateway(guard, settings or GatewaySettings.from_env(), client, on_loaded)
    # The interactive documentation would load scripts from elsewhere.
    app = _App(
        title="kg-guardrail gateway", docs_url=None, redoc_url=None, lifespan=gateway.lifespan
    )
    app.state.gateway = gateway

    def post(path: str, method: Serving, body: Mapping[str, object]) -> None:
        served = _endpoint(method)
        app.add_api_route(path, served, methods=["POST"], openapi_extra=dict(body))

    def get(path: str, method: Serving) -> None:
        app.add_api_route(path, _endpoint(method))

    for path, (_, model) in JUDGED.items():
        post(f"{PREFIX}/{path}", _Gateway.judged, request_body_of(model))
    for method, path in UNTOUCHED:
        if method == "POST":
            post(f"{PREFIX}/{path}", _Gateway.untouched, UPSTREAM_BODY)
        else:
            get(f"{PREFIX}/{path}", _Gateway.untouched)
    for _, path in MEDIA:
        post(f"{PREFIX}/{path}", _Gateway.media, UPSTREAM_BODY)
    for name in gateway.settings.protocols:
        path, make = PROTOCOLS[name]
        gateway.protocols[path] = make()
        post(path, _Gateway.protocol, JSON_BODY)
    post(f"{PREFIX}/checks", _Gateway.checks, request_body_of(CheckBody))
    post(f"{PREFIX}/rank", _Gateway.rank, request_body_of(RankBody))
    post(f"{PREFIX}/feedback", _Gateway.feedback, request_body_of(Feedback))
    described(app, ChatBody, ResponsesBody, CheckBody, RankBody, Feedback)
    rest, refused = f"{PREFIX}/{{rest:path}}", _endpoint(_Gateway.refused)
    app.add_api_route(rest, refused, methods=METHODS, include_in_schema=False)
    get("/healthz", _Gateway.healthz)
    get("/readyz", _Gateway.readyz)
    get("/metrics", _Gateway.metrics_page)
    app.add_api_route("/docs", docs_response)
    get("/dashboard", _Gateway.dashboard_page)
    app.add_api_route("/", page_response)
    app.add_exception_handler(GuardrailError, partial(failed_call, gateway.metrics))
    app.add_exception_handler(HTTPException, no_such_call)
    if gateway.settings.trusted_hosts:
        hosts = list(gateway.settings.trusted_hosts)
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)
    paths = frozenset(gateway.protocols)
    app.add_middleware(
        AuthMiddleware, metrics=gateway.metrics, settings=gateway.settings, paths=paths
    )
    app.add_middleware(AzurePathMiddleware)
    return app


Serving = Callable[["_Gateway", Request], Awaitable[Response]]
"""A method of the gateway that answers a request."""


def _endpoint(method: Serving) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that finds the gateway in its application.

    FastAPI keeps endpoints as long as the process lives: one that held the gateway would keep a
    closed one in memory, with its judge and its graph.
    """

    async def serve(request: Request) -> Response:
        return await method(request.app.state.gateway, request)

    serve.__name__, serve.__doc__ = method.__name__, method.__doc__
    return serve


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
        self.dashboard = Dashboard(self.guard.config, settings)
        self.guard_options = GuardOptions(self.guard, settings)
        self.protocols: dict[str, Protocol] = {}
        self._upstream = Upstream(settings, client)
        # A verdict may take longer than what is left of an exchange that was too late.
        self._afterwards = Afterwards(max(self.settings.timeout_s, self.settings.drain_s))
        self.loading = Loading(self.guard, tried=self._owns_guard, on_loaded=on_loaded)

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        """Load the guardrail beside the first requests; release all at the end."""
        loading = asyncio.ensure_future(self.loading.done())
        try:
            yield
        finally:
            self.loading.unready = "the gateway is stopping"
            with suppress(GuardrailError):
                await loading
            await self._afterwards.ended()
            await self._upstream.close()
            if self._owns_guard:
                await asyncio.to_thread(self.guard.close)

    # --- judged calls --------------------------------------------------------------------

    async def judged(self, request: Request) -> Response:
        """A call whose reply is judged before it leaves."""
        self._need_upstream()
        begin = time.perf_counter()
        body = await read_json(request)
        endpoint, _ = JUDGED[request.url.path.removeprefix(PREFIX).strip("/")]
        if (azure := deployment_of(request)) is not None and azure.name:
            body.setdefault("model", azure.name)
        path = upstream_path(request, self._upstream)
        guarding = self.guard_options.of(request, body.get("model"))
        begun(request, "output", guarding.policy)
        exchange = await in_reader_thread(Exchange, guarding, endpoint, body)
        kind = "stream" if exchange.streams_through else "output"
        of = begun(request, kind, exchange.policy)
        await self.loading.done()
        if exchange.streams_through:
            await exchange.inject()
            return await self._stream(request, path, exchange, begin, of)

        async def send(body: JSON) -> Reply:
            return await self._upstream.send(path, request.headers, body)

        guarded = await self._waited_for(request, exchange.whole(send))
        return self._whole(guarded, exchange, of)

    async def _stream(
        self, request: Request, path: str, exchange: Exchange, begin: float, of: Judging
    ) -> Response:
        stack = AsyncExitStack()
        try:
            content = (await asyncio.to_thread(json.dumps, exchange.body)).encode()
            async with self._in_time():
                response = await unless_gone(
                    request.receive,
                    stack.enter_async_context(
                        self._upstream.open("POST", path, request.headers, content)
                    ),
                )
                kind = response.headers.get("content-type", "")
                if response.status_code >= 300 or not kind.startswith("text/event-stream"):
                    reply = await unless_gone(request.receive, self._upstream.read(response))
                    await stack.aclose()
                    judged = await exchange.judge(reply)
                    return self._whole(judged, exchange, of)
        except BaseException:
            await stack.aclose()
            raise
        return JudgedStream(
            self._pieces(response, exchange, begin, of),
            status=response.status_code,
            headers=(
                *kept_headers(response.headers.multi_items()),
                *dry_run_headers(exchange.policy).items(),
            ),
            seconds=self.settings.timeout_s,
            closed=stack.aclose,
        )

    async def _pieces(
        self, response: httpx.Response, exchange: Exchange, begin: float, of: Judging
    ) -> AsyncIterator[bytes]:
        guard, waited, ended = exchange.stream(), False, False
        try:
            async for chunk in chunks_of(response):
                yield await guard.feed(chunk)
                if guard.released and not waited:
                    waited = True
                    self.metrics.first_release(time.perf_counter() - begin)
                if guard.failed:
                    break
            last = await guard.finish()
            ended = True
            yield last
            if not guard.answers:
                self.metrics.answers((), of)
        except httpx.HTTPError as error:
            log.warning("the upstream broke off in a stream: %s", type(error).__name__)
            raise BrokenOffError("the upstream broke off") from error
        except GuardrailError as error:
            self.metrics.failed(error, of)
            error_event = error_body(str(error), kind="server_error", code="guardrail_unavailable")
            yield Event.of(error_event).encode()
        finally:
            if guard.released and not ended:
                self._afterwards.start(self._broken_off(guard, of))
            elif guard.answers:
                self.metrics.answers(guard.answers, of)

    async def _broken_off(self, guard: StreamGuard, of: Judging) -> None:
        """Give the verdict on a stream of which some has left, for the log, which keeps it all."""
        try:
            await guard.broken_off()
        finally:
            if guard.answers:
                self.metrics.answers(guard.answers, of)

    def _whole(self, guarded: GuardedReply, exchange: Exchange, of: Judging) -> Response:
        reply = guarded.reply
        if reply.status < 300:
            self.metrics.answers(guarded.answers, of)
        body, kind = reply.body, JSON_TYPE
        if guarded.events is not None:
            body = b"".join(event.encode() for event in guarded.events)
            kind = "text/event-stream; charset=utf-8"
        response = response_of(reply._replace(body=body), kind)
        response.headers.update(self._headers(exchange.policy, guarded.answers))
        return response

    # --- other calls ---------------------------------------------------------------------

    async def untouched(self, request: Request) -> Response:
        """A call whose reply holds nothing to judge."""
        self._need_upstream()
        async with self._in_time():
            return await pass_on(request, self._upstream, media=False)

    async def media(self, request: Request) -> Response:
        """A call whose reply is passed on unjudged, where the settings say so."""
        if not self.settings.media_calls:
            raise RejectedError(
                403,
                f"what {request.url.path} returns is not judged; the setting media_calls lets it "
                "through",
                "not_guarded",
            )
        self._need_upstream()
        async with self._in_time():
            return await pass_on(request, self._upstream, media=True)

    async def refused(self, request: Request) -> Response:
        """A call whose reply could hold unjudged text."""
        if (meant := misspelled(request)) is not None:
            raise meant
        raise RejectedError(
            403,
            f"this gateway does not judge what {request.url.path} returns and therefore does not "
            "pass it on; use /v1/chat/completions or /v1/responses",
            "not_guarded",
        )

    async def checks(self, request: Request) -> Response:
        """Check an answer; nothing is sent to the upstream."""
        guarding = self.guard_options.of(request)
        of = begun(request, "check", guarding.checks_policy)
        body = await read_model(request, CheckBody)
        await self.loading.done()
        answer = await self._waited_for(request, check(guarding, body))
        self.metrics.answers([answer], of)
        headers = self._headers(guarding.checks_policy, [answer])
        content = await asyncio.to_thread(answer.model_dump_json)
        return Response(content, media_type=JSON_TYPE, headers=headers)

    async def protocol(self, request: Request) -> Response:
        """A call of another gateway's protocol."""
        answer = self.protocols[request.scope["route"].path]
        body = await read_json(request)
        model = await answer.model_of(body, caller_of(request).owner)
        guarding = self.guard_options.of(request, model)
        policy = answer.policy_of(guarding)
        of = begun(request, "protocol", policy)
        await self.loading.done()
        gone, answers = await self._waited_for(request, answer(body, guarding))
        if answers:  # calls before a request bring nothing to judge
            self.metrics.answers(answers, of)
        headers = self._headers(policy, answers)
        return await asyncio.to_thread(JSONResponse, gone, headers=headers)

    async def rank(self, request: Request) -> Response:
        """Rank answers; nothing is sent to the upstream."""
        guarding = self.guard_options.of(request)
        of = begun(request, "rank", guarding.checks_policy)
        body = await read_model(request, RankBody)
        await self.loading.done()
        answers = await self._waited_for(request, rank(guarding, body))
        self.metrics.answers(answers, of)
        headers = self._headers(guarding.checks_policy, answers)
        content = await asyncio.to_thread(Ranking.of(body, answers).model_dump_json)
        return Response(content, media_type=JSON_TYPE, headers=headers)

    async def healthz(self, request: Request) -> Response:
        """The process lives."""
        return JSONResponse({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """The guardrail is loaded and the gateway is not about to stop; whether the upstream is up.

        One that is down keeps the status as it is: checks need none, and a balancer that took all
        gateways out would help nobody.
        """
        if self.loading.unready is not None:
            return JSONResponse({"status": self.loading.unready}, 503)
        upstream = "none"
        if self.settings.upstream is not None:
            upstream = "up" if await self._upstream.reachable() else "down"
        return JSONResponse({"status": "ready", "upstream": upstream})

    async def feedback(self, request: Request) -> Response:
        """Store a thumb or a correction with its record."""
        return await self.dashboard.feedback(request)

    async def dashboard_page(self, request: Request) -> Response:
        """The dashboard, made from the log as it stands: of a tenant, its own records alone."""
        return await self.dashboard.page(request)

    async def metrics_page(self, request: Request) -> Response:
        """Numbers for Prometheus."""
        if self.dashboard.admit_person(request).tenant is not None:
            raise RejectedError(
                403, "numbers of all callers are shown to the gateway's own keys alone", "closed"
            )
        return Response(self.metrics.page(), media_type=CONTENT_TYPE_LATEST)

    def _need_upstream(self) -> None:
        if self.settings.upstream is None:
            raise RejectedError(
                503, "this gateway has no upstream; start it with --upstream URL", "no_upstream"
            )

    def _headers(self, policy: Policy, answers: Sequence[GuardedAnswer]) -> dict[str, str]:
        """What a reply's headers tell of the verdicts behind it."""
        return self.dashboard.record_header(answers) | dry_run_headers(policy, answers)

    async def _waited_for(self, request: Request, work: Awaitable[T]) -> T:
        """Do the work of a call in its time, for as long as its caller is there."""
        async with self._in_time():
            return await unless_gone(request.receive, work)

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                yield
        except TimeoutError as error:
            raise RejectedError(504, "the exchange took too long", "timeout") from error
