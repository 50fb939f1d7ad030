"""The page at ``/``: one self-contained HTML file, allowed to load nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from html import escape
from importlib.resources import files

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import HTMLResponse

__all__ = ["content_security", "docs_response", "page_response"]


DOCS = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<title>Calls of this gateway</title>
<style>body {{ font: 16px/1.55 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; }}
td, th {{ text-align: left; vertical-align: top; padding: .3rem 1rem .3rem 0; }}</style>
</head><body><h1>Calls of this gateway</h1>
<p>A call may hand over what its answer is judged against, in the field
<code>guardrail</code> of its body: <code>{{"evidence": [{{"text", "id", "title", "url"}} or
{{"triple": [subject, property, value]}}], "policy": "strict"}}</code>. The machine-readable
description is <a href="openapi.json">openapi.json</a>.</p>
<table><tr><th>Method</th><th>Path</th><th>What it does</th></tr>
{rows}
</table></body></html>
"""
"""The page of ``/docs``."""


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
    digests = (base64.b64encode(hashlib.sha256(block.encode()).digest()) for block in blocks)
    return " ".join(f"'sha256-{digest.decode()}'" for digest in digests)


async def page_response() -> HTMLResponse:
    """The page."""
    html, headers = _page()
    return HTMLResponse(html, headers=headers)


async def docs_response(request: Request) -> HTMLResponse:
    """The calls that a gateway serves, each with what it does; loads nothing from elsewhere."""
    rows = []
    for route in request.app.routes:
        if not isinstance(route, APIRoute) or not route.description:
            continue
        methods = " ".join(sorted(route.methods or ()))
        description = escape(route.description.strip().split("\n\n")[0])
        rows.append(
            f"<tr><td>{methods}</td><td><code>{escape(route.path)}</code></td><td>{description}</td></tr>"
        )
    html = DOCS.format(rows="\n".join(rows))
    return HTMLResponse(html, headers=content_security(html))
