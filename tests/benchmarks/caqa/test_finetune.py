from pathlib import Path

import pytest

from benchmarks.caqa.evaluators import create_evaluator, item_of
from benchmarks.caqa.finetune import FineTuning, fine_tune
from benchmarks.caqa.rows import CAQARow
from guardrail.core.types import Category


@pytest.fixture
def tiny_encoder(tmp_path: Path, train: list[CAQARow]) -> str:
    """A BERT of two small layers with random weights and a vocabulary of the rows' words."""
    transformers = pytest.importorskip("transformers")
    words = sorted({w for row in train[:400] for t in row.evidence for w in t.lower().split()})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary))
    folder = tmp_path / "tiny"
    tokenizer = transformers.BertTokenizerFast(vocab=str(tmp_path / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    return str(folder)


def test_a_classifier_is_fine_tuned_and_judges(tiny_encoder, train, tmp_path):
    folder = tmp_path / "tuned"
    rows = [row for row in train if row.category in (Category.SUPPORTIVE, Category.IRRELEVANT)]
    settings = FineTuning(epochs=1, batch_size=8, learning_rate=1e-3, max_length=64)
    reported: list[tuple[str, int, int]] = []
    loss = fine_tune(
        tiny_encoder, rows[:64], folder, settings, lambda *progress: reported.append(progress)
    )
    assert reported == [("steps", step, 8) for step in range(1, 9)]
    assert loss < 1.45  # below four equal categories already, as two of them never occur
    evaluator = create_evaluator(f"classifier:{folder}")
    said = evaluator.categorise([item_of(row) for row in train[:5]])
    assert said == evaluator.categorise([item_of(row) for row in train[:5]])
    assert all(label in Category for label in said)
