"""Pages for browsers, which load nothing, and the score log: dashboard and feedback."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from chains.gateway.callers import Caller, caller_of, identify, key_of
from chains.gateway.requests import JSON_TYPE, ApiRoute, RejectedError, require_json
from chains.gateway.settings import GatewaySettings
from guardrail import GuardedAnswer, GuardrailConfig
from guardrail.core.errors import InputError, RecordError
from guardrail.core.secrets import get_logger
from guardrail.log.records import open_log
from guardrail.report import dashboard_html, read_feedback

log = get_logger("chains.gateway")


def _titled_page(title: str, body: str) -> HTMLResponse:
    return _page(f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>body {{ font: 16px/1.55 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto;
  padding: 0 1.25rem; overflow-wrap: anywhere; }}
td, th {{ text-align: left; vertical-align: top; padding: .3rem 1rem .3rem 0; }}</style>
</head><body><h1>{title}</h1>
{body}</body></html>
""")


def _page(html: str) -> HTMLResponse:
    """A page that runs its own inline blocks, no other script, and loads nothing."""

    def hashes(tag: str) -> str:
        blocks = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digests = (base64.b64encode(hashlib.sha256(block.encode()).digest()) for block in blocks)
        return " ".join(f"'sha256-{digest.decode()}'" for digest in digests)

    policy = (
        "default-src 'none'; connect-src 'self'; img-src data:; "
        f"style-src {hashes('style')}; script-src {hashes('script')}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "cache-control": "no-cache",
    }
    return HTMLResponse(html, headers=headers)


async def start_page(request: Request) -> HTMLResponse:
    """The page to try the gateway."""
    return _page(files("chains.gateway").joinpath("page.html").read_text(encoding="utf-8"))


async def docs_page(request: Request) -> HTMLResponse:
    """The calls that the gateway serves, each with what it does."""
    rows = "\n".join(
        f"<tr><td>{route.verb}</td><td><code>{escape(route.path)}"
        f"</code></td><td>{escape(route.summary)}</td></tr>"
        for route in request.app.routes
        if isinstance(route, ApiRoute)
    )
    body = f"""<p>A call may bring evidence for its answer in the field <code>guardrail</code> of
its body: <code>{{"evidence": [{{"text", "id", "title", "url"}} or {{"triple": [subject, property,
value]}}], "policy": "strict"}}</code>. The machine-readable description is
<a href="openapi.json">openapi.json</a>.</p>
<table><tr><th>Method</th><th>Path</th><th>What it does</th></tr>
{rows}
</table>"""
    return _titled_page("Calls of this gateway", body)


class Dashboard:
    """Serves the score log that the guardrail's settings name.

    Records hold questions and answers, so pages ask for a key of the gateway, if it has any, as
    the password of HTTP basic authentication.
    """

    def __init__(self, config: GuardrailConfig, settings: GatewaySettings) -> None:
        self._path = None if config.log is None else config.log.path
        self._settings = settings

    def record_header(self, answers: Sequence[GuardedAnswer]) -> dict[str, str]:
        """The header with the ids that feedback on these answers names, if they are recorded."""
        ids = [answer.id for answer in answers]
        if not ids or self._path is None:
            return {}
        # The header is a list with commas: an id must be ASCII without white space and commas.
        listable = all(re.fullmatch(r"[!-+\--~]+", id) for id in ids)
        return {"x-guardrail-record": ", ".join(ids)} if listable else {}

    async def page(self, request: Request) -> Response:
        """The dashboard of the log as it is now; a tenant sees only its own records."""
        caller = self.admit_reader(request)
        if (path := self._path) is None:
            body = """<p>The dashboard shows recorded answers, but no log is configured. Start the
gateway with one:</p>
<pre>guardrail serve --log scores.sqlite</pre>
<p>or set <code>log = "scores.sqlite"</code> in the settings file, or
<code>GUARDRAIL_LOG=scores.sqlite</code> in the environment.</p>"""
            return _titled_page("There is no score log yet", body)
        tag = f"tenant={caller.name}" if caller.tenant else None

        def html() -> str:
            if not path.exists():
                raise RejectedError(404, "nothing has been recorded yet", "no_record")
            with open_log(path, read_only=True) as records:
                return dashboard_html(records, tag=tag)

        return _page(await asyncio.to_thread(html))

    async def feedback(self, request: Request) -> Response:
        """Store a thumb or a correction with its record; status 202 until the record exists."""
        caller = caller_of(request)
        # Readers of the dashboard with a key of the gateway's own see the records of all callers.
        in_browser = request.headers.get("authorization", "").lower().startswith("basic")
        owner = None if caller.tenant is None and in_browser else caller.name or None
        body = await require_json(request)
        try:
            feedback = read_feedback(body).model_copy(update={"tenant": owner})
            if (path := self._path) is None:
                raise RejectedError(404, "no score log is configured; set 'log'", "no_log")

            def write() -> bool:
                with open_log(path) as records:
                    return records.write_feedback(feedback)

            exists = await asyncio.to_thread(write)
        except InputError as error:
            raise RejectedError(400, str(error), "invalid_feedback") from error
        except RecordError as error:
            # It names the log's file and an id that some caller wrote, so it goes to the log only.
            log.warning("feedback: %.300r", str(error))
            message = "no such record of yours, or the log cannot be written; see the gateway's log"
            raise RejectedError(404, message, "no_record") from error
        content = feedback.model_dump_json(exclude={"tenant"})
        return Response(content, 200 if exists else 202, media_type=JSON_TYPE)

    def admit_reader(self, request: Request) -> Caller:
        """The caller that opens a page, by a key as its password; else RejectedError (401, 403)."""
        if self._settings.open_to_network:
            raise RejectedError(
                403,
                "this gateway listens on all addresses and has no key, so this page is closed; "
                "start it with --key or GUARDRAIL_GATEWAY__KEYS",
                "closed",
            )
        caller = identify(self._settings, key_of(request.headers))
        if caller is None:
            message = "this page needs one of the gateway's keys as password"
            challenge = {"www-authenticate": 'Basic realm="kg-guardrail", charset="UTF-8"'}
            raise RejectedError(401, message, "invalid_api_key", challenge)
        return caller
