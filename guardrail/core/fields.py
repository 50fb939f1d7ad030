"""Settings, requests and feedback that people write: what is wrong with them, in plain words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from inspect import getdoc
from typing import TYPE_CHECKING, get_args

from pydantic import BaseModel, ValidationError

from guardrail.core.errors import ConfigError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


LONGEST = 80
"""Most characters of a value that a message prints; what somebody sent may be a whole file."""


def in_short(value: object) -> str:
    """A value as a message prints it, cut where it is long."""
    text = repr(value[: LONGEST + 1] if isinstance(value, str) else value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message on a name that is unknown: the nearest one, else all of them."""
    names = list(known)
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names) or 'none'}"


def field_problems(model: type[BaseModel], error: ValidationError) -> str:
    """All problems of an object that could not be read as a model, one after another.

    Args:
        model: What it was read as.
        error: What pydantic said; the values themselves are left out.
    """
    # Maximum number of problems that are listed; a file of another kind has one for every word
    if (count := error.error_count()) > 100:
        known = ", ".join(model.model_fields)
        return f"{count:,} values or fields are not as they should be; known: {known}"
    return "; ".join(
        dict.fromkeys(_message(model, item) for item in error.errors(include_input=False))
    )


def fields_at(model: type[BaseModel], place: Iterable[int | str]) -> list[str]:
    """Names of the fields that the object at a place may have.

    Args:
        model: Of the whole object.
        place: Keys and indices from there; what no model names, such as an index, is passed over.
    """
    models = [model]
    for part in place:
        inner = [
            found
            for item in models
            if (field := item.model_fields.get(str(part))) is not None
            for found in _models_in(field.annotation)
        ]
        named = [item for item in models if item.__name__ == part]
        models = inner or named or models
        if not inner and not named and isinstance(part, str):
            return []
    return list(dict.fromkeys(name for item in models for name in item.model_fields))


def documented(model: type[BaseModel]) -> dict[str, str]:
    """What the ``Attributes:`` of a model's docstring say, by field, as Markdown on one line."""
    _, _, listed = (getdoc(model) or "").partition("Attributes:\n")
    found = re.findall(r"^    (\w+): (.*(?:\n {8,}.*)*)", listed, re.MULTILINE)
    return {name: " ".join(text.split()).replace("``", "`") for name, text in found}


def plainly(problem: ErrorDetails) -> str:
    """What pydantic says of a value, for somebody who writes TOML or JSON and no Python."""
    return problem["msg"].removeprefix("Value error, ").replace("a valid tuple", "a list")


def _message(model: type[BaseModel], problem: ErrorDetails) -> str:
    place = [str(part)[:LONGEST] for part in problem["loc"]]
    if problem["type"] == "extra_forbidden":
        hint = did_you_mean(place[-1], fields_at(model, problem["loc"][:-1]))
        return f"there is no field {'.'.join(place)!r}; {hint}"
    where = ".".join(place) or "body"
    return f"{where}: {plainly(problem)}"


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for arg in get_args(annotation) for found in _models_in(arg)]


def read_toml(content: str | bytes, source: object) -> dict[str, object]:
    """Read TOML.

    Raises:
        ConfigError: It is none, no UTF-8, nests too deep, or has a number of thousands of digits.
    """
    try:
        return tomllib.loads(content if isinstance(content, str) else content.decode())
    except (ValueError, RecursionError) as error:  # not all of the first are TOMLDecodeError
        raise ConfigError(f"{source} is not TOML: {error}") from error
