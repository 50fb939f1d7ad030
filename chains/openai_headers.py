"""Headers of a reply of a model's server: which a caller sees, none of which can hold prose."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["safe_headers"]

LET_THROUGH = frozenset(
    {
        "cache-control",
        "content-disposition",
        "content-type",
        "request-id",
        "retry-after",
        "retry-after-ms",
        "traceparent",
        "tracestate",
        "x-request-id",
        "x-should-retry",
    }
)
"""Headers of a reply that the caller sees, beside those of the prefixes below: ids, limits, type.

All others stay here. They concern the server's own connection, lead a client elsewhere, tell a
browser who may read the reply, or are text that nobody judged.
"""
LET_THROUGH_PREFIXES = ("openai-", "x-ratelimit-", "x-ms-", "apim-", "azureml-", "anthropic-")

PLAIN = re.compile(r"[!-~]{0,200}")
"""An id, a limit or a code: no white space, so no prose."""
OF_A_FORM = {
    "cache-control": re.compile(
        r"(?:(?:no-(?:cache|store|transform)|must-revalidate|private|public|max-age=\d{1,9})"
        r"(?:, ?|$))*"
    ),
    "content-disposition": re.compile(r"(?:inline|attachment)(?:; ?filename\*?=[!-~]{1,200})?"),
    "content-type": re.compile(
        r"[\w.+-]{1,80}/[\w.+-]{1,80}(?:; ?\w{1,20}=[!-:<-~]{1,80}){0,2}", re.A
    ),
    "retry-after": re.compile(
        r"\d{1,9}(?:\.\d{1,9})?|[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} GMT"
    ),
}
"""Headers whose values may hold white space, or are of a form."""


def safe_headers(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The headers of a reply that the caller sees, where their values can be no prose."""
    return tuple(
        (name, value)
        for name, value in headers
        if (name.lower() in LET_THROUGH or name.lower().startswith(LET_THROUGH_PREFIXES))
        and PLAIN.fullmatch(name)
        and OF_A_FORM.get(name.lower(), PLAIN).fullmatch(value)
    )
