"""The bodies of the gateway's calls, as ``openapi.json`` describes them."""

from __future__ import annotations

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field

from chains.evidence.items import RequestField

__all__ = [
    "JSON_BODY",
    "UPSTREAM_BODY",
    "ChatBody",
    "ResponsesBody",
    "described",
    "request_body_of",
]

JSON_BODY: dict[str, object] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}
"""A JSON object whose fields are described elsewhere: by the protocol of another gateway."""
UPSTREAM_BODY: dict[str, object] = {
    "requestBody": {
        "description": "As the upstream's own call takes it; it is sent on as it is.",
        "required": True,
        "content": {
            "application/json": {"schema": {"type": "object"}},
            "multipart/form-data": {"schema": {"type": "object"}},
        },
    }
}
"""A body that is not looked at."""

REFERENCE = "#/components/schemas/{model}"


class _Asked(BaseModel):
    """A call of the OpenAI protocol; further fields are the protocol's own."""

    model_config = ConfigDict(extra="allow")

    model: str
    stream: bool = False
    guardrail: RequestField | None = Field(
        default=None, description="What the answer is judged against; it is not sent on."
    )


class ChatBody(_Asked):
    """A chat completion to ask for; further fields are the protocol's own."""

    messages: list[dict[str, object]]
    n: int | None = None


class ResponsesBody(_Asked):
    """A response to ask for; further fields are the protocol's own."""

    input: str | list[dict[str, object]]


def request_body_of(model: type[BaseModel]) -> dict[str, object]:
    """A route's description of its body, for ``openapi_extra``."""
    schema = {"$ref": REFERENCE.format(model=model.__name__)}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def described(app: FastAPI, *models: type[BaseModel]) -> None:
    """Add the schemas of bodies to the application's description."""
    schemas: dict[str, object] = {}
    for model in models:
        schema = model.model_json_schema(ref_template=REFERENCE)
        schemas |= schema.pop("$defs", {})
        schemas[model.__name__] = schema
    without = app.openapi

    def openapi() -> dict[str, object]:
        told = without()
        told.setdefault("components", {}).setdefault("schemas", {}).update(schemas)
        return told

    app.openapi = openapi  # type: ignore[method-assign]
