"""The heads learn, and the written graphs compute what the trained modules compute."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from transformers import BertConfig, BertModel

from training.encoder_export import Encoder, export
from training.encoder_fit import Recipe, SentenceTable, fit_discourse, fit_intent
from training.encoder_model import (
    FEATURES,
    HIDDEN,
    INTENT_FEATURES,
    DiscourseHead,
    extract,
    load_tokenizer,
)

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "who", "was", "ada", "lovelace", "she", "wrote"]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """A trunk of random weights in the real shape, and heads fitted on random features."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=HIDDEN, num_hidden_layers=6,
        num_attention_heads=12, intermediate_size=1536, max_position_embeddings=64,
    )  # fmt: skip
    trunk = BertModel(config, add_pooling_layer=False).eval()
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, FEATURES)).astype(np.float32)
    recipe = Recipe(intent_epochs=2, intent_batch=16, discourse_epochs=1, discourse_batch=4)
    intent = fit_intent(rows, [row % 8 for row in range(40)], recipe)
    table = SentenceTable(rows, np.arange(0, 40, 4), np.full(10, 4))
    [(_, _, discourse)] = list(fit_discourse(table, recipe))
    width = INTENT_FEATURES
    return Encoder(
        trunk, intent, discourse, np.full(width, 2, np.float32), np.ones(width, "f4"), 0.3
    )


def test_the_written_files_agree_with_the_trained_modules(encoder: Encoder, tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = {word: number for number, word in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    texts = ["who was ada lovelace", "she wrote", "ada"]
    features = extract(encoder.trunk, load_tokenizer(32, tmp_path / "tokenizer.json"), texts)
    export(encoder, tmp_path / "model.onnx", tmp_path / "discourse.onnx")
    model = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    read = torch.tensor(features.astype(np.float32))
    states = []
    for row, text in enumerate(texts):
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        marks = {"attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        inputs = {"input_ids": ids} | marks
        embedding, intent, _, state = model.run(None, inputs)
        assert np.linalg.norm(embedding) == pytest.approx(1, abs=1e-5)
        with torch.no_grad():
            expected = encoder.intent(read[row : row + 1, :INTENT_FEATURES]).numpy()
            expected_state = encoder.discourse.states(read[row : row + 1]).numpy()
        np.testing.assert_allclose(intent, expected, atol=0.1)
        np.testing.assert_allclose(state, expected_state, atol=0.1)
        states.append(state[0])
    discourse = onnxruntime.InferenceSession(tmp_path / "discourse.onnx")
    given = np.array(states, np.float32)
    for count in (1, 2, 3):
        [logit] = discourse.run(["logit"], {"states": given[:count]})[0]
        expected = text_logit(encoder.discourse, given[:count], encoder.offset)
        assert logit == pytest.approx(expected, abs=1e-4)


def text_logit(head: DiscourseHead, states: np.ndarray, offset: float = 0.0) -> float:
    """The definition, spelled out: picks of neighbours above chance, and the order of all pairs."""
    count = len(states)
    edged = torch.cat([torch.zeros(1, head.size), torch.tensor(states)])[None]
    with torch.no_grad():
        scores = head(edged, edged)[0].numpy()
    follows = np.exp(scores[..., 0])
    np.fill_diagonal(follows, 0)
    chain = [*range(count + 1), 0]
    picks = [
        follows[item, other] / of
        for item, other in pairwise(chain)
        for of in (follows[item].sum(), follows[:, other].sum())
    ]
    ahead = [
        scores[item, other, 1] - scores[other, item, 1]
        for item in range(1, count + 1)
        for other in range(item + 1, count + 1)
    ]
    order = 0.1 * float(np.mean(ahead)) if ahead else 0.0
    return float(np.log(np.mean(picks) * count)) + order - offset


def test_the_discourse_head_learns_an_order_that_shows_in_the_features() -> None:
    """Sentences numbered in one feature: after training, rising order scores higher."""
    rng = np.random.default_rng(1)
    places = np.tile(np.arange(5), 60)
    features = rng.normal(size=(300, FEATURES)).astype(np.float32) * 0.1
    features[:, :64] += places[:, None]
    table = SentenceTable(features, np.arange(0, 300, 5), np.full(60, 5))
    *_, (_, _, head) = fit_discourse(table, Recipe(discourse_epochs=6, discourse_batch=8))
    with torch.no_grad():
        states = head.states(torch.tensor(features[:5])).numpy()
    assert text_logit(head, states) > text_logit(head, states[[3, 1, 4, 0, 2]])
