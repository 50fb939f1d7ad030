"""The one reader of TOML: whatever a file holds, it is read or refused."""

from __future__ import annotations

import tomllib

from guardrail.core.errors import ConfigError

__all__ = ["read_toml"]


def read_toml(content: str | bytes, source: object) -> dict[str, object]:
    """Read TOML.

    Args:
        content: Of the file.
        source: The file, for messages.

    Raises:
        ConfigError: It is none, no UTF-8, nests too deep, or has a number of thousands of digits.
    """
    try:
        return tomllib.loads(content if isinstance(content, str) else content.decode())
    except (ValueError, RecursionError) as error:  # not all of the first are TOMLDecodeError
        raise ConfigError(f"{source} is not TOML: {error}") from error
