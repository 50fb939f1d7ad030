"""GPU back ends, run on the CPU with tiny models of random weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardrail.core.errors import JudgeError
from judges.base import Pair
from judges.checkers import answer_tokens, t5_true
from judges.hf import NLIClassifier, label_columns
from tests.judges.tiny import WORDS, t5_config, write_tokenizer

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

PAIRS = [Pair(f"born in {word} " * n, f"the {word}") for n, word in enumerate(WORDS[:12], 1)]


def fast_tokenizer(folder: Path) -> int:
    size = write_tokenizer(folder)
    transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"),
        pad_token="[PAD]",
        unk_token="[UNK]",
        eos_token="[SEP]",
        model_max_length=64,
    ).save_pretrained(folder)
    return size


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classifier")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=fast_tokenizer(folder),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        id2label={0: "CONTRADICTION", 1: "entailment", 2: "Neutral"},
        initializer_range=0.5,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def seq2seq(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("t5")
    torch.manual_seed(0)
    config = t5_config(fast_tokenizer(folder))
    transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def test_batches_give_what_the_model_gives_pair_by_pair(classifier: Path) -> None:
    judge = NLIClassifier(str(classifier), device="cpu", token_budget=128)
    scores = judge.judge([*PAIRS, PAIRS[0]])
    assert scores[0] == scores[-1]
    model = transformers.BertForSequenceClassification.from_pretrained(classifier).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(classifier)
    for pair, score in zip(PAIRS, scores, strict=False):
        with torch.no_grad():
            encoded = tokenizer(*pair, return_tensors="pt")
            encoded["token_type_ids"] = (
                torch.arange(encoded["input_ids"].shape[1])[None]
                > encoded["input_ids"][0].tolist().index(3)
            ).long()
            [row] = model(**encoded).logits.softmax(-1).tolist()
        found = [score.contradiction, score.entailment, score.neutral]
        assert found == pytest.approx(row, abs=1e-4)


def test_long_premises_are_windowed_and_odd_text_is_read(classifier: Path) -> None:
    judge = NLIClassifier(str(classifier), device="cpu")
    pairs = [Pair("rome " * 500, "paris"), Pair("", ""), Pair("\ud800", "rome")]
    assert len(judge.judge(pairs)) == 3
    assert judge.judge([]) == []


def test_compiled_shapes_are_padded_to_buckets(classifier: Path) -> None:
    judge = NLIClassifier(str(classifier), device="cpu")
    judge.warm_up()
    assert judge._runner is not None
    plain = judge.judge(PAIRS)
    judge._runner._buckets = (32, 64)
    assert [s.entailment for s in judge.judge(PAIRS)] == pytest.approx(
        [s.entailment for s in plain], abs=1e-4
    )


def test_lack_of_memory_halves_the_batch(classifier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = NLIClassifier(str(classifier), device="cpu")
    expected = judge.judge(PAIRS)
    runner = judge._runner
    assert runner is not None
    compute = runner._outputs

    def small_device(model: object, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        if len(inputs["input_ids"]) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return compute(model, inputs)

    monkeypatch.setattr(runner, "_outputs", small_device)
    for found, wanted in zip(judge.judge(PAIRS), expected, strict=True):
        assert found.entailment == pytest.approx(wanted.entailment, abs=1e-5)


def test_a_model_that_gives_nan_is_an_error(classifier: Path) -> None:
    judge = NLIClassifier(str(classifier), device="cpu")
    judge.warm_up()
    assert judge._runner is not None
    with torch.no_grad():
        judge._runner._model.classifier.bias.fill_(float("nan"))
    with pytest.raises(JudgeError, match="not finite"):
        judge.judge(PAIRS)


def test_true_compares_the_likelihood_of_one_and_zero(seq2seq: Path) -> None:
    judge = t5_true(str(seq2seq), device="cpu", token_budget=200)
    scores = judge.judge(PAIRS)
    tokenizer = transformers.AutoTokenizer.from_pretrained(seq2seq)
    model = transformers.T5ForConditionalGeneration.from_pretrained(seq2seq).eval()
    one, zero = tokenizer.convert_tokens_to_ids(["1", "0"])
    for pair, score in zip(PAIRS, scores, strict=True):
        text = f"premise: {pair.premise} hypothesis: {pair.hypothesis}"
        ids = tokenizer(text)["input_ids"]
        with torch.no_grad():
            logits = model(
                input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([[0]])
            ).logits[0, 0]
        expected = logits[[one, zero]].softmax(-1)[0].item()
        assert score.entailment == pytest.approx(expected, abs=1e-4)
        assert score.contradiction == 0


class Spells:
    """A vocabulary, as far as it spells "1" and "0"."""

    unk_token_id = 2

    def __init__(self, one: list[int], zero: list[int]) -> None:
        self.ids = [zero, one]

    def __call__(self, texts: list[str], **_: object) -> dict[str, list[list[int]]]:
        return {"input_ids": self.ids}


def test_true_compares_where_the_spellings_of_one_and_zero_part() -> None:
    """T5's own vocabulary has "▁1" as one token, other digits may take "▁" and the digit."""
    assert answer_tokens(Spells([209], [3, 632]), "x") == ([], (3, 209))
    assert answer_tokens(Spells([3, 536], [3, 632]), "x") == ([3], (632, 536))
    with pytest.raises(JudgeError, match="cannot say"):
        answer_tokens(Spells([3], [3, 632]), "x")


@pytest.mark.parametrize(
    ("labels", "columns"),
    [
        (
            {0: "entailment", 1: "neutral", 2: "contradiction"},
            {"entailment": 0, "neutral": 1, "contradiction": 2},
        ),
        ({0: "not_entailment", 1: "entailment"}, {"neither": 0, "entailment": 1}),
        (
            {0: "REFUTES", 1: "NOT ENOUGH INFO", 2: "SUPPORTS"},
            {"contradiction": 0, "neutral": 1, "entailment": 2},
        ),
    ],
)
def test_labels_are_found_in_any_order(labels: dict[int, str], columns: dict[str, int]) -> None:
    assert label_columns(labels) == columns


def test_a_model_of_another_kind_is_refused() -> None:
    with pytest.raises(JudgeError, match="not those of an NLI model"):
        label_columns({0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"})
