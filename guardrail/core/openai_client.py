"""The ``openai`` client of every part that talks to an OpenAI-compatible endpoint."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from guardrail.core.errors import ConfigError, GuardrailError
from guardrail.core.http_clients import reading_environment
from guardrail.core.secrets import register_secret

if TYPE_CHECKING:
    from openai import OpenAI

__all__ = ["open_client", "openai_errors"]

TIMEOUT_S = 60.0
"""Default limit of one request, seconds."""

MAX_RETRIES = 2
"""Further attempts after a failed one, with back-off; the client's own default."""


def open_client(
    base_url: str | None = None,
    api_key: str | None = None,
    *,
    timeout_s: float = TIMEOUT_S,
    max_retries: int = MAX_RETRIES,
) -> OpenAI:
    """Open a client; nothing is sent.

    Args:
        base_url: The endpoint; None takes ``OPENAI_BASE_URL``, else OpenAI's own.
        api_key: The key; None takes ``OPENAI_API_KEY``. An endpoint other than OpenAI's own may
            do without.
        timeout_s: Limit of one request, seconds.
        max_retries: Further attempts after a failed one, with back-off.

    Raises:
        ConfigError: OpenAI's own endpoint needs a key, and there is none; or a proxy or a
            certificate that the environment names cannot be used.
    """
    import openai

    base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
    key = api_key or os.environ.get("OPENAI_API_KEY") or ("none" if base_url else None)
    if key is None:
        raise ConfigError(
            "OPENAI_API_KEY is not set; set it, or name an endpoint that needs no key "
            "(OPENAI_BASE_URL)"
        )
    try:
        with reading_environment():
            client = openai.OpenAI(
                base_url=base_url, api_key=key, timeout=timeout_s, max_retries=max_retries
            )
    except openai.OpenAIError as error:
        raise ConfigError(f"cannot open the OpenAI client: {error}") from error
    register_secret(key or "")
    return client


@contextmanager
def openai_errors(who: str, kind: type[GuardrailError]) -> Iterator[None]:
    """Raise whatever fails in a block that calls an endpoint as one kind of error.

    Args:
        who: Names the caller in the message, such as ``model 'm'``.
        kind: The error to raise.

    Raises:
        GuardrailError: Of that kind; the endpoint failed, refused, or sent no valid JSON.
    """
    import openai

    try:
        yield
    except openai.APITimeoutError as error:
        raise kind(f"{who} did not answer in time") from error
    except openai.APIConnectionError as error:
        raise kind(f"{who}: cannot reach the endpoint {_address(error)}") from error
    except openai.APIStatusError as error:
        raise kind(
            f"{who}: the endpoint refused the request with HTTP {error.status_code}, "
            f"{_shorten(error.message)}"
        ) from error
    except openai.OpenAIError as error:
        raise kind(f"{who}: {_shorten(str(error))}") from error
    except (ValueError, RecursionError) as error:
        raise kind(f"{who}: the endpoint sent something that is not JSON") from error


def _address(error: object) -> str:
    url = getattr(getattr(error, "request", None), "url", None)
    return f"{url.scheme}://{url.netloc.decode()}" if url is not None else ""


def _shorten(message: str) -> str:
    """The start of a server's message; an HTML page is not repeated whole."""
    line = " ".join(message.split())
    return line if len(line) <= 300 else line[:300] + " …"
