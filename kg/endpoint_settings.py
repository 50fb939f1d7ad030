"""How to talk to a SPARQL endpoint: login, time limits, cache, rate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from guardrail.core.types import Seconds, Value
from guardrail.core.types.value import SecretRef

__all__ = ["EndpointSettings"]


class EndpointSettings(Value):
    """How to talk to an endpoint.

    Secrets are references: ``env:NAME`` is an environment variable, ``file:PATH`` a file. They are
    sent only to the endpoint's own origin.

    Attributes:
        user: User name for basic authentication.
        password: Where the password is (``env:NAME`` or ``file:PATH``).
        token: Where a bearer token is.
        headers: Additional headers, each with the place of its value.
        timeout_s: Seconds per attempt, including reading.
        deadline_s: Seconds per query, including all attempts and the pauses between them.
        attempts: Attempts per query; 1 disables retries.
        user_agent: Wikidata requires tool name and contact.
        cache: File of the shared query cache, which keeps results for a day; ``none`` disables it,
            ``default`` is ``kg-guardrail/sparql.sqlite`` in the user's cache folder.
        per_second: Maximum queries per second.
        dialect: ``qlever``, ``virtuoso``, ``blazegraph``, ``graphdb`` or ``standard``; None follows
            address and profile.
        text_search: Also find names in other capitalisation through the server's text index.
    """

    user: str | None = None
    password: SecretRef | None = None
    token: SecretRef | None = None
    headers: Mapping[str, SecretRef] = Field(default_factory=dict)
    timeout_s: Seconds = 30.0
    deadline_s: Seconds = 90.0
    attempts: int = Field(default=4, ge=1, le=20)
    user_agent: str = "kg-guardrail/0.1 (knowledge graph guardrail; SPARQLWrapper)"
    cache: Path | Literal["default"] | None = "default"
    per_second: float | None = Field(default=None, gt=0)
    dialect: str | None = None
    text_search: bool = False

    @model_validator(mode="after")
    def _one_login(self) -> Self:
        if (self.user is None) != (self.password is None):
            raise ValueError("a basic login needs both user and password")
        if self.user is not None and self.token is not None:
            raise ValueError("give either user and password or token")
        return self

    @field_validator("cache", mode="before")
    @classmethod
    def _none(cls, value: object) -> object:
        """TOML has no null."""
        return None if value == "none" else value
