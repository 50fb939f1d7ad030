"""The shipped 8-bit files give the same integers on every processor."""

from __future__ import annotations

import logging
import shutil
from itertools import islice
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnxruntime import InferenceSession

from guardrail.core.errors import JudgeError
from judges import exactness, session
from judges.base import GroundingItem
from judges.exactness import SAFE_WEIGHT, largest_weight
from judges.onnx import SHIPPED as JUDGE
from judges.onnx import open_judge
from judges.session import OnnxTextModel, Segments, open_session
from tests.judges.tiny import write_judge
from training.statements import own_statements

ENCODER = JUDGE.parent / "encoder"
FILES = sorted([*JUDGE.glob("*.onnx"), *ENCODER.glob("*.onnx")])


def real_pairs(count: int) -> list[tuple[str, str]]:
    """Evidence and sentences of chatbot answers, from the statements the judge learns from."""
    return [
        (" ".join(own_statement.statements), own_statement.sentence)
        for own_statement in islice(own_statements(), count)
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_weight_of_a_shipped_file_can_saturate(path: Path) -> None:
    """Every 8-bit matrix is within ±63, or is only looked up and cast to 32-bit floats."""
    for name, table in integer_tables(path).items():
        assert np.abs(table.astype(int)).max() <= SAFE_WEIGHT, name


def integer_tables(path: Path) -> dict[str, np.ndarray]:
    """The 8-bit matrices of a file that anything but a look-up or a cast reads."""
    graph = onnx.load(str(path)).graph
    tables = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    readers = {name: {node.op_type for node in graph.node if name in node.input} for name in tables}
    return {
        name: table
        for name, table in tables.items()
        if table.dtype in (np.int8, np.uint8)
        and table.ndim > 1
        and not readers[name] <= {"Gather", "Cast"}
    }


def exact_session(path: Path, monkeypatch: pytest.MonkeyPatch) -> InferenceSession:
    """A session as on a processor that would saturate with the file's weights."""
    with monkeypatch.context() as patched:
        patched.setattr(session, "_needs_exact_path", lambda _: True)
        return open_session(path)


def test_default_and_exact_sessions_of_the_encoder_agree_bit_for_bit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = OnnxTextModel(ENCODER)
    sequences = [Segments(ids) for ids in model.tokenize([a for a, _ in real_pairs(50)])]
    default = model.run(sequences)
    model._session = exact_session(ENCODER / "model.onnx", monkeypatch)
    exact = model.run(sequences)
    for name, values in default.items():
        np.testing.assert_array_equal(values, exact[name])


def test_default_and_exact_sessions_of_the_judge_agree_bit_for_bit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    items = [
        GroundingItem(one.statements, one.sentence, one.before)
        for one in islice(own_statements(), 20)
    ]
    wanted = open_judge().ground(items)
    (graph,) = JUDGE.glob("*.onnx")
    exact = open_judge(shutil.copytree(JUDGE, tmp_path / "judge"))
    exact.warm_up()
    exact._model._session = exact_session(graph, monkeypatch)
    assert exact.ground(items) == wanted


def test_the_largest_weight_is_read_without_the_onnx_package(tmp_path: Path) -> None:
    for path in FILES:
        tables = [
            np.abs(integer_table.astype(int)).max()
            for integer_table in integer_tables(path).values()
        ]
        assert largest_weight(path) == max(tables, default=0)
    (tmp_path / "model.onnx").write_bytes(b"\xff" * 40)
    with pytest.raises(ValueError, match="no ONNX model"):
        largest_weight(tmp_path / "model.onnx")


@pytest.fixture
def old_judge(tmp_path: Path) -> Path:
    """A judge with a weight that fills all eight bits, as files of older versions do."""
    folder = write_judge(tmp_path / "old")
    path = folder / "model.onnx"
    model = onnx.load(str(path))
    constants = {item.name: item for item in model.graph.initializer}
    table = next(iter(integer_tables(path)))
    wide = numpy_helper.to_array(constants[table]).copy()
    wide.flat[0] = 127
    constants[table].CopyFrom(numpy_helper.from_array(wide, table))
    onnx.save(model, str(path))
    return folder


@pytest.mark.parametrize("exact_kernel", [True, False])
def test_an_older_file_takes_the_exact_path_where_the_processor_needs_it(
    old_judge: Path,
    exact_kernel: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(session, "has_exact_kernel", lambda: exact_kernel)
    session._needs_exact_path.cache_clear()
    path = old_judge / "model.onnx"
    with caplog.at_level(logging.WARNING, logger="judges.session"):
        for _ in range(2):
            options = open_session(path).get_session_options()
            if exact_kernel:
                with pytest.raises(RuntimeError):
                    options.get_session_config_entry("session.x64quantprecision")
            else:
                assert options.get_session_config_entry("session.x64quantprecision") == "1"
    assert len(caplog.records) == (not exact_kernel)


def test_an_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "has_exact_kernel", lambda: False)
    (tmp_path / "model.onnx").write_bytes(b"\xff" * 40)
    with pytest.raises(JudgeError, match=r"model\.onnx"):
        open_session(tmp_path / "model.onnx")


def test_the_processor_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    exactness.has_exact_kernel.cache_clear()
    monkeypatch.setattr(exactness.platform, "machine", lambda: "aarch64")
    assert exactness.has_exact_kernel()
    exactness.has_exact_kernel.cache_clear()
