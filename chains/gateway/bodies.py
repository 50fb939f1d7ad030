"""Bodies of the gateway's calls, checks of given texts, and the OpenAPI description."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from inspect import getdoc
from typing import Annotated

from pydantic import BaseModel, ConfigDict, FailFast, Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from chains.evidence.base import Case, Found, HandedOver, RequestField, Source, case_of
from chains.gateway.requests import JSON_TYPE, in_reader_thread
from chains.openai_request import GuardSettings
from guardrail import GuardedAnswer, Policy
from guardrail.core.types import OwnStrictness, ScoreCard, Value
from guardrail.sources.items import ShortPassages, ShortTriples, inline_evidence
from guardrail.sources.tables import few_enough

__all__ = ["ApiRoute", "ChatBody", "CheckBody", "RankBody", "ResponsesBody", "openapi"]

MAX_ANSWERS = 64
"""Answers of one ranking; the same bound as a policy's candidates."""
REFERENCE = "#/components/schemas/{model}"


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

    async def _case(self, guarding: GuardSettings) -> tuple[Case, Policy]:
        """What is judged against what, and the policy: ``annotate`` unless the body names one."""
        found = await in_reader_thread(self._found, guarding)
        field = RequestField(policy=self.policy, strictness=self.strictness)
        policy, problems = guarding.rights.policy_of(field, guarding.checks_policy)
        found |= Found(problems=tuple(problems))
        mode = guarding.evidence.mode
        return await case_of(guarding.guard, self.question, found, mode), policy

    def _found(self, guarding: GuardSettings) -> Found:
        inline = inline_evidence(self.triples, self.passages)
        if inline is None and self.evidence is None:
            return Found()
        few_enough(len(self.evidence or ()) + len(inline or ()), "the request")
        together = dict.fromkeys((*(self.evidence or ()), *(inline or ())))
        return guarding.rights.evidence_of(Found.of(Source.CALLER, together))


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

    async def check(self, guarding: GuardSettings) -> GuardedAnswer:
        """Check the answer."""
        case, policy = await self._case(guarding)
        return await case.check(guarding.guard, self.answer, policy, id=self._id)


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

    answers: Annotated[tuple[str, ...], FailFast()] = Field(min_length=1, max_length=MAX_ANSWERS)

    async def rank(self, guarding: GuardSettings) -> list[GuardedAnswer]:
        """Rank the answers, best first."""
        case, policy = await self._case(guarding)
        return await case.rank(guarding.guard, self.answers, policy, id=self._id)

    def ranking(self, answers: list[GuardedAnswer]) -> Ranking:
        """The reply for ranked answers."""
        ranked = tuple(
            RankedAnswer(
                index=answer.index,
                id=answer.id,
                score=answer.scorecard.overall.value,
                scorecard=answer.scorecard,
            )
            for answer in answers
        )
        return Ranking(id=self.id, ranking=ranked)


class ApiRoute(Route):
    """A documented call.

    Args:
        methods: HTTP methods, separated by spaces.
        path: As in Starlette.
        endpoint: Serves it; its docstring is the description.
        body: Model of the body; None for an object of another protocol.
    """

    def __init__(
        self,
        methods: str,
        path: str,
        endpoint: Callable[[Request], Awaitable[Response]],
        body: type[BaseModel] | None = None,
    ) -> None:
        self.verbs = methods.split()
        super().__init__(path, endpoint, methods=self.verbs)
        self.body = body
        self.summary = (getdoc(endpoint) or "").split("\n\n")[0]


def openapi(routes: Sequence[BaseRoute]) -> dict[str, object]:
    """The OpenAPI description of documented calls.

    Source: https://spec.openapis.org/oas/v3.1.0
    """
    paths: dict[str, dict[str, object]] = {}
    schemas: dict[str, object] = {}
    for route in routes:
        if not isinstance(route, ApiRoute):
            continue
        schema: dict[str, object] = {"type": "object"}
        if route.body is not None:
            model = route.body.model_json_schema(ref_template=REFERENCE)
            schemas |= model.pop("$defs", {}) | {route.body.__name__: model}
            schema = {"$ref": REFERENCE.format(model=route.body.__name__)}
        body = {"required": True, "content": {JSON_TYPE: {"schema": schema}}}
        calls = paths.setdefault(route.path.replace(":path}", "}"), {})
        for method in route.verbs:
            calls[method.lower()] = {
                "summary": route.summary,
                "parameters": [
                    {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                    for name in route.param_convertors
                ],
                "responses": {"200": {"description": "Success"}},
            } | ({"requestBody": body} if method == "POST" else {})
    info = {"title": "kg-guardrail gateway", "version": version("kg-guardrail")}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": schemas}}
