"""What all value objects have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Probability", "Value"]

Probability = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class Value(BaseModel):
    """Base of all value objects: frozen, strict about unknown fields, no NaN, no infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
