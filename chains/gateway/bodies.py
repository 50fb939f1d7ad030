"""Bodies of the gateway's calls, the OpenAPI description of them, and checks of given texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, FailFast, Field

from chains.evidence.base import Case, Found, Source, case_of
from chains.evidence.items import HandedOver, RequestField
from chains.gateway.requests import in_reader_thread
from guardrail import GuardedAnswer, Policy
from guardrail.core.types import OwnStrictness, ScoreCard, Value
from guardrail.sources.items import ShortPassages, ShortTriples, inline_evidence
from guardrail.sources.tables import few_enough

if TYPE_CHECKING:
    from chains.openai_request import GuardSettings

__all__ = [
    "JSON_BODY",
    "UPSTREAM_BODY",
    "ChatBody",
    "CheckBody",
    "RankBody",
    "ResponsesBody",
    "describe",
    "request_body_of",
]

MAX_ANSWERS = 64
"""Answers of one ranking; the same bound as a policy's candidates."""
REFERENCE = "#/components/schemas/{model}"


def _body(*kinds: str, schema: object = None, **more: object) -> dict[str, object]:
    content = {kind: {"schema": schema or {"type": "object"}} for kind in kinds}
    return {"requestBody": {"required": True, "content": content, **more}}


JSON_BODY = _body("application/json")
"""A JSON object that the protocol of another gateway describes."""
UPSTREAM_BODY = _body(
    "application/json", "multipart/form-data", description="As the upstream's own call takes it."
)


def request_body_of(model: type[BaseModel]) -> dict[str, object]:
    """A route's description of its body, for ``openapi_extra``."""
    return _body("application/json", schema={"$ref": REFERENCE.format(model=model.__name__)})


def describe(app: FastAPI, *models: type[BaseModel]) -> None:
    """Add the schemas of bodies to the application's description."""
    schemas: dict[str, object] = {}
    for model in models:
        schema = model.model_json_schema(ref_template=REFERENCE)
        schemas |= schema.pop("$defs", {}) | {model.__name__: schema}
    without = app.openapi

    def openapi() -> dict[str, object]:
        found = without()
        found.setdefault("components", {}).setdefault("schemas", {}).update(schemas)
        return found

    app.openapi = openapi  # type: ignore[method-assign]


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
