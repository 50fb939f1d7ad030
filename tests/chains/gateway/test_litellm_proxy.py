"""The real LiteLLM proxy, with this guardrail in front of a scripted model.

LiteLLM pins versions of its own, so it is run from wherever its program is: where
``LITELLM_PROGRAM`` says, next to the Python that runs the tests, in the environment that
``make hosts`` installs, or on the path. Without it, or without its extra ``proxy``, these tests are
left out.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import patch

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app
from guardrail import STRICT, GuardrailConfig
from tests.chains.conftest import scripted_guard
from tests.chains.fake_openai import TEXTS, TOOL_CALL, FakeOpenAI, served
from tests.chains.hotel import DOCUMENTS, HOTEL_QUESTION, SAID, SECRET, WRONG
from tests.ports import free_port

PLACES = (
    Path(sys.executable).parent,
    Path(__file__).parents[3] / "build/litellm/bin",
    *map(Path, os.environ.get("PATH", "").split(os.pathsep)),
)
PROGRAM = os.environ.get("LITELLM_PROGRAM") or shutil.which(
    "litellm", path=os.pathsep.join(map(str, PLACES))
)
NO_PROXY = "litellm[proxy]"
"""What LiteLLM asks for where only its library is installed."""
PATIENCE_S = 120
KEY = "sk-only-for-tests-8e1c1f0a5b5d4c7f9a3e2d1c0b9a8f7e"
ENVIRONMENT = {
    # The packages of this environment are not LiteLLM's.
    **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    "LITELLM_MASTER_KEY": KEY,
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
CONFIG = """
model_list:
  - model_name: mixed
    litellm_params: {{model: openai/mixed, api_base: {model}/v1, api_key: k}}
  - model_name: wrong
    litellm_params: {{model: openai/wrong, api_base: {model}/v1, api_key: k}}
guardrails:
  - guardrail_name: kg
    litellm_params:
      guardrail: generic_guardrail_api
      mode: [pre_call, post_call]
      api_base: {gateway}
      streaming_transform_mode: incremental_diff
      streaming_sampling_rate: 1
"""
MESSAGES = [
    {"role": "user", "content": HOTEL_QUESTION},
    {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL | {"id": "c1"}]},
    {"role": "tool", "tool_call_id": "c1",
     "content": " ".join(document.text for document in DOCUMENTS)},
]  # fmt: skip

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no litellm program on this machine")


@pytest.fixture(scope="module")
def proxy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("litellm")
    config = GuardrailConfig(policy=STRICT, graph={"location": "none"})
    port = free_port()
    with scripted_guard(config=config, retriever=lambda question: []) as guard:
        app = create_app(guard, GatewaySettings(protocols="litellm"))
        with (
            patch.dict(TEXTS, mixed=SAID, wrong=WRONG),
            served(FakeOpenAI().app) as model,
            served(app) as gateway,
        ):
            settings = folder / "config.yaml"
            settings.write_text(CONFIG.format(model=model, gateway=gateway))
            log_file = folder / "proxy.log"
            with log_file.open("wb") as log:
                process = subprocess.Popen(
                    [PROGRAM, "--config", settings, "--host", "127.0.0.1", "--port", str(port)],
                    stdout=log, stderr=subprocess.STDOUT, cwd=folder, env=ENVIRONMENT,
                )  # fmt: skip
            client = httpx.Client(
                base_url=f"http://127.0.0.1:{port}",
                headers={"authorization": f"Bearer {KEY}"},
                timeout=60,
            )
            try:
                _wait(client, process, log_file)
                yield client
            finally:
                client.close()
                process.terminate()
                process.wait(PATIENCE_S)


def _wait(client, process, log_file):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and process.poll() is None:
        try:
            if client.get("/health/liveliness").status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.5)
    said = log_file.read_text(encoding="utf-8", errors="replace")
    if NO_PROXY in said:
        pytest.skip(f"{PROGRAM} has no proxy: install {NO_PROXY}")
    raise RuntimeError(f"the proxy did not start: {said[-2_000:]}")


def ask(client, model, *, stream=False):
    body = {"model": model, "messages": MESSAGES, "stream": stream, "guardrails": ["kg"]}
    return client.post("/v1/chat/completions", json=body)


def test_a_false_sentence_is_removed_and_a_false_answer_blocked(proxy):
    reply = ask(proxy, "mixed")
    text = reply.json()["choices"][0]["message"]["content"]
    assert text.startswith("The Kestrel Hotel has 42 rooms [1]. Breakfast costs 12 euros [1].")
    blocked = ask(proxy, "wrong")
    assert blocked.status_code == 400
    assert STRICT.refusal in blocked.text
    assert SECRET not in reply.text + blocked.text + ask(proxy, "wrong", stream=True).text


def test_a_stream_holds_no_false_sentence(proxy):
    reply = ask(proxy, "mixed", stream=True)
    assert "error" not in reply.text
    chunks = [json.loads(line[6:]) for line in reply.text.splitlines() if line[:7] == "data: {"]
    choices = [choice for chunk in chunks for choice in chunk.get("choices", ())]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    assert text.startswith("The Kestrel Hotel has 42 rooms [1]. Breakfast costs 12")
    assert SECRET not in reply.text
