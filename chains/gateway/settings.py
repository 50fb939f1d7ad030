"""Settings of the gateway, from the command line and the environment; never from a request."""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator

from chains.evidence.base import EvidenceMode, EvidenceSettings
from chains.rendition import MarkerStyle
from chains.streaming import StreamMode
from guardrail import GuardrailConfig
from guardrail.errors import ConfigError
from guardrail.types import Value

__all__ = ["ENV_PREFIX", "GatewaySettings", "sharing"]

ENV_PREFIX = "KG_GATEWAY_"
"""``KG_GATEWAY_KEYS=a,b``, ``KG_GATEWAY_MAX_BODY_BYTES=…`` and so on, one for each field."""


LOOPBACK = ("127.0.0.1", "localhost", "::1")

PROTOCOL_NAMES = ("litellm", "portkey", "fms")

JUDGE_CACHE = 65_536
"""Verdicts of the judges that the gateway remembers; about 50 MB with short texts."""


def sharing(config: GuardrailConfig) -> GuardrailConfig:
    """The guardrail's settings, with one memory of verdicts for all callers unless they tell."""
    if "judge_cache" in config.model_fields_set:
        return config
    return config.model_copy(update={"judge_cache": JUDGE_CACHE})


class GatewaySettings(Value):
    """What the gateway does beside judging.

    Attributes:
        upstream: Address of the OpenAI-compatible server, with its ``/v1``; None to serve the
            checking endpoints alone.
        upstream_key: Sent to the upstream in place of the caller's key.
        keys: Keys of this gateway; where there are any, callers need one of them, and it is not
            passed on. Without, the caller's key is passed through to the upstream.
        style: How markers look in the text.
        stream_mode: When streamed text is released.
        evidence_mode: Whether evidence in a request stands in place of the graph (``given``),
            beside it (``both``), or does not count (``graph``).
        tool_results: Whether results of tools in a conversation count as evidence.
        evidence_marks: Delimiters of a marked stretch in system and user messages, two with a
            space between them: ``<context> </context>``.
        keep_parts: Whether content parts of other gateways are sent on as they are.
        caller_policy: Whether a request may name a policy or a strictness of its own.
        reasons: Whether a refusal carries its reasons.
        protocols: Protocols of other gateways to serve: ``litellm``, ``portkey``, ``fms``.
        max_body_bytes: Largest request that is read.
        max_reply_bytes: Largest reply that is read from the upstream as a whole.
        connect_timeout_s: Seconds to reach the upstream.
        timeout_s: Seconds for one exchange, streams included.
        drain_s: Seconds that exchanges in work get when the gateway is told to stop.
        concurrency: Exchanges in work at once in one worker; more get status 503.
        host: Address that is listened on; told by the command.
    """

    upstream: str | None = None
    upstream_key: SecretStr | None = None
    keys: tuple[SecretStr, ...] = ()
    style: MarkerStyle = MarkerStyle.KALMA
    stream_mode: StreamMode = StreamMode.SENTENCE
    evidence_mode: EvidenceMode = EvidenceMode.GIVEN
    tool_results: bool = True
    evidence_marks: tuple[str, str] | None = None
    keep_parts: bool = False
    caller_policy: bool = True
    reasons: bool = True
    protocols: tuple[str, ...] = ()
    max_body_bytes: int = Field(default=8 * 1024 * 1024, ge=1)
    max_reply_bytes: int = Field(default=32 * 1024 * 1024, ge=1)
    connect_timeout_s: float = Field(default=10.0, gt=0)
    timeout_s: float = Field(default=600.0, gt=0)
    drain_s: float = Field(default=30.0, ge=0)
    concurrency: int = Field(default=512, ge=1)
    host: str = "127.0.0.1"

    @property
    def open_to_network(self) -> bool:
        """Whether other machines can call and no key keeps any of them out."""
        return not self.keys and self.host not in LOOPBACK

    @field_validator("upstream")
    @classmethod
    def _plain_address(cls, address: str | None) -> str | None:
        if address is None:
            return None
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{address!r} is not an http or https address")
        if parts.query or parts.fragment:
            raise ValueError("the upstream's address takes no query and no fragment")
        return address.rstrip("/")

    @field_validator("evidence_marks", mode="before")
    @classmethod
    def _two(cls, value: object) -> object:
        return tuple(value.split()) or None if isinstance(value, str) else value

    @property
    def evidence(self) -> EvidenceSettings:
        """Where evidence is looked for in requests."""
        return EvidenceSettings(
            mode=self.evidence_mode,
            tools=self.tool_results,
            marks=self.evidence_marks,
            keep_parts=self.keep_parts,
        )

    @field_validator("keys", "protocols", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return [key.strip() for key in value.split(",")] if isinstance(value, str) else value

    @field_validator("keys")
    @classmethod
    def _no_empty_key(cls, keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        return tuple(key for key in keys if key.get_secret_value())

    @field_validator("protocols")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name and name not in PROTOCOL_NAMES:
                near = get_close_matches(name, PROTOCOL_NAMES, n=1)
                hint = f"did you mean {near[0]!r}?" if near else ", ".join(PROTOCOL_NAMES)
                raise ValueError(f"there is no protocol {name!r}; {hint}")
        return tuple(name for name in names if name)

    @classmethod
    def from_env(
        cls,
        *,
        upstream: str | None = None,
        environ: Mapping[str, str] | None = None,
        options: Mapping[str, object] | None = None,
    ) -> Self:
        """Read the environment.

        Args:
            upstream: Wins over the environment.
            environ: Variables to read; those of the process by default.
            options: Settings by name that win over the environment.

        Raises:
            ConfigError: A variable names no setting, or its value is malformed.
        """
        variables = os.environ if environ is None else environ
        values: dict[str, object] = {
            name.removeprefix(ENV_PREFIX).lower(): text
            for name, text in variables.items()
            if name.startswith(ENV_PREFIX)
        }
        values |= options or {}
        if upstream is not None:
            values["upstream"] = upstream
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            given = {"upstream": upstream} if upstream else options or {}
            told = "; ".join(
                f"{_spelled(one['loc'], given)}: {one['msg'].removeprefix('Value error, ')}"
                for one in error.errors(include_input=False)
            )
            raise ConfigError(told) from None

    def admits(self, key: str | None) -> bool:
        """Whether a caller with this key may use the gateway; takes the same time for any key."""
        if not self.keys:
            return True
        given = (key or "").encode()
        matches = [hmac.compare_digest(given, one.get_secret_value().encode()) for one in self.keys]
        return any(matches)


def _spelled(place: tuple[int | str, ...], options: Mapping[str, object]) -> str:
    """A setting as the user gave it: the option or the variable."""
    if place[0] in options:
        return "--" + str(place[0]).replace("_", "-")
    return ENV_PREFIX + "_".join(map(str, place)).upper()
