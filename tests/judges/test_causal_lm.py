"""Causal language models by name, and token likelihoods from servers of the real protocols."""

import json
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from guardrail.core.errors import ConfigError, JudgeError
from judges.causal_lm import LlamaServerCausalLM, TransformersCausalLM, create_causal_lm
from tests.judges.tiny_gguf import as_folder, llama_server, write_gguf


def test_names_select_back_ends():
    assert create_causal_lm("transformers:x").name == "transformers:x"
    assert create_causal_lm("openai:m", base_url="http://127.0.0.1:9").name == "openai:m"
    with pytest.raises(ConfigError, match="unknown causal language model"):
        create_causal_lm("bert")


def test_a_model_that_does_not_exist_is_a_judge_error(tmp_path):
    with pytest.raises(JudgeError, match="cannot load"):
        TransformersCausalLM(str(tmp_path / "nothing")).loglikelihoods([("a", "b")])


def test_a_server_that_is_not_there_is_a_judge_error():
    with pytest.raises(JudgeError, match=r"llama:http://127\.0\.0\.1:9"):
        create_causal_lm("llama:http://127.0.0.1:9").loglikelihoods([("a", "b")])


@contextmanager
def server(reply: bytes | None) -> Iterator[str]:
    """A server that answers every request alike, or hangs up."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            if reply is None:
                return
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def test_a_llama_server_and_transformers_agree_on_one_file(tmp_path):
    file = write_gguf(tmp_path / "tiny.gguf")
    pairs = [("the cat", " sat in the hat"), ("", "in it"), ("nothing follows", "")]
    with llama_server(file) as url:
        served = LlamaServerCausalLM(f"{url}/v1").loglikelihoods(pairs)
    folder = str(as_folder(file))
    read = TransformersCausalLM(folder, device="cpu", dtype="float32").loglikelihoods(pairs)
    assert [len(item.logprobs) for item in served] == [13, 4, 0]
    for left, right in zip(served, read, strict=True):
        assert left.logprobs == pytest.approx(right.logprobs, abs=0.05)  # llama.cpp's 16-bit cache


@pytest.mark.parametrize(
    "reply",
    [None, b"{}", b"<html>", b"[1]", b"[" * 200_000, b'{"tokens": [Infinity]}'],
    ids=["none", "empty", "html", "list", "deep", "infinity"],
)
def test_a_llama_server_that_says_something_else_is_a_judge_error(reply):
    with server(reply) as url, pytest.raises(JudgeError, match=f"llama:{url}"):
        create_causal_lm(f"llama:{url}").loglikelihoods([("a", "b")])


NO_LIKELIHOODS = ["NaN", "-Infinity", "-1e999", "9" * 400, "null", "true", '"NaN"', "[]"]


@pytest.mark.parametrize("value", NO_LIKELIHOODS)
def test_what_is_no_finite_number_is_no_likelihood(value, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    step = f'{{"token": "b", "logprob": {value}}}'
    reply = f'{{"tokens": [1], "completion_probabilities": [{step}]}}'.encode()
    with server(reply) as url, pytest.raises(JudgeError, match="not a finite number"):
        create_causal_lm(f"llama:{url}").loglikelihoods([("a", "b")])
    if value in ("null", "true"):  # said of the first token of a text; a number to the client
        return
    echo = completion([None, 7.5]).replace(b"7.5", value.encode())
    with server(echo) as url, pytest.raises(JudgeError, match="not a finite number"):
        create_causal_lm("openai:m", base_url=url).loglikelihoods([("a", " b")])


@pytest.mark.parametrize("offsets", [b'["x", "y"]', b"[0]"])
def test_places_of_tokens_that_are_none_are_a_judge_error(offsets, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    reply = completion([None, -0.5]).replace(b"[0, 1]", offsets)
    with server(reply) as url, pytest.raises(JudgeError, match="no log-probabilities"):
        create_causal_lm("openai:m", base_url=url).loglikelihoods([("a", " b")])


def completion(logprobs: list[float | None]) -> bytes:
    told = {"tokens": ["a", " b"], "token_logprobs": logprobs, "text_offset": [0, 1]}
    choice = {"index": 0, "text": "a b", "finish_reason": "length", "logprobs": told}
    body = {"id": "c", "object": "text_completion", "created": 0, "model": "m", "choices": [choice]}
    return json.dumps(body).encode()


def test_an_endpoint_s_echo_gives_the_likelihoods_behind_the_prefix(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with server(completion([None, -0.5])) as url:
        (found,) = create_causal_lm("openai:m", base_url=url).loglikelihoods([("a", " b")])
    assert (found.tokens, found.logprobs) == ((" b",), (-0.5,))


def test_an_impossible_token_is_told_and_not_left_out(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with server(completion([None, -math.inf])) as url, pytest.raises(JudgeError, match="finite"):
        create_causal_lm("openai:m", base_url=url).loglikelihoods([("a", " b")])


def test_openai_itself_needs_a_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError):
        create_causal_lm("openai:m").loglikelihoods([("a", "b")])
