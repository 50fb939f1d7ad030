"""Errors a user of the guardrail can meet; each message says what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from guardrail.core.secrets import redact_active

__all__ = [
    "ConfigError",
    "DeadlineExceededError",
    "GraphUnavailableError",
    "GuardrailError",
    "InputError",
    "JudgeError",
    "KnowledgeGraphError",
    "MissingExtraError",
    "ModelError",
    "OverloadedError",
    "RecordError",
]


class GuardrailError(Exception):
    """Base of every error this project raises on purpose. Its message holds no credentials."""

    def __init__(self, *args: object) -> None:
        super().__init__(*map(redact_active, args))


class ConfigError(GuardrailError):
    """A setting is unknown, malformed or contradicts another one."""


class InputError(GuardrailError, ValueError):
    """The caller's input cannot be used as it is."""


class KnowledgeGraphError(GuardrailError):
    """A knowledge graph could not be opened, read or queried."""


class GraphUnavailableError(KnowledgeGraphError):
    """A knowledge graph does not answer at the moment; the same query may succeed later."""


class JudgeError(GuardrailError):
    """A judge could not be loaded, failed, or gave a reply that cannot be read."""


class ModelError(GuardrailError):
    """The language model could not be reached or refused the request."""


class RecordError(GuardrailError):
    """The score log could not be opened, written or read."""


class DeadlineExceededError(GuardrailError, TimeoutError):
    """The time allowed for one answer ran out."""


class OverloadedError(GuardrailError):
    """Too many calls that were given up still hang in the graph, the judge or the retriever."""


class MissingExtraError(GuardrailError, ImportError):
    """An optional package is needed; names the extra that brings it.

    Args:
        package: The import name that is missing.
        extra: The extra of this distribution that installs it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package!r} is not installed; the extra {extra!r} brings it, from a clone: "
            f'pip install --constraint constraints.txt --editable ".[{extra}]"'
        )
        self.package = package
        self.extra = extra


@contextmanager
def file_errors(
    action: str, path: object, kind: type[GuardrailError] = InputError
) -> Iterator[None]:
    """Turn the operating system's errors into ``cannot <action> <path>: …``."""
    try:
        yield
    except OSError as error:
        raise kind(f"cannot {action} {path}: {error.strerror}") from error
