"""What a teacher says of rows, which a smaller judge learns beside their labels.

Distillation as in Hinton, Vinyals and Dean (2015, section 2), at temperature 1: the student's
cross-entropy against the teacher's probabilities, for every head, on rows without labels too.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from judges.heads import HEADS, TOKEN_HEADS
from judges.training.batches import HYPOTHESIS, batches_by_length
from judges.training.encoded import EncodedRow, EncodedRows, SoftLabels
from judges.training.model import CrossEncoder
from judges.training.replicas import fast_precision

__all__ = ["soft_labels"]


@torch.no_grad()
def soft_labels(
    teacher: CrossEncoder, rows: Sequence[EncodedRow], *, mark: int, tokens: int, device: str
) -> SoftLabels:
    """Ask a teacher about rows.

    Args:
        teacher: The teacher.
        rows: The rows, in word pieces of the teacher's vocabulary.
        mark: Id of the token that stands before numbered statements.
        tokens: Padded word pieces of a batch.
        device: ``cpu`` or ``cuda``.
    """
    model = copy.deepcopy(teacher).to(device, fast_precision(device)).eval()
    width = sum(map(len, HEADS.values()))
    wholes = np.zeros((len(rows), width), np.float16)
    each: list[NDArray[np.float16]] = [np.zeros((0, 0), np.float16)] * len(rows)
    for batch in batches_by_length(EncodedRows(rows), range(len(rows)), tokens=tokens):
        read = batch.to(device)
        logits = model(read.input_ids, read.attention_mask, read.token_type_ids)
        probabilities = {name: values.float().softmax(-1) for name, values in logits.items()}
        asked = {
            "words": (read.token_type_ids == HYPOTHESIS) & (read.attention_mask == 1),
            "statements": read.input_ids == mark,
        }
        whole = torch.cat([probabilities[name] for name in HEADS], -1)
        parts = [probabilities[name] * asked[name][..., None] for name in TOKEN_HEADS]
        wholes[batch.places] = whole.half().cpu().numpy()
        for place, values in zip(
            batch.places.tolist(), torch.cat(parts, -1).half().cpu().numpy(), strict=True
        ):
            each[place] = values[: len(rows[place].ids)].copy()
    return SoftLabels(wholes, each)
