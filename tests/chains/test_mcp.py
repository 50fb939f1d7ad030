"""An agent's view of the MCP server, through the official client."""

import json
import subprocess
import sys

import jsonschema
import pytest

mcp = pytest.importorskip("mcp", reason="the extra 'mcp' is not installed")

from chains.mcp_server import mcp_server  # noqa: E402
from guardrail import ANNOTATE, Guardrail, GuardrailConfig  # noqa: E402
from tests.chains.gateway.test_replies import Slow  # noqa: E402
from tests.chains.hotel import HOTEL_QUESTION, ITEMS, RIGHT, SAID, SECRET, WRONG  # noqa: E402


def content_of(result):
    return result.structured_content or json.loads(result.content[0].text)


async def test_a_client_lists_and_calls_the_tools(guard):
    async with mcp.Client(mcp_server(guard)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"check_answer", "find_facts"}
        assert "evidence" in tools["check_answer"].input_schema["properties"]
        asked = {"question": HOTEL_QUESTION, "answer": SAID, "evidence": ITEMS}
        marked = content_of(await client.call_tool("check_answer", asked))
        assert [item["supported"] for item in marked["sentences"]] == [True, False, True]
        assert marked["citations"][0]["url"] == "https://h.example/guide"
        strict = content_of(await client.call_tool("check_answer", asked | {"policy": "strict"}))
        assert strict["action"] == "filter"
        assert SECRET not in json.dumps(strict)
        (gone,) = strict["removed"]
        assert SAID[gone["start"] : gone["end"]] == WRONG
        assert (gone["category"], bool(gone["against"])) == ("contradictory", True)
        facts = content_of(await client.call_tool("find_facts", {"question": "Mary Shelley"}))
        assert {"triple": ["Mary Shelley", "occupation", "writer"]} in facts["facts"]
        malformed = {"question": "?", "answer": RIGHT, "evidence": [{"txt": "a"}]}
        result = await client.call_tool("check_answer", malformed)
        assert result.is_error
        assert "did you mean 'text'" in result.content[0].text


async def test_corrections_are_reported():
    facts = [{"triple": ["Fjell 3", "price", "2,490 euros"]}]
    said = "The Fjell 3 costs 2,190 euros."
    asked = {"question": "What does it cost?", "evidence": facts, "policy": "strict-correct"}
    with Guardrail(GuardrailConfig(graph="none")) as judging:
        async with mcp.Client(mcp_server(judging)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            mended = content_of(await client.call_tool("check_answer", asked | {"answer": said}))
    assert mended["action"] == "correct"
    (sentence,) = mended["sentences"]
    assert sentence["correction"]["original"] == said
    assert sentence["correction"]["by"] == "edit"
    spans = [span for span in sentence["spans"] if span["kind"] == "corrected"]
    assert [(span["text"], span["instead_of"], span["triple"]) for span in spans] == [
        ("2,490 euros", "2,190 euros", ["Fjell 3", "price", "2,490 euros"])
    ]
    assert mended["clean"][spans[0]["start"] : spans[0]["end"]] == "2,490 euros"
    jsonschema.validate(mended, tools["check_answer"].output_schema)


async def test_a_dry_run_of_the_settings_holds_for_every_policy():
    config = GuardrailConfig(judge="none", policy={"base": "strict", "dry_run": True})
    with Guardrail(config) as guard:
        async with mcp.Client(mcp_server(guard)) as client:
            asked = {
                "question": "How many bikes are there?",
                "answer": "There are three bikes.",
                "evidence": [{"table": {"name": "bikes", "rows": [{"name": "Fjell 3"}] * 2}}],
                "policy": "strict",
            }
            reply = content_of(await client.call_tool("check_answer", asked))
    assert "There are three bikes" in reply["text"]
    assert reply["would"] in {"filter", "refuse"}


def test_the_command_answers_even_half_a_character():
    """The official client cannot send one; others can."""
    half = {"question": "Who\ud800?", "answer": RIGHT, "evidence": [{"text": "a\udfff", "id": "1"}]}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
    hello["clientInfo"] = {"name": "test", "version": "1"}
    calls = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "check_answer", "arguments": half}},
    ]
    command = [sys.executable, "-m", "guardrail", "mcp", "--judge", "none", "--kg", "none"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        for call in calls:
            server.stdin.write(json.dumps({"jsonrpc": "2.0"} | call).encode() + b"\n")
            server.stdin.flush()
        replies = [json.loads(server.stdout.readline()) for _ in range(2)]
        server.kill()
    assert replies[1]["id"] == 2
    assert "result" in replies[1]


@pytest.mark.parametrize("policy", [None, "strict"])
async def test_the_configured_deadline_bounds_every_policy(policy):
    config = GuardrailConfig(graph="none", policy=ANNOTATE.changed(deadline_s=0.3))
    asked = {"question": "?", "answer": RIGHT, "evidence": [RIGHT], "policy": policy}
    with Guardrail(config, grounding=Slow()) as slow:
        async with mcp.Client(mcp_server(slow)) as client:
            reply = content_of(await client.call_tool("check_answer", asked))
    assert reply["action"] == ("refuse" if policy else "unverified")
    assert not reply["sentences"]
