"""Token likelihoods from a tiny random model, and from servers that speak the real protocols."""

import json
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from guardrail.errors import ConfigError, JudgeError
from judges.causal_lm import TransformersCausalLM, create_causal_lm

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "dog"]


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory):
    """A random two-layer GPT-2 over nine words, saved the way a hub model is."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny-gpt2")
    vocabulary = {word: index for index, word in enumerate(["<s>", "<unk>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="<s>", unk_token="<unk>"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(vocabulary), n_positions=16, n_embd=16, n_layer=2, n_head=2,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def lm(tiny_model):
    return TransformersCausalLM(str(tiny_model), device="cpu")


def test_likelihoods_equal_the_model_s_own_softmax(lm, tiny_model):
    import torch
    from transformers import GPT2LMHeadModel

    model = GPT2LMHeadModel.from_pretrained(tiny_model).eval()
    ids = torch.tensor([[0, *(2 + WORDS.index(word) for word in ["the", "cat", "sat", "on"])]])
    expected = model(ids).logits.log_softmax(-1)[0, 2:4].gather(1, ids[0, 3:, None])[:, 0]
    (found,) = lm.loglikelihoods([("the cat", "sat on")])
    assert found.tokens == ("sat", "on")
    assert found.logprobs == pytest.approx(expected.tolist(), abs=1e-5)


def test_a_batch_of_mixed_lengths_equals_single_calls(lm):
    pairs = [("", "the cat"), ("the cat sat on a", "mat"), ("a", "dog saw the cat and the mat")]
    singles = [lm.loglikelihoods([pair])[0].logprobs for pair in pairs]
    together = [found.logprobs for found in lm.loglikelihoods([*pairs, pairs[0]])]
    for alone, batched in zip([*singles, singles[0]], together, strict=True):
        assert batched == pytest.approx(alone, abs=1e-5)


def test_an_empty_continuation_has_no_tokens(lm):
    assert lm.loglikelihoods([("the cat", "")])[0].logprobs == ()


def test_text_beyond_the_context_keeps_the_words_nearest_to_the_continuation(lm):
    (long,) = lm.loglikelihoods([("a " * 50 + "the cat", "sat")])
    assert len(long.logprobs) == 1
    assert math.isfinite(long.logprobs[0])


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


@pytest.mark.parametrize("reply", [None, b"{}", b"<html>", b"[1]"])
def test_a_llama_server_that_says_something_else_is_a_judge_error(reply):
    with server(reply) as url, pytest.raises(JudgeError, match=f"llama:{url}"):
        create_causal_lm(f"llama:{url}").loglikelihoods([("a", "b")])


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


def test_a_missing_key_is_a_judge_error(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(JudgeError, match="openai:m"):
        create_causal_lm("openai:m").loglikelihoods([("a", "b")])
