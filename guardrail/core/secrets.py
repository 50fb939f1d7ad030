"""Credentials: where settings take them from, and how they are kept out of every message.

``redact`` is the one place that removes them. Errors (``GuardrailError``), the problems of answers
(``Problem``) and log records (``get_logger``) call it, so that replies, traces, the score log and
reports, which are made of these, hold none.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from urllib.parse import quote

HIDDEN = "***"
SHORTEST = 8
"""Characters of the shortest registered value: replacing shorter ones would garble messages."""


NAMES = (
    r"[\w-]*(?:passw(?:or)?d|passphrase|pwd|secret|credentials?|signature|api[-_]?key|"
    r"access[-_]?key|(?:auth|access|session|refresh|id|bearer|secret|security|api)[-_]?token)"
)
"""Ends of the names that secrets have in settings, headers, DSNs and JSON."""

_registered: dict[str, None] = {}
_of_request: ContextVar[tuple[str, ...]] = ContextVar("secrets of the request", default=())


def register_secret(value: str) -> str:
    """Return a secret value, which ``redact`` removes from now on in whatever text it stands.

    Args:
        value: The secret. Values below ``SHORTEST`` characters are found by their place alone.
    """
    # Registered values, far more than one installation has settings
    if len(value) >= SHORTEST and len(_registered) < 10_000:
        _registered.update(dict.fromkeys((value, quote(value, safe=""))))
    return value


def register_environment() -> None:
    """Register the values of the environment's variables that are named as secrets are."""
    for name, value in os.environ.items():
        if re.fullmatch(NAMES, name, re.IGNORECASE):
            register_secret(value)


@contextmanager
def hiding(*values: str | None) -> Iterator[None]:
    """Have ``redact`` remove the secrets of one request, in this context alone."""
    token = _of_request.set(tuple(value for value in values if value and len(value) >= SHORTEST))
    try:
        yield
    finally:
        _of_request.reset(token)


def redact(text: str) -> str:
    """Return a text without credentials: logins in URLs, keys, tokens, registered secrets.

    Args:
        text: A message for people. Redacting it again changes nothing.
    """
    for value in (*_registered, *_of_request.get()):
        if value in text:
            text = text.replace(value, HIDDEN)
    for pattern in _patterns():
        text = pattern.sub(_hide, text)
    return re.sub(r"\bbasic\s+([A-Za-z0-9+/_-]{4,}={0,2})", _hide_basic, text, flags=re.IGNORECASE)


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """What secrets are found by where their values are not registered."""
    value = r"[^\s\"',;&}\])]+"
    return tuple(
        re.compile(f"(?P<before>{before}){secret}", re.IGNORECASE)
        for before, secret in (
            # user:password@ or token@ in a URL; the password may hold "@" and "/".
            (r"(?<=://)", r"[^\s/@:'\"<>]*:(?!\d+[/?#])[^\s'\"<>]*@"),
            (r"(?<=://)", r"[^\s/?#'\"<>]*@"),
            # user:password@host without a scheme, as in a driver's DSN, or behind a misspelt one
            (r"(?:(?<=:/)|(?<![\w/.:@]))", r"[\w.+-]+:(?!//)[^\s/@'\"<>]+@(?=[\w.-])"),
            # Authorization: Bearer …, X-Api-Key: …, password=…, "token": "…", ?sig=…
            (
                r"(?<![\w.])[\w-]*(?:authorization|cookie)[\"']?\s*[:=]\s*[\"']?",
                r"(?:(?:bearer|basic|digest|negotiate|token)\s+)?" + value,
            ),
            (rf"(?<![\w.]){NAMES}[\"']?\s*[:=]\s*[\"']?", value),
            (r"(?<![\w.])(?:token|key)[\"']?(?:=|:\s*[\"'])", value),
            (r"[?&](?:sig|code|auth|pass|jwt|subscription-key)=", value),
            (r"\bbearer\s+", r"(?=\S*[\d._~+/=-])[\w.~+/=-]{6,}"),
            # forms that issuers give their keys so that scanners find them, and JSON web tokens
            (r"\b", r"(?:sk|pk|rk|hf|gh[opsur]|github_pat|glpat|xox[abeprs])[-_][\w-]{12,}"),
            (r"\b", r"eyJ[\w-]{8,}\.[\w-]{4,}\.?[\w-]*"),
        )
    )


def _hide(found: re.Match[str]) -> str:
    return f"{found['before']}{HIDDEN}{'@' if found[0].endswith('@') else ''}"


def _hide_basic(found: re.Match[str]) -> str:
    """Hide what follows ``Basic`` if it is a login in base64, and no word."""
    try:
        login = b":" in base64.b64decode(found[1], validate=True)
    except binascii.Error:
        return found[0]
    return f"Basic {HIDDEN}" if login else found[0]


def redact_active(message: object) -> object:
    """Return an error's argument without credentials; clean the errors being handled as well.

    An error of ours is raised ``from`` what a library raised, and a traceback shows both.
    """
    for error in _chain():
        if any(isinstance(each, str) and redact(each) != each for each in error.args):
            error.args = tuple(redact(a) if isinstance(a, str) else a for a in error.args)
    return redact(message) if isinstance(message, str) else message


def _chain() -> Iterator[BaseException]:
    error, seen = sys.exception(), set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


class _Redacting(logging.Filter):
    """Removes credentials from the records of the loggers that it is added to."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        clean = redact(message)
        if clean != message:
            if isinstance(record.args, tuple) and record.name == "uvicorn.access":
                # its formatter reads the arguments one by one
                record.args = tuple(redact(a) if isinstance(a, str) else a for a in record.args)
            else:
                record.msg, record.args = clean, ()
        if record.exc_info and record.exc_info[0] is not None:
            record.exc_text = redact("".join(traceback.format_exception(*record.exc_info))).rstrip()
        return True


_redacting = _Redacting()


def get_logger(name: str) -> logging.Logger:
    """Return a logger whose records hold no credentials; of a library it may be given as well."""
    logger = logging.getLogger(name)
    logger.addFilter(_redacting)
    return logger


for _client in ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "http2"))):
    get_logger(_client)  # they log addresses, and headers of replies


class RedactedRepr:
    """Mix-in of settings whose representation shows no login of an address."""

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        for name, value in super().__repr_args__():  # type: ignore[misc]
            yield name, redact(value) if isinstance(value, str) else value


def public_url(url: str) -> str:
    """Return an address as it may be shown: without login and without secret parameters."""
    return re.sub(r"(?<=://)\*\*\*@", "", redact(url))


def resolve_secret(reference: str) -> str:
    """Read the secret that a ``SecretRef`` names.

    Raises:
        ConfigError: The variable is not set, the file cannot be read, or the value is empty.
    """
    from guardrail.core.errors import ConfigError

    kind, _, place = reference.partition(":")
    if kind == "env":
        value = os.environ.get(place, "")
    else:
        try:
            value = Path(place).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise ConfigError(f"cannot read the secret in {place}: {why}") from error
    if not value:
        where = "variable" if kind == "env" else "file"
        raise ConfigError(f"the {where} {place} holds no secret; set it, or remove {reference!r}")
    if any(character in value for character in "\r\n\0"):
        raise ConfigError(f"the secret of {reference!r} has more than one line")
    return register_secret(value)
