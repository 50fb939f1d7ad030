"""``/dashboard`` and ``/v1/feedback``: the score log, live, and what its readers say of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import Request
from starlette.responses import HTMLResponse, Response

from chains.gateway.page import content_security
from chains.gateway.requests import JSON_TYPE, RejectedError, caller_of, read_body
from chains.gateway.tenants import Caller, key_or_password
from guardrail import GuardedAnswer
from guardrail.core.errors import InputError, RecordError
from guardrail.core.secrets import get_logger
from guardrail.log.records import Feedback, open_log
from guardrail.report import dashboard_html, read_feedback

if TYPE_CHECKING:
    from chains.gateway.settings import GatewaySettings
    from guardrail import GuardrailConfig

__all__ = ["Dashboard"]

log = get_logger("chains.gateway")


NO_RECORD = "there is no such record of yours, or the log cannot be written; see the gateway's log"
RECORD_HEADER = "x-guardrail-record"
"""Ids of a reply's answers. A stream's headers leave before its answer is judged: there the id
stands in the last event alone."""

PLAIN_ID = re.compile(r"[!-+\--~]+")
"""An id that can stand in a header, in a list with commas."""

NO_LOG = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<title>No score log</title>
<style>body { font: 16px/1.55 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto;
  padding: 0 1.25rem; overflow-wrap: anywhere; }</style>
</head><body><h1>There is no score log yet</h1>
<p>The dashboard shows the answers that were recorded, and none are: no log is configured.
Switch it on and start the gateway anew:</p>
<pre>guardrail serve --log scores.sqlite</pre>
<p>or set <code>log = "scores.sqlite"</code> in the settings file, or
<code>GUARDRAIL_LOG=scores.sqlite</code> in the environment.</p></body></html>
"""
"""What the dashboard shows where no log is configured."""


class Dashboard:
    """Serves the score log that the guardrail's settings name.

    A record holds questions and answers as they came in, so the page asks for one of the
    gateway's keys, where it has any, as the password of HTTP basic authentication.

    Args:
        config: The guardrail's settings; ``log`` names the file.
        settings: The gateway's keys and limits.
    """

    def __init__(self, config: GuardrailConfig, settings: GatewaySettings) -> None:
        self._path = None if config.log is None else config.log.path
        self._settings = settings

    def record_header(self, answers: Sequence[GuardedAnswer]) -> dict[str, str]:
        """The header of a reply that tells the ids which feedback on its answers names.

        Returns:
            Nothing where no log keeps them, or where a caller's own id cannot stand in a header.
        """
        ids = [answer.id for answer in answers]
        if not ids or self._path is None or not all(map(PLAIN_ID.fullmatch, ids)):
            return {}
        return {RECORD_HEADER: ", ".join(ids)}

    async def page(self, request: Request) -> Response:
        """The dashboard, made from the log as it stands: of a tenant, its own records alone."""
        caller = self.admit_person(request)
        if self._path is None:
            return HTMLResponse(NO_LOG, headers=content_security(NO_LOG))
        tenant = caller.name if caller.tenant else None
        html = await asyncio.to_thread(self._html, tenant)
        return HTMLResponse(html, headers=content_security(html))

    async def feedback(self, request: Request) -> Response:
        """Store a thumb or a correction beside its record."""
        caller = caller_of(request)
        # Who reads the dashboard with one of the gateway's own keys sees the records of all.
        reads_all = caller.tenant is None and _is_page(request)
        body = await read_body(request, JSON_TYPE)
        try:
            whose = None if reads_all else caller.name or None
            feedback = read_feedback(body).model_copy(update={"tenant": whose})
            there = await asyncio.to_thread(self._store, feedback)
        except InputError as error:
            raise RejectedError(400, str(error), "invalid_feedback") from error
        except RecordError as error:
            # It names the log's file, which is no caller's business, and an id that a caller wrote.
            log.warning("feedback: %.300r", str(error))
            raise RejectedError(404, NO_RECORD, "no_record") from error
        # Accepted: kept until the record is written.
        status = 200 if there else 202
        content = feedback.model_dump_json(exclude={"tenant"})
        return Response(content, status, media_type="application/json")

    def _html(self, tenant: str | None) -> str:
        path = self._log_path()
        if not path.exists():
            raise RejectedError(404, "nothing has been recorded yet", "no_record")
        log = open_log(path, read_only=True)
        try:
            return dashboard_html(log, tag=tenant and f"tenant={tenant}")
        finally:
            log.close()

    def _store(self, feedback: Feedback) -> bool:
        log = open_log(self._log_path())
        try:
            return log.write_feedback(feedback)
        finally:
            log.close()

    def _log_path(self) -> Path:
        if self._path is None:
            raise RejectedError(404, "no score log is configured; set 'log'", "no_log")
        return self._path

    def admit_person(self, request: Request) -> Caller:
        """Who it is that the gateway admits: by a key as password, or as any other call's.

        Raises:
            RejectedError: With status 401; 403 where the gateway is open to the network.
        """
        if self._settings.open_to_network:
            raise RejectedError(
                403,
                "this gateway listens on all addresses and has no key, so this page is closed; "
                "start it with --key or GUARDRAIL_GATEWAY__KEYS",
                "closed",
            )
        caller = self._settings.caller_with(key_or_password(request.headers))
        if caller is None:
            raise RejectedError(
                401,
                "this page needs one of the gateway's keys as password",
                "invalid_api_key",
                {"www-authenticate": 'Basic realm="kg-guardrail", charset="UTF-8"'},
            )
        return caller


def _is_page(request: Request) -> bool:
    """Whether a page in a browser sent a request: the key comes as its reader's password."""
    return request.headers.get("authorization", "").lower().startswith("basic")
