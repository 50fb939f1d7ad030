"""Content of the OpenAI protocol's messages as text."""

from __future__ import annotations

__all__ = ["text_of"]


def text_of(content: object) -> str:
    """The text of a message's content: a string, or parts of which those with text count."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [
        part if isinstance(part, str) else part.get("text")
        for part in content
        if isinstance(part, str | dict)
    ]
    return " ".join(text for text in texts if isinstance(text, str) and text)
