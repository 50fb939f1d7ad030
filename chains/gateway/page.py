"""The page at ``/``: one self-contained HTML file, allowed to load nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from starlette.responses import HTMLResponse

__all__ = ["content_security", "page_response"]


@cache
def _page() -> tuple[str, dict[str, str]]:
    html = files("chains.gateway").joinpath("page.html").read_text(encoding="utf-8")
    return html, content_security(html)


def content_security(html: str) -> dict[str, str]:
    """Headers that let a page run its own inline blocks and load nothing."""
    policy = "; ".join(
        (
            "default-src 'none'",
            "connect-src 'self'",
            "img-src data:",
            f"style-src {_hashes(html, 'style')}",
            f"script-src {_hashes(html, 'script')}",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
    return {
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "cache-control": "no-cache",
    }


def _hashes(html: str, tag: str) -> str:
    """The page's own inline blocks, so that no other one runs, whatever a text contains."""
    blocks = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
    digests = (base64.b64encode(hashlib.sha256(one.encode()).digest()) for one in blocks)
    return " ".join(f"'sha256-{digest.decode()}'" for digest in digests)


async def page_response() -> HTMLResponse:
    """The page."""
    html, headers = _page()
    return HTMLResponse(html, headers=headers)
