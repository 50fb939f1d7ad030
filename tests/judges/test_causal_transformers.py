"""Token likelihoods from tiny random models, and that speed changes no value."""

import math

import pytest

from judges.causal_lm import TransformersCausalLM

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

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
    told = []
    lm = TransformersCausalLM(
        str(folder), device="cpu", dtype="float32", progress=lambda *done: told.append(done)
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
    assert told[-1] == (len(pairs), len(pairs))


def test_batches_within_a_small_budget_equal_one_batch(lm, monkeypatch):
    pairs = [("the cat " * n, "sat on a mat") for n in range(1, 9)]
    once = [found.logprobs for found in lm.loglikelihoods(pairs)]
    monkeypatch.setattr("judges.causal_transformers.TOKEN_BUDGET", 20)
    for item, found in zip(once, lm.loglikelihoods(pairs), strict=True):
        assert found.logprobs == pytest.approx(item, abs=1e-5)


def test_short_texts_are_not_padded_to_a_long_one(tiny_model):
    told = []
    lm = TransformersCausalLM(
        str(tiny_model), device="cpu", dtype="float32", progress=lambda *done: told.append(done)
    )
    short = [("the cat", "sat"), ("a dog", "sat on"), ("the mat", "saw a")]
    lm.loglikelihoods([*short, ("the cat " * 60, "sat on a mat")])
    assert told == [(3, 4), (4, 4)]
    lm.loglikelihoods([*short, ("the cat saw the dog and", "sat on a mat")])
    assert told[2:] == [(4, 4)]


def test_half_precision_is_near_full_precision(lm, tiny_model):
    pair = ("the cat", "sat on a mat and saw the dog")
    half = TransformersCausalLM(str(tiny_model), device="cpu", dtype="bfloat16")
    (found,), (expected,) = half.loglikelihoods([pair]), lm.loglikelihoods([pair])
    assert found.logprobs == pytest.approx(expected.logprobs, abs=0.05)


def test_an_empty_continuation_has_no_tokens(lm):
    assert lm.loglikelihoods([("the cat", "")])[0].logprobs == ()
    assert lm.loglikelihoods([]) == []


def test_text_beyond_the_context_keeps_the_words_nearest_to_the_continuation(
    lm, tiny_model, monkeypatch
):
    (long,) = lm.loglikelihoods([("a " * 300 + "the cat", "sat")])
    assert len(long.logprobs) == 1
    assert math.isfinite(long.logprobs[0])
    monkeypatch.setattr("judges.causal_transformers.CONTEXT", 8)
    (cut,) = lm.loglikelihoods([("dog dog dog dog a mat and the cat", "sat on")])
    # Eight tokens: begin of text, five words of the prefix, two of the continuation.
    expected = own_softmax(tiny_model, "a mat and the cat sat on", 2)
    assert cut.logprobs == pytest.approx(expected, abs=1e-5)
