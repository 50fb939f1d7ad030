"""The model card of the shipped sentence encoder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from training.encoder_data import INTENTS

__all__ = ["write_card"]

_CARD = """# Sentence encoder

`model.onnx` is sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), its weights unchanged but
for 8-bit rounding, with heads on its inner layers. `discourse.onnx` judges the order and unity of
a text's sentences.

| output | shape | meaning |
|---|---|---|
| `embedding` | [n, 384] | mean of the last layer, unit length: the original sentence embedding |
| `intent` | [n, 8] | logits of a question's intent |
| `answer_intent` | [n, 8] | logits of the intent an answer reads like, after feature alignment |
| `sentence_state` | [n, d] | what `discourse.onnx` reads; one sentence a row |

`discourse.onnx` takes the states of one text's sentences in order, `states` [s, d], and gives
`logit` [1]: the head picks the next and the former of each sentence among all of the text (its
edge counts as one); the logit is the log of how much likelier than chance the true ones are picked,
plus a tenth of the mean over all pairs of their gain in this order over the
other, less an offset. Coherence = sigmoid(logit / temperature).

Inputs are int64 [n, l]; texts are one segment. Weights are stored in blocks of 8-bit integers;
activations are 32-bit floats, so results do not depend on the batch.

## Training

`python -m training.encoder --data DIR --out DIR`. The trunk is frozen. The intent head is
trained on NF-CATS (MIT) and on its questions rewritten as requests ("Compare …", "Tell me about …";
`training.requests`), with class weights against their imbalance; `python -m training.intent_head`
refits it alone. The discourse head is trained
to pick each sentence's neighbours among the sentences of its text and of another one, and to tell
which of two sentences comes first, on FEVER premises (CC BY-SA), FActScore biographies (MIT), and
the evidence texts of Factcheck-GPT (Apache-2.0) and WiCE (ODC-BY, CC BY-SA), without their labels.
Files: {sizes}.

## Measured on these files

| metric | value |
|---|---|
{metrics}

Intents: NF-CATS validation questions; `rewritten`: the same as requests (none is a non-question,
so macro-F1 counts an F1 of 0 there); `written`: the 56 requests of `benchmarks/requests.jsonl`,
which a person wrote. Without requests in its training the head had 0.854 and 0.949 on the
questions, 0.450 and 0.427 on the rewritten ones, 0.620 and 0.625 on the written ones (macro-F1,
accuracy). Discourse: texts of 4 to 12 sentences held out by source,
against one shuffled twin each; `order_right` is the share in which the shuffled twin scores lower.
Embedding: cosine to the original model in 32-bit floats.

## Limits

English only. NF-CATS has few questions of comparison ({rare}), so its score is uncertain. Coherence
looks at pairs of sentences: it does not see whether a text as a whole makes a point, and tables
read as incoherent.
"""


def write_card(path: Path, metrics: Mapping[str, float], *, sizes: Mapping[str, int]) -> None:
    """Write the card.

    Args:
        path: Where it goes.
        metrics: Every measured number by name.
        sizes: Bytes of each file.
    """
    rows = "\n".join(f"| {name} | {value:.3f} |" for name, value in metrics.items())
    files = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sizes.items())
    card = _CARD.format(metrics=rows, sizes=files, rare=f"54 of 7,669 rows; {INTENTS[3]}")
    path.write_text(card, encoding="utf-8")
