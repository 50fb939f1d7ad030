"""Token likelihoods by tiny random models and by servers of the real protocols."""

import json
import math
from contextlib import AbstractContextManager

import pytest

from guardrail.core.errors import ConfigError, JudgeError
from judges.causal_lm import LlamaServerCausalLM, TransformersCausalLM, create_causal_lm
from tests.judges.tiny_gguf import as_folder, llama_server, write_gguf
from tests.servers import Reply, answering

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")


def test_names_select_back_ends():
    assert create_causal_lm("transformers:x").name == "transformers:x"
    assert create_causal_lm("openai:m", base_url="http://127.0.0.1:9").name == "openai:m"
    with pytest.raises(ConfigError, match="unknown causal language model"):
        create_causal_lm("bert")
    with pytest.raises(JudgeError, match=r"llama:http://127\.0\.0\.1:9"):
        create_causal_lm("llama:http://127.0.0.1:9").loglikelihoods([("a", "b")])
    with pytest.raises(JudgeError, match="cannot be loaded"):
        create_causal_lm("transformers:/no/such/folder").loglikelihoods([("a", "b")])


def server(reply: bytes | None) -> AbstractContextManager[str]:
    """A server that answers every request alike, or hangs up."""
    return answering(lambda *_: None if reply is None else Reply(reply))


def test_a_llama_server_and_transformers_agree_on_one_file(tmp_path):
    file = write_gguf(tmp_path / "tiny.gguf")
    pairs = [("the cat", " sat in the hat"), ("", "in it"), ("nothing follows", "")]
    with llama_server(file) as url:
        served = LlamaServerCausalLM(f"{url}/v1").loglikelihoods(pairs)
        [rare] = LlamaServerCausalLM(url).loglikelihoods([("the cat", " sat\u2009in")])
    folder = str(as_folder(file))
    read = TransformersCausalLM(folder, device="cpu", dtype="float32").loglikelihoods(pairs)
    assert [len(item.logprobs) for item in served] == [13, 4, 0]
    assert len(rare.logprobs) == 7  # the first of the space's three bytes has no likelihood
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


@pytest.mark.parametrize(
    "value", ["NaN", "-Infinity", "-1e999", "9" * 400, "null", "true", '"NaN"', "[]"]
)
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
    echoed = {"tokens": ["a", " b"], "token_logprobs": logprobs, "text_offset": [0, 1]}
    choice = {"index": 0, "text": "a b", "finish_reason": "length", "logprobs": echoed}
    body = {"id": "c", "object": "text_completion", "created": 0, "model": "m", "choices": [choice]}
    return json.dumps(body).encode()


def test_an_endpoint_s_echo_gives_the_likelihoods_behind_the_prefix(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with server(completion([None, -0.5])) as url:
        (found,) = create_causal_lm("openai:m", base_url=url).loglikelihoods([("a", " b")])
    assert (found.tokens, found.logprobs) == ((" b",), (-0.5,))


# --- In process -----------------------------------------------------------------------------

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "dog"]
POSITIONS = 200


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory):
    """A random two-layer GPT-2 over nine words, saved the way a hub model is."""
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
        vocab_size=len(vocabulary), n_positions=POSITIONS, n_embd=16, n_layer=2, n_head=2,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def sliding_model(tiny_model, tmp_path_factory):
    """A random Gemma 3 whose first layer sees only the last eight tokens."""
    from transformers import AutoTokenizer, Gemma3ForCausalLM, Gemma3TextConfig

    folder = tmp_path_factory.mktemp("tiny-gemma")
    AutoTokenizer.from_pretrained(tiny_model).save_pretrained(folder)
    torch.manual_seed(0)
    config = Gemma3TextConfig(
        vocab_size=2 + len(WORDS), hidden_size=16, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, head_dim=8, sliding_window=8,
        layer_types=["sliding_attention", "full_attention"], max_position_embeddings=256,
        bos_token_id=0, eos_token_id=0, pad_token_id=0,
    )  # fmt: skip
    Gemma3ForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def lm(tiny_model):
    return TransformersCausalLM(str(tiny_model), device="cpu", dtype="float32")


def own_softmax(folder, text, count):
    """Likelihoods of the last words of a text, from the model itself, one by one."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = torch.tensor([[0, *(2 + WORDS.index(word) for word in text.split())]])
    likelihoods = model(ids).logits.log_softmax(-1)[0, -count - 1 : -1]
    return likelihoods.gather(1, ids[0, -count:, None])[:, 0].tolist()


def test_likelihoods_equal_the_model_s_own_softmax(lm, tiny_model):
    (found,) = lm.loglikelihoods([("the cat", "sat on")])
    assert found.tokens == ("sat", "on")
    assert found.logprobs == pytest.approx(own_softmax(tiny_model, "the cat sat on", 2), abs=1e-5)


def test_a_batch_of_mixed_lengths_equals_single_calls(lm):
    pairs = [("", "the cat"), ("the cat sat on a", "mat"), ("a", "dog saw the cat and the mat")]
    singles = [lm.loglikelihoods([pair])[0].logprobs for pair in pairs]
    together = [found.logprobs for found in lm.loglikelihoods([*pairs, pairs[0]])]
    for alone, batched in zip([*singles, singles[0]], together, strict=True):
        assert batched == pytest.approx(alone, abs=1e-5)


@pytest.mark.parametrize("kind", ["tiny_model", "sliding_model"])
def test_a_start_that_texts_share_is_read_once_and_changes_nothing(kind, request):
    folder = request.getfixturevalue(kind)
    reported = []
    lm = TransformersCausalLM(
        str(folder), device="cpu", dtype="float32", progress=lambda *done: reported.append(done)
    )
    start = "the cat sat on a mat and saw the dog " * 9
    rests = [("the cat", "sat on a mat"), ("a dog saw", "the mat and the cat"), ("", "dog")]
    pairs = [(start + prefix, rest) for prefix, rest in rests] + [("the", "cat sat")]
    lm.warm_up()
    widths = []
    handle = lm._model.get_input_embeddings().register_forward_pre_hook(
        lambda _, args: widths.append(tuple(args[0].shape))
    )
    found = lm.loglikelihoods(pairs)
    handle.remove()
    assert sum(rows * width for rows, width in widths) < 2 * len(start.split())
    for (prefix, rest), item in zip(pairs, found, strict=True):
        expected = own_softmax(folder, f"{prefix} {rest}", len(rest.split()))
        assert item.logprobs == pytest.approx(expected, abs=1e-5)
    assert reported[-1] == (len(pairs), len(pairs))


def test_batches_within_a_small_budget_equal_one_batch(lm, monkeypatch):
    pairs = [("the cat " * n, "sat on a mat") for n in range(1, 9)]
    once = [found.logprobs for found in lm.loglikelihoods(pairs)]
    monkeypatch.setattr("judges.causal_lm.TOKEN_BUDGET", 20)
    for item, found in zip(once, lm.loglikelihoods(pairs), strict=True):
        assert found.logprobs == pytest.approx(item, abs=1e-5)


def test_text_beyond_the_context_keeps_the_words_nearest_to_the_continuation(
    lm, tiny_model, monkeypatch
):
    (long,) = lm.loglikelihoods([("a " * 300 + "the cat", "sat")])
    assert len(long.logprobs) == 1
    assert math.isfinite(long.logprobs[0])
    monkeypatch.setattr("judges.causal_lm.CONTEXT", 8)
    (cut,) = lm.loglikelihoods([("dog dog dog dog a mat and the cat", "sat on")])
    # Eight tokens: begin of text, five words of the prefix, two of the continuation.
    expected = own_softmax(tiny_model, "a mat and the cat sat on", 2)
    assert cut.logprobs == pytest.approx(expected, abs=1e-5)
