"""Questions become requests of the same intent, and a head is put into a written encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

from training.encoder_data import INTENTS, IntentRow
from training.encoder_fit import Recipe, fit_intent
from training.encoder_model import INTENT_FEATURES
from training.intent_head import SHIPPED, _Features, with_head
from training.requests import as_requests


def test_a_question_becomes_an_indirect_question_after_a_verb() -> None:
    rows = [
        IntentRow("Why do people sneeze in the sun?", INTENTS.index("reason")),
        IntentRow("Should zoos be banned?", INTENTS.index("debate")),
        IntentRow("The sky is blue.", INTENTS.index("not-a-question")),
    ]
    reason, debate = as_requests(rows)
    assert "why people sneeze in the sun" in reason.question
    assert "whether zoos should be banned" in debate.question
    assert [INTENTS[row.intent] for row in (reason, debate)] == ["reason", "debate"]


def test_a_new_head_gives_the_file_its_logits(tmp_path: Path) -> None:
    model = onnx.load(str(SHIPPED / "model.onnx"))
    texts = ["Compare tea and coffee.", "Who was Ada Lovelace?"]
    features = _Features(model, SHIPPED)(texts)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, INTENT_FEATURES)).astype(np.float32)
    head = fit_intent(rows, [row % 8 for row in range(40)], Recipe(intent_epochs=1))
    changed = with_head(model, head)
    with torch.no_grad():
        expected = head(torch.tensor(features)).numpy()
    np.testing.assert_allclose(_Features(changed, SHIPPED).run("intent", texts), expected, atol=0.1)
    onnx.save(changed, str(tmp_path / "model.onnx"))
    outputs = onnxruntime.InferenceSession(tmp_path / "model.onnx").get_outputs()
    assert [output.name for output in outputs] == [
        "embedding", "intent", "answer_intent", "sentence_state",
    ]  # fmt: skip
