"""Links that leave docs/ for the repository's files: the site has no such pages."""

from __future__ import annotations

import re
from typing import Any


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Write ``[its card](../judges/README.md)`` as the text and the path in the repository."""
    return re.sub(r"\[([^\]]+)\]\(\.\./([^)]+)\)", r"\1 (`\2` in the repository)", markdown)
