"""The shipped 8-bit files give the same integers on every processor."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from judges.base import GroundingItem
from judges.encoder import create_encoder
from judges.onnx import open_judge
from judges.session import SAFE_WEIGHT, WEIGHTS, open_session
from training.statements import own_statements

FILES = sorted(WEIGHTS.rglob("*.onnx"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(WEIGHTS)))
def test_no_weight_of_a_shipped_file_can_saturate(path: Path) -> None:
    """Every 8-bit matrix is within ±63, or is only looked up and cast to 32-bit floats."""
    for name, table in integer_tables(path).items():
        assert np.abs(table.astype(int)).max(initial=0) <= SAFE_WEIGHT, name


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


def test_the_exact_path_of_other_folders_agrees_bit_for_bit(tmp_path: Path) -> None:
    """A file that does not come with the package takes a kernel that saturates nowhere."""
    copy = shutil.copytree(WEIGHTS, tmp_path / "weights")
    options = open_session(copy / "judge" / "model.onnx").get_session_options()
    assert options.get_session_config_entry("session.x64quantprecision") == "1"
    rows = list(islice(own_statements(), 20))
    items = [GroundingItem(one.statements, one.sentence, one.before) for one in rows]
    assert open_judge(copy / "judge").ground(items) == open_judge().ground(items)
    texts = [one.sentence for one in rows]
    np.testing.assert_array_equal(
        create_encoder(copy / "encoder").embed(texts), create_encoder().embed(texts)
    )
