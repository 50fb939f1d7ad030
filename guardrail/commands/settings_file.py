"""Changes single settings of a TOML file and leaves the rest of it alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from guardrail.core.errors import ConfigError
from guardrail.core.toml import read_toml
from guardrail.tuning.curve import toml_key

__all__ = ["write_settings"]

Setting = str | float | Sequence[float]

_HEADER = re.compile(r"^\s*\[", re.MULTILINE)


def write_settings(path: Path, section: str, values: Mapping[str, Setting]) -> None:
    """Set values in one section of a settings file; a missing file is created.

    Args:
        path: The file.
        section: Such as ``policy.thresholds``. A plain value of that name, such as
            ``strictness = "strict"``, gives way to it.
        values: The settings by name.

    Raises:
        ConfigError: The file cannot be read or written, is no TOML, or says these settings in a
            way that this cannot change; it is then left as it was.
    """
    try:
        content = path.read_bytes() if path.exists() else b""
        wanted = read_toml(content, path)
        before = content.decode().replace("\r\n", "\n")
        after = _changed(before, section, values)
        _set(wanted, section.split("."), values)
        if _read(after) != wanted:
            written = ", ".join(f"{name} = {_toml(value)}" for name, value in values.items())
            raise ConfigError(f"cannot change {path} by itself; write into [{section}]: {written}")
        path.write_text(after, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def _changed(text: str, section: str, values: Mapping[str, Setting]) -> str:
    lines = {name: f"{toml_key(name)} = {_toml(value)}" for name, value in values.items()}
    header = re.search(rf"^\[{re.escape(section)}\][^\n]*\n?", text, re.MULTILINE)
    if header is None:
        text = _without_plain(text, section)
        gap = "\n" if text.strip() else ""
        return f"{text.rstrip()}\n{gap}[{section}]\n".lstrip("\n") + "".join(
            f"{line}\n" for line in lines.values()
        )
    following = _HEADER.search(text, header.end())
    end = following.start() if following else len(text)
    body = text[header.end() : end]
    for name, line in lines.items():
        setting = re.compile(rf'^\s*"?{re.escape(name)}"?\s*=[^\n#]*?(?=\s*(?:#|$))', re.MULTILINE)
        body, found = setting.subn(line, body, count=1)
        if not found:
            body = f"{line}\n{body}"
    return f"{text[: header.end()].rstrip()}\n{body}{text[end:]}"


def _without_plain(text: str, name: str) -> str:
    """A text without a setting of the top level that one line sets."""
    first = _HEADER.search(text)
    end = first.start() if first else len(text)
    top = re.sub(rf"^{re.escape(name)}\s*=[^\n]*\n?", "", text[:end], flags=re.MULTILINE)
    return top + text[end:]


def _set(settings: dict[str, object], place: list[str], values: Mapping[str, Setting]) -> None:
    for name in place:
        inner = settings.get(name)
        if not isinstance(inner, dict):
            inner = settings[name] = {}
        settings = inner
    settings.update({name: json.loads(_toml(value)) for name, value in values.items()})


def _toml(value: Setting) -> str:
    """A value in TOML; numbers with four decimals."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_toml, value))}]"
    return f"{value:.4f}"


def _read(text: str) -> dict[str, object] | None:
    try:
        return read_toml(text, "it")
    except ConfigError:
        return None
