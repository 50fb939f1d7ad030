"""Changes to single settings of a TOML file; the rest of the file stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from guardrail.core.errors import ConfigError
from guardrail.core.fields import read_toml
from guardrail.tuning.curve import toml_key

__all__ = ["write_settings"]

Setting = str | float | Sequence[float]
HEADER = re.compile(r"^\s*\[", re.MULTILINE)


def write_settings(path: Path, section: str, values: Mapping[str, Setting]) -> None:
    """Set values in one section of a settings file; a missing file is created.

    Args:
        path: The file.
        section: Such as ``policy.thresholds``. It replaces a plain value of that name, such as
            ``strictness = "strict"``.
        values: The settings by name.

    Raises:
        ConfigError: The file cannot be read or written, is not TOML, or contains these settings in
            a form that this cannot change; it is then left unchanged.
    """
    written = {name: f"{toml_key(name)} = {_toml(value)}" for name, value in values.items()}
    try:
        content = path.read_bytes() if path.exists() else b""
        wanted = read_toml(content, path)
        table = wanted
        for name in section.split("."):
            inner = table.get(name)
            table[name] = table = inner if isinstance(inner, dict) else {}
        table.update({name: json.loads(_toml(value)) for name, value in values.items()})
        after = _changed(content.decode().replace("\r\n", "\n"), section, written)
        if not _is(after, wanted):
            lines = ", ".join(written.values())
            raise ConfigError(f"cannot change {path}; write into [{section}]: {lines}")
        path.write_text(after, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def _changed(text: str, section: str, lines: Mapping[str, str]) -> str:
    header = re.search(rf"^\[{re.escape(section)}\][^\n]*\n?", text, re.MULTILINE)
    if header is None:
        first = HEADER.search(text)
        end = first.start() if first else len(text)
        plain = re.compile(rf"^{re.escape(section)}\s*=[^\n]*\n?", re.MULTILINE)
        text = (plain.sub("", text[:end]) + text[end:]).rstrip()
        return "\n".join([*([text, ""] if text else []), f"[{section}]", *lines.values(), ""])
    following = HEADER.search(text, header.end())
    end = following.start() if following else len(text)
    body = text[header.end() : end]
    for name, line in lines.items():
        setting = re.compile(rf'^\s*"?{re.escape(name)}"?\s*=[^\n#]*?(?=\s*(?:#|$))', re.MULTILINE)
        body, found = setting.subn(line, body, count=1)
        if not found:
            body = f"{line}\n{body}"
    return f"{text[: header.end()].rstrip()}\n{body}{text[end:]}"


def _toml(value: Setting) -> str:
    """A value in TOML; numbers with four decimals."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_toml, value))}]"
    return f"{value:.4f}"


def _is(text: str, wanted: Mapping[str, object]) -> bool:
    try:
        return read_toml(text, "") == wanted
    except ConfigError:
        return False
