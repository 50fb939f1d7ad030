"""HTTP clients, whose proxies and certificates the environment names."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from guardrail.core.errors import ConfigError, MissingExtraError
from guardrail.core.secrets import register_environment

__all__ = ["reading_environment"]

PROXIES = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@contextmanager
def reading_environment() -> Iterator[None]:
    """Make a client inside: a proxy or a certificate that cannot be used is one clear error.

    Raises:
        ConfigError: What a variable of the environment names cannot be used; the message says
            which one, and what to do.
    """
    import httpx

    register_environment()  # keys and proxies' logins, which clients read there
    try:
        yield
    except ImportError as error:
        if "socks" not in str(error).lower():
            raise
        missing = MissingExtraError("socksio", "socks")
        raise ConfigError(f"{_set_in(PROXIES, 'socks')} is a SOCKS proxy: {missing}") from error
    except (httpx.InvalidURL, ValueError) as error:
        variable = _set_in(("NO_PROXY",), "[") or _set_in(PROXIES)
        if not variable:
            raise
        advice = (
            "write IPv6 addresses without brackets, as ::1"
            if variable.upper() == "NO_PROXY"
            else "write it as http://host:port"
        )
        raise ConfigError(f"{variable} cannot be used as it is ({error}); {advice}") from error
    except (OSError, ssl.SSLError) as error:
        variable = _set_in(CERTIFICATES)
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
