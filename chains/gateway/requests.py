"""Requests of the gateway: errors, addresses, bodies, and the OpenAPI description of the calls."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from inspect import getdoc
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeVar, TypeVarTuple
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from chains.evidence.base import Case, Found, HandedOver, RequestField, Source, case_of
from chains.openai_wire import JSON, LONG_BYTES, error_body, request_body, status_of
from chains.options import NotAllowedError
from guardrail import GuardedAnswer, Policy
from guardrail.core.errors import GuardrailError, InputError, ModelError, OverloadedError
from guardrail.core.fields import field_problems
from guardrail.core.types import MOST_SECONDS, OwnStrictness, ScoreCard, Value
from guardrail.core.workers import Workers
from guardrail.sources.items import ShortPassages, ShortTriples, inline_evidence
from guardrail.sources.tables import few_enough

if TYPE_CHECKING:
    from chains.openai_request import GuardSettings

Model = TypeVar("Model", bound=BaseModel)
T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

PREFIX = "/v1"
"""Begins the paths that need a key."""
JSON_TYPE = "application/json"
READ_S: Final = 60.0
"""Seconds in which the evidence of a request must be read."""
READERS: Final = Workers(concurrency=32, stuck=64)
"""Mostly waiting for documents; the few threads of the event loop are for short work."""


class RejectedError(GuardrailError):
    """A request that cannot be served; the message says what to do, ``code`` is for programs."""

    def __init__(
        self, status: int, message: str, code: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})


class CallerGoneError(RejectedError):
    """The caller closed the connection before there was a reply; nobody receives its status."""

    def __init__(self) -> None:
        super().__init__(499, "the caller closed the connection", "caller_gone")


class UpstreamUnreachableError(ModelError):
    """The upstream could not be reached, or broke off; the message has no address or content."""

    def __init__(self, message: str, *, status: int = 502) -> None:
        super().__init__(message)
        self.status = status


class BrokenOffError(GuardrailError):
    """The upstream broke off in the middle of a stream."""


def error_response(error: GuardrailError) -> JSONResponse:
    """An error in the form of the protocol."""
    headers = {}
    match error:
        case RejectedError():
            status, code, headers = error.status, error.code, error.headers
        case NotAllowedError():
            status, code = 403, "not_allowed"
        case UpstreamUnreachableError():
            status, code = error.status, "upstream_unreachable"
        case _:
            status, code = status_of(error)
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JSONResponse(error_body(str(error), kind=kind, code=code), status, headers=headers)


def local_path(scope: Scope) -> str:
    """The path of a request without that of the application in which the gateway is mounted."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def too_many(message: str, seconds: float = 1.0) -> RejectedError:
    """A refusal with status 429 and the seconds to wait."""
    wait = math.ceil(min(seconds, MOST_SECONDS))
    return RejectedError(429, message, "rate_limited", {"retry-after": str(wait)})


def address_of(scope: Scope) -> str:
    """The address of a request, for IPv6 the network; empty if unknown."""
    host = (scope.get("client") or ("",))[0]
    try:
        address = ip_address(host)
    except ValueError:
        return str(host)
    if isinstance(address, IPv6Address):
        return f"{int(address) >> 64:x}::"  # one caller has all addresses of such a network
    return host


async def in_reader_thread(work: Callable[[*Arguments], T], *args: *Arguments) -> T:
    """Read evidence of a request in a thread for such work, within ``READ_S``."""
    try:
        async with asyncio.timeout(READ_S):
            return await READERS.run(work, *args)
    except TimeoutError as error:
        raise InputError(
            f"the evidence takes more than {READ_S:g} s to read; send less of it"
        ) from error
    except OverloadedError as error:
        raise OverloadedError("too much evidence is being read; try again later") from error


async def require_json(request: Request) -> bytes:
    """The body of a request of type JSON; else RejectedError (415).

    Browsers send other types to another site without asking it first.
    """
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != JSON_TYPE:
        raise RejectedError(415, f"send the body as {JSON_TYPE}", "not_json")
    return await request.body()


async def read_json(request: Request) -> JSON:
    """A request's body as a JSON object; else RejectedError (400)."""
    body = await require_json(request)
    try:
        if len(body) < LONG_BYTES:
            return request_body(body)
        return await asyncio.to_thread(request_body, body)
    except InputError as error:
        raise RejectedError(400, str(error), "invalid_json") from error


async def read_model(request: Request, model: type[Model]) -> Model:
    """A request's body as a model; RejectedError (400) if it has another shape."""
    try:
        body = await require_json(request)
        return await in_reader_thread(model.model_validate_json, body)
    except ValidationError as error:
        raise RejectedError(400, field_problems(model, error), "invalid_request") from error


async def unless_gone(receive: Receive, work: Awaitable[T]) -> T:
    """Do the work, or cancel it and raise CallerGoneError when the caller goes away."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    task, watch = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise CallerGoneError
        return task.result()
    finally:
        for item in (task, watch):
            if not item.done():
                item.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await item


class Deployment(NamedTuple):
    """The model in an address of Azure's kind, and the query, which names the API's version."""

    name: str | None
    query: str


class AzurePathMiddleware:
    """Serves ``/openai/deployments/NAME/…`` and ``/openai/v1/…`` as ``/v1/…``.

    Source: https://learn.microsoft.com/azure/ai-foundry/openai/reference
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        address = r"/openai(?:/deployments/(?P<deployment>(?!\.{1,2}/)[^/]+)|/v1)?(?P<call>/[^/].*)"
        if scope["type"] == "http" and (found := re.fullmatch(address, local_path(scope))):
            azure = Deployment(found["deployment"], scope["query_string"].decode("latin-1"))
            path = scope.get("root_path", "") + PREFIX + found["call"]
            state = scope.get("state", {}) | {"azure": azure}
            raw = quote(path).encode("ascii")
            scope = {**scope, "path": path, "raw_path": raw, "query_string": b"", "state": state}
        await self.app(scope, receive, send)


class _UpstreamBody(BaseModel):
    """A call of the OpenAI protocol; further fields are the protocol's own."""

    model_config = ConfigDict(extra="allow")

    model: str
    stream: bool = False
    guardrail: RequestField | None = Field(
        default=None, description="Evidence and policy for the answer; not forwarded."
    )


class ChatBody(_UpstreamBody):
    """A chat completion; further fields are the protocol's own."""

    messages: list[dict[str, object]]
    n: int | None = None


class ResponsesBody(_UpstreamBody):
    """A response; further fields are the protocol's own."""

    input: str | list[dict[str, object]]


class _TextBody(Value):
    id: str | int | None = None
    question: str = ""
    triples: ShortTriples = None
    passages: ShortPassages = None
    evidence: HandedOver = None
    policy: str | None = None
    strictness: OwnStrictness = None

    @property
    def _id(self) -> str | None:
        return None if self.id is None else str(self.id)

    async def _case(self, options: GuardSettings) -> tuple[Case, Policy]:
        """What is judged against what, and the policy: ``annotate`` unless the body names one."""
        found = await in_reader_thread(self._found, options)
        field = RequestField(policy=self.policy, strictness=self.strictness)
        policy, problems = options.rights.policy_of(field, options.checks_policy)
        found |= Found(problems=tuple(problems))
        mode = options.evidence.mode
        return await case_of(options.guard, self.question, found, mode), policy

    def _found(self, options: GuardSettings) -> Found:
        inline = inline_evidence(self.triples, self.passages)
        if inline is None and self.evidence is None:
            return Found()
        few_enough(len(self.evidence or ()) + len(inline or ()), "the request")
        together = dict.fromkeys((*(self.evidence or ()), *(inline or ())))
        return options.rights.evidence_of(Found.of(Source.CALLER, together))


class CheckBody(_TextBody):
    """An answer to check.

    Attributes:
        id: Echoed in the reply.
        question: The question.
        triples: Evidence as subject, property and value.
        passages: Evidence as texts.
        evidence: Items as in the field ``guardrail.evidence`` of a chat call: texts, objects with
            ``text``, ``id``, ``title`` and ``url``, or with a ``triple``.
        policy: A policy by name; ``annotate`` by default.
        strictness: How sure the judge must be, a preset or thresholds.
        answer: With or without markers.
    """

    answer: str

    async def judge(self, options: GuardSettings) -> tuple[GuardedAnswer, list[GuardedAnswer]]:
        """The reply, and the verdicts in it."""
        case, policy = await self._case(options)
        answer = await case.check(options.guard, self.answer, policy, id=self._id)
        return answer, [answer]


class RankedAnswer(Value):
    """A candidate's place in the request, its id for feedback, its score and its score card."""

    index: int
    id: str
    score: float | None
    scorecard: ScoreCard


class Ranking(Value):
    """Candidates, best first."""

    id: str | int | None
    ranking: tuple[RankedAnswer, ...]


class RankBody(_TextBody):
    """Answers to rank; otherwise as for a check.

    Attributes:
        answers: The answers; the result refers to them by index.
    """

    # As many as a policy's candidates.
    answers: Annotated[tuple[str, ...], FailFast()] = Field(min_length=1, max_length=64)

    async def judge(self, options: GuardSettings) -> tuple[Ranking, list[GuardedAnswer]]:
        """The reply, and the verdicts in it, best first."""
        case, policy = await self._case(options)
        answers = await case.rank(options.guard, self.answers, policy, id=self._id)
        ranked = tuple(
            RankedAnswer(
                index=answer.index,
                id=answer.id,
                score=answer.scorecard.overall.value,
                scorecard=answer.scorecard,
            )
            for answer in answers
        )
        return Ranking(id=self.id, ranking=ranked), answers


class ApiRoute(Route):
    """A documented call, described by the docstring of its endpoint; ``body`` is its model."""

    def __init__(
        self,
        verb: str,
        path: str,
        endpoint: Callable[[Request], Awaitable[Response]],
        body: type[BaseModel] | None = None,
    ) -> None:
        super().__init__(path, endpoint, methods=[verb])
        self.verb = verb
        self.body = body
        self.summary = (getdoc(endpoint) or "").split("\n\n")[0]


def openapi(routes: Sequence[BaseRoute]) -> dict[str, object]:
    """The OpenAPI description (https://spec.openapis.org/oas/v3.1.0) of documented calls."""
    paths: dict[str, dict[str, object]] = {}
    schemas: dict[str, object] = {}
    reference = "#/components/schemas/{model}"
    for route in routes:
        if not isinstance(route, ApiRoute):
            continue
        schema: dict[str, object] = {"type": "object"}
        if route.body is not None:
            model = route.body.model_json_schema(ref_template=reference)
            schemas |= model.pop("$defs", {}) | {route.body.__name__: model}
            schema = {"$ref": reference.format(model=route.body.__name__)}
        body = {"required": True, "content": {JSON_TYPE: {"schema": schema}}}
        calls = paths.setdefault(route.path.replace(":path}", "}"), {})
        calls[route.verb.lower()] = {
            "summary": route.summary,
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in route.param_convertors
            ],
            "responses": {"200": {"description": "Success"}},
        } | ({"requestBody": body} if route.verb == "POST" else {})
    info = {"title": "kg-guardrail gateway", "version": version("kg-guardrail")}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": schemas}}
