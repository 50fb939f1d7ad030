"""What all value objects have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

__all__ = ["MOST_DAYS", "MOST_SECONDS", "Probability", "Seconds", "SecretRef", "Value"]

Probability = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]

MOST_SECONDS = 1_000_000.0
"""Of a time to wait, some eleven days; one of 2^31 ms, 24 days, is more than a socket takes."""

MOST_DAYS = 365_000
"""Of an age, a thousand years: the calendar of Python begins two thousand years ago."""

Seconds = Annotated[float, Field(gt=0.0, le=MOST_SECONDS, allow_inf_nan=False)]


def _reference(text: str) -> str:
    kind, colon, place = text.partition(":")
    if not colon or kind not in ("env", "file") or not place.strip():
        raise ValueError("write env:NAME or file:PATH: settings must not contain a secret")
    return text


SecretRef = Annotated[str, AfterValidator(_reference)]
"""A setting that says where a secret is: ``env:NAME`` or ``file:PATH``. It holds none itself."""


class Value(BaseModel):
    """Base of all value objects: frozen, strict about unknown fields, no NaN, no infinity.

    Errors do not show the values themselves: what was sent may be a secret.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True
    )
