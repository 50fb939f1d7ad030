"""HTTP: clients of OpenAI-compatible and other endpoints, and a limit of the rate of calls.

Proxies and certificates are those that the environment names.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from guardrail.core.errors import ConfigError, GuardrailError, MissingExtraError
from guardrail.core.secrets import register_environment, register_secret
from guardrail.core.workers import time_left

if TYPE_CHECKING:
    from openai import APIResponse, OpenAI


@contextmanager
def reading_environment() -> Iterator[None]:
    """Make a client inside: a proxy or a certificate that cannot be used is one clear error.

    Raises:
        ConfigError: What a variable of the environment names cannot be used; the message says
            which one, and what to do.
    """
    import httpx

    register_environment()  # keys and proxies' logins, which clients read there
    proxies = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")
    try:
        yield
    except ImportError as error:
        if "socks" not in str(error).lower():
            raise
        missing = MissingExtraError("socksio", "socks")
        raise ConfigError(f"{_set_in(proxies, 'socks')} is a SOCKS proxy: {missing}") from error
    except (httpx.InvalidURL, ValueError) as error:
        variable = _set_in(("NO_PROXY",), "[") or _set_in(proxies)
        if not variable:
            raise
        advice = (
            "write IPv6 addresses without brackets, as ::1"
            if variable.upper() == "NO_PROXY"
            else "write it as http://host:port or socks5://host:port"
        )
        raise ConfigError(f"{variable} cannot be used as it is ({error}); {advice}") from error
    except (OSError, ssl.SSLError) as error:
        variable = _set_in(("SSL_CERT_FILE", "SSL_CERT_DIR"))
        if not variable:
            raise
        why = error.strerror or str(error)
        raise ConfigError(
            f"{variable}={os.environ[variable]} cannot be read ({why}); name a file of "
            "certificates in PEM form, or unset the variable"
        ) from error


def _set_in(names: tuple[str, ...], part: str = "") -> str:
    """The first of the variables that is set, in either case, and holds a text; else empty."""
    cased = (form for name in names for form in (name, name.lower()))
    return next((name for name in cased if part in os.environ.get(name, "") != ""), "")


def by_proxy(url: str) -> str:
    """Name the proxy of the environment that requests to an address take; empty without one."""
    address, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    bypassed = proxy is None or proxy_bypass(address.hostname or "")
    return "" if bypassed else f" through the proxy {proxy}"


def open_client(
    base_url: str | None = None,
    api_key: str | None = None,
    *,
    timeout_s: float = 60.0,
    max_retries: int = 2,
) -> OpenAI:
    """Open a client; nothing is sent.

    Args:
        base_url: The endpoint; None takes ``OPENAI_BASE_URL``, else OpenAI's own.
        api_key: The key; None takes ``OPENAI_API_KEY``. An endpoint other than OpenAI's own may
            do without.
        timeout_s: Limit of one request, seconds.
        max_retries: Further attempts after a failed one, with back-off; none once the time of
            ``within`` is over.

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
                base_url=base_url,
                api_key=key,
                timeout=timeout_s,
                max_retries=max_retries,
                http_client=openai.DefaultHttpxClient(
                    event_hooks={"request": [_begin_attempt], "response": [_only_in_time]}
                ),
            )
    except openai.OpenAIError as error:
        raise ConfigError(f"cannot open the OpenAI client: {error}") from error
    register_secret(key or "")
    return client


_BEFORE: ContextVar[Callable[[], None] | None] = ContextVar("guardrail_attempt", default=None)


@contextmanager
def attempting(before: Callable[[], None]) -> Iterator[None]:
    """Call a function before each attempt of a client's requests inside the block.

    Args:
        before: An ``OpenAIError`` from it ends the request without a further attempt.
    """
    token = _BEFORE.set(before)
    try:
        yield
    finally:
        _BEFORE.reset(token)


def _begin_attempt(request: Any) -> None:
    """Called before each attempt.

    Raises:
        APITimeoutError: Nobody waits for the reply any more; the client does not retry this.
        OpenAIError: By the function of ``attempting``.
    """
    import openai

    if time_left() <= 0:
        raise openai.APITimeoutError(request=request)
    if (before := _BEFORE.get()) is not None:
        before()


def _only_in_time(response: Any) -> None:
    """Keep the client from a pause that is longer than anybody waits for the reply."""
    if _pause(response.headers) >= time_left():
        response.headers["x-should-retry"] = "false"


def _pause(headers: Mapping[str, str]) -> float:
    """Seconds that a server asks a client to wait; 0 if it does not."""
    with suppress(ValueError):
        return float(headers.get("retry-after-ms", "")) / 1_000.0
    asked = headers.get("retry-after", "")
    with suppress(ValueError):
        return float(asked)
    with suppress(ValueError):
        return parsedate_to_datetime(asked).timestamp() - time.time()
    return 0.0


def read_in_time(reply: APIResponse[object]) -> bytes:
    """Read a reply; some servers send blanks for minutes, to keep the connection open.

    Raises:
        APITimeoutError: Nobody waits for the reply any more.
        OpenAIError: It broke off.
    """
    import openai

    parts: list[bytes] = []
    try:
        for part in reply.iter_bytes():
            if time_left() <= 0:
                raise openai.APITimeoutError(request=reply.http_request)
            parts.append(part)
    except openai.OpenAIError:
        raise
    except Exception as error:  # of httpx or of httpx2, by the version of the client
        raise openai.OpenAIError("the reply broke off") from error
    return b"".join(parts)


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
        address = _address(error)
        raise kind(f"{who}: cannot reach the endpoint {address}{by_proxy(address)}") from error
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


class TokenBucket:
    """Counts calls; whoever uses it from several threads holds a lock."""

    def __init__(self, per_second: float, capacity: float) -> None:
        self._rate, self._capacity = per_second, capacity
        self._tokens, self._filled = capacity, time.monotonic()

    def wait(self) -> float:
        """Return the seconds until there is a token; 0 if there is one."""
        now = time.monotonic()
        gained = (now - self._filled) * self._rate
        self._tokens, self._filled = min(self._capacity, self._tokens + gained), now
        return max(0.0, (1.0 - self._tokens) / self._rate)

    def take(self) -> None:
        """Take a token, also one that is still to come: who takes the next waits behind it."""
        self._tokens -= 1.0
