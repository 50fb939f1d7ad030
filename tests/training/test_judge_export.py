"""The shipped file's parameters can be read back, so that training may go on from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from judges.heads import HEADS
from tests.judges.tiny import random_state
from training.judge_export import LEVELS, read_cross_encoder, write_cross_encoder

STATE = random_state(vocabulary=500)
SHAPES = {name: values.shape for name, values in STATE.items()}


def _written(path: Path, state: dict[str, np.ndarray], *, quantise: bool = True) -> Path:
    write_cross_encoder(state, path, heads=tuple(HEADS), attention_heads=4, quantise=quantise)
    return path


def test_a_file_that_is_read_back_writes_the_same_file_again(tmp_path: Path) -> None:
    first = _written(tmp_path / "first.onnx", STATE)
    state = read_cross_encoder(first, SHAPES, heads=tuple(HEADS))
    assert _written(tmp_path / "second.onnx", state).read_bytes() == first.read_bytes()


def test_parameters_come_back_within_half_an_integer_step(tmp_path: Path) -> None:
    state = read_cross_encoder(_written(tmp_path / "a.onnx", STATE), SHAPES, heads=tuple(HEADS))
    assert state.keys() == STATE.keys()
    for name, values in state.items():
        steps = np.abs(STATE[name]).max(axis=-1, keepdims=True) / LEVELS
        assert (np.abs(values - STATE[name]) <= 0.51 * steps).all(), name
    np.testing.assert_array_equal(state["heads.nli.3.weight"], STATE["heads.nli.3.weight"])


@pytest.mark.parametrize(
    "other",
    [
        {"words.weight": (501, 32)},
        {"layers.1.up.weight": (32, 64)},
        {"heads.nli.3.bias": (2,)},
        {n.replace("layers.1", "layers.2"): shape for n, shape in SHAPES.items() if "rs.1" in n},
    ],
)
def test_a_file_of_another_model_is_refused(
    tmp_path: Path, other: dict[str, tuple[int, ...]]
) -> None:
    path = _written(tmp_path / "judge.onnx", STATE)
    with pytest.raises(ValueError, match="holds no"):
        read_cross_encoder(path, SHAPES | other, heads=tuple(HEADS))


def test_a_file_with_more_than_was_asked_for_is_refused(tmp_path: Path) -> None:
    path = _written(tmp_path / "judge.onnx", STATE)
    fewer = {name: shape for name, shape in SHAPES.items() if "complexity" not in name}
    with pytest.raises(ValueError, match="holds no"):
        read_cross_encoder(path, fewer, heads=("nli", "attribution"))


def test_a_file_in_full_precision_is_refused(tmp_path: Path) -> None:
    path = _written(tmp_path / "judge.onnx", STATE, quantise=False)
    with pytest.raises(ValueError, match="holds no"):
        read_cross_encoder(path, SHAPES, heads=tuple(HEADS))
