"""The value objects that every part of the guardrail passes to the next.

All are frozen pydantic models: hashable where their fields are, comparable by value,
JSON in and out with ``model_dump_json`` / ``model_validate_json``. Each loads on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # ruff: noqa: F403
    from guardrail.core.types.answers import *
    from guardrail.core.types.judging import *
    from guardrail.core.types.knowledge import *
    from guardrail.core.types.value import *


def __getattr__(name: str) -> object:
    for module in ("value", "knowledge", "judging", "answers"):
        home = import_module(f"{__name__}.{module}")
        if name in home.__all__:
            return globals().setdefault(name, getattr(home, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
