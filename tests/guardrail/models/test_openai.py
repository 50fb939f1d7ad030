from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from guardrail.core.errors import ConfigError, ModelError
from guardrail.core.types import Triple
from guardrail.models import OpenAIModel, Prompt, SampleRequest
from guardrail.models.base import CitationConstraint
from tests.clock import PATIENCE_S
from tests.guardrail.models.endpoint import Endpoint, serve

ROME = Triple(subject="Ann", subject_id="Q1", property="place of birth", value="Rome")
REQUEST = SampleRequest(
    prompt=Prompt.from_text("Who was Ann?"),
    n=3,
    seed=7,
    constraint=CitationConstraint(triples=(ROME,)),
)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serve() as server:
        yield server


def model(endpoint: Endpoint, **options: object) -> OpenAIModel:
    return OpenAIModel("m", base_url=endpoint.url, api_key="k", max_retries=0, **options)  # type: ignore[arg-type]


def test_chat_samples_from_any_event_loop(endpoint: Endpoint) -> None:
    chat = model(endpoint)
    for _ in range(2):  # asyncio.run makes a new loop each time
        samples = asyncio.run(chat.sample(REQUEST))
    assert [sample.text for sample in samples] == ["An answer [NA]."] * 3
    assert endpoint.requests[0]["messages"] == [{"role": "user", "content": "Who was Ann?"}]
    assert endpoint.requests[0]["seed"] == 7
    chat.close()


@pytest.mark.parametrize("refuses_n", [False, True])
def test_a_server_that_ignores_or_refuses_n_is_asked_again(
    endpoint: Endpoint, refuses_n: bool
) -> None:
    endpoint.choices_at_most, endpoint.refuses_n = 1, refuses_n
    samples = asyncio.run(model(endpoint, api="completion").sample(REQUEST))
    assert len(samples) == 3
    answered = endpoint.requests[refuses_n:]
    assert sorted(request["seed"] for request in answered) == [7, 8, 9]
    assert endpoint.requests[0]["stop"] == ["\n"]


def test_structured_outputs_come_back_as_markers(endpoint: Endpoint) -> None:
    sentence = {"text": "Ann is Roman.", "na": False, "citations": ["Q1, place of birth: Rome"]}
    endpoint.text = json.dumps({"sentences": [sentence]})
    (sample, *_) = asyncio.run(model(endpoint, structured=True).sample(REQUEST))
    assert sample.text == "Ann is Roman [Q1, place of birth: Rome]."
    sent = endpoint.requests[0]["response_format"]["json_schema"]
    assert sent["strict"] is True
    with pytest.raises(ConfigError, match="chat API"):
        model(endpoint, structured=True, api="completion")


def test_what_goes_wrong_is_a_model_error(endpoint: Endpoint) -> None:
    async def sample(**options: object) -> None:
        await model(endpoint, **options).sample(REQUEST)

    endpoint.status = 429
    with pytest.raises(ModelError, match="HTTP 429"):
        asyncio.run(sample())
    endpoint.status, endpoint.body = 200, b"<html>" + b"x" * 10_000
    with pytest.raises(ModelError):
        asyncio.run(sample())
    endpoint.delay_s = 3.0
    with pytest.raises(ModelError, match="in time"):
        asyncio.run(sample(timeout_s=0.2))
    gone = OpenAIModel("m", base_url="http://127.0.0.1:9/v1", api_key="k", max_retries=0)
    with pytest.raises(ModelError, match="cannot reach"):
        asyncio.run(gone.sample(REQUEST))


NO_ANSWERS = [b"\xa7\xff\x00", b"[" * 50_000, b'{"choices": 3}', b"null"]


@pytest.mark.parametrize("body", NO_ANSWERS)
@pytest.mark.parametrize("api", ["chat", "completion"])
def test_a_reply_of_any_bytes_is_a_model_error(endpoint: Endpoint, body: bytes, api: str) -> None:
    endpoint.body, endpoint.kind = body, "application/json"
    with pytest.raises(ModelError):
        asyncio.run(model(endpoint, api=api).sample(REQUEST))


async def test_calls_that_hang_leave_the_loop_its_threads(endpoint: Endpoint) -> None:
    endpoint.delay_s = 4.0
    chat = model(endpoint)
    hanging = [asyncio.create_task(chat.sample(REQUEST)) for _ in range(30)]
    await asyncio.sleep(0.5)
    for task in hanging:
        task.cancel()
    assert await asyncio.wait_for(asyncio.to_thread(int, "7"), PATIENCE_S) == 7
    await asyncio.gather(*hanging, return_exceptions=True)
    chat.close()
