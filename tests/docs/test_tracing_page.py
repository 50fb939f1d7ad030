"""The tracing page's setup, with a real Phoenix and with local OTLP servers.

Phoenix is found through ``PHOENIX_PROGRAM``, in the environment of ``make hosts``, or on the path;
without it, its test is skipped.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.chains.fake_openai import served
from tests.docs.pages import ROOT, blocks
from tests.ports import free_port
from tests.program import python

PAGE = ROOT / "docs" / "tracing.md"
PROGRAM = os.environ.get("PHOENIX_PROGRAM") or shutil.which(
    "phoenix", path=os.pathsep.join([str(ROOT / "build/phoenix/bin"), os.environ.get("PATH", "")])
)
PATIENCE_S = 90
BOT = """
from opentelemetry import trace
from guardrail import Guardrail
from send_traces import send_traces

provider = send_traces()
facts = ["The range of the Fjell 3 is 110 km.", "The price of the Fjell 3 is 2,490 euros."]
with Guardrail() as guard, trace.get_tracer("bot").start_as_current_span("answer") as span:
    answer = guard.check("", f"{facts[0]} The Fjell 3 costs 2,190 euros.", evidence=facts)
provider.shutdown()
print(f"{span.get_span_context().trace_id:032x} {span.get_span_context().span_id:016x}")
print(answer.model_dump_json())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for block in blocks(PAGE):
        if block.title:
            (tmp_path / block.title).write_text(block.text, "utf-8")
    return tmp_path


def run_bot(folder: Path, endpoint: str, headers: str = "") -> tuple[str, str, str]:
    """Ids of trace and span, and the answer, of a program that follows the page."""
    (folder / "bot.py").write_text(BOT, "utf-8")
    otlp = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_HEADERS": headers}
    done = python(folder / "bot.py", cwd=folder, env={**os.environ, **otlp})
    assert done.returncode == 0, done.stderr
    assert "Failed to export" not in done.stderr
    ids, answer = done.stdout.splitlines()
    trace_id, span_id = ids.split()
    return trace_id, span_id, answer


def readers() -> dict[str, tuple[str, str]]:
    """Endpoint and headers of each reader, as the page's table has them."""
    rows = re.findall(r"^\| (\w[^|]*?) \| `(https?://[^`]+)` \| (.*?) ?\|$", PAGE.read_text(), re.M)
    return {name: (endpoint, (re.findall(r"`([^`]+)`", headers) or [""])[0])
            for name, endpoint, headers in rows}  # fmt: skip


@pytest.mark.parametrize(
    ("reader", "path", "header"),
    [
        ("Phoenix on this machine", "/v1/traces", ""),
        ("Langfuse", "/api/public/otel/v1/traces", "authorization: Basic KEYS"),
        ("LangSmith", "/otel/v1/traces", "x-api-key: KEY"),
        ("a collector", "/v1/traces", ""),
    ],
)
def test_the_documented_settings_reach_the_reader_s_address(
    folder: Path, reader: str, path: str, header: str
) -> None:
    received: list[tuple[str, dict[str, str], bytes]] = []

    async def take(request: Request) -> Response:
        received.append((request.url.path, dict(request.headers), await request.body()))
        return Response(media_type="application/x-protobuf")

    endpoint, headers = readers()[reader]
    with served(Starlette(routes=[Route("/{path:path}", take, methods=["POST"])])) as address:
        # The same path on this machine: no test sends anything to the reader itself.
        _, span_id, _ = run_bot(folder, re.sub(r"^https?://[^/]+", address, endpoint), headers)
    ((requested, sent_headers, body),) = received
    assert requested == path
    if header:
        name, _, value = header.partition(": ")
        assert sent_headers[name] == value
    sent = ExportTraceServiceRequest.FromString(body)
    spans = {
        span.name: span
        for resource in sent.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    }
    check = spans["guardrail.check"]
    assert check.parent_span_id.hex() == span_id
    labels = [
        {item.key: item.value.string_value for item in event.attributes}
        for event in check.events
        if event.name == "gen_ai.evaluation.result"
    ]
    sentences = [item for item in labels if item["gen_ai.evaluation.name"] == "groundedness"]
    assert [item["gen_ai.evaluation.score.label"] for item in sentences] == [
        "supported",
        "contradicted",
    ]


@pytest.mark.skipif(PROGRAM is None, reason="Phoenix is not installed: make hosts")
def test_phoenix_shows_the_spans_and_takes_the_scores(folder: Path) -> None:
    assert PROGRAM is not None
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with (folder / "phoenix.log").open("w") as log:
        phoenix = subprocess.Popen([PROGRAM, "serve"], env=environment, stdout=log, stderr=log)
    try:
        wait_for(f"{address}/healthz")
        _, span_id, dumped = run_bot(folder, address)
        spans = {span["name"]: span for span in stored(address, at_least=2)}
        check = spans["guardrail.check"]
        assert check["span_kind"] == "GUARDRAIL"
        assert check["parent_id"] == span_id
        assert spans["retrieval"]["span_kind"] == "RETRIEVER"
        events = [event for event in check["events"] if event["name"] == "gen_ai.evaluation.result"]
        assert len(events) > 2
        code = (
            "import sys; from score_spans import annotate; from guardrail import GuardedAnswer;"
            f"annotate(GuardedAnswer.model_validate_json(sys.stdin.read()), {span_id!r}, "
            f"{address!r})"
        )
        subprocess.run(
            [sys.executable, "-c", code], cwd=folder, input=dumped, text=True, check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        reply = httpx.get(
            f"{address}/v1/projects/default/span_annotations",
            params={"span_ids": span_id, "limit": 100},
        )
        scores = {(item["name"], item["identifier"]): item for item in reply.json()["data"]}
        assert scores["groundedness", "sentence 0"]["result"]["label"] == "supported"
        assert scores["groundedness", "sentence 1"]["result"]["label"] == "contradicted"
        assert scores["supported_share", ""]["result"]["score"] == 0.5
    finally:
        phoenix.terminate()
        phoenix.wait(PATIENCE_S)


def wait_for(address: str) -> None:
    eventually(lambda: httpx.get(address).is_success)


def stored(address: str, *, at_least: int) -> list[dict[str, Any]]:
    """The spans that Phoenix stores, which takes a moment."""

    def spans() -> list[dict[str, Any]] | None:
        reply = httpx.get(f"{address}/v1/projects/default/spans", params={"limit": 100})
        found = reply.json()["data"] if reply.is_success else []
        return found if len(found) >= at_least else None

    return eventually(spans)  # type: ignore[no-any-return]


def eventually(probe: Callable[[], Any]) -> Any:
    """The first true result of a probe, within ``PATIENCE_S`` seconds."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with suppress(httpx.TransportError):
            if result := probe():
                return result
        time.sleep(0.2)
    pytest.fail("Phoenix did not answer")
