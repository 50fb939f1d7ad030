"""The relation head: whether a sentence states a triple's own relation."""

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

from guardrail.errors import JudgeError
from judges.base import Pair
from judges.onnx import OnnxJudge
from judges.relation import RelationHead


def head(width: int = 4) -> RelationHead:
    rng = np.random.default_rng(1)
    sizes = ((3, width), (3,), (3,), (1,))
    return RelationHead(*(rng.normal(size=size).astype(np.float32) for size in sizes))


def test_a_head_is_read_as_it_was_written(tmp_path: Path) -> None:
    given = np.random.default_rng(2).normal(size=(5, 4)).astype(np.float32)
    head().save(tmp_path)
    read = RelationHead.load(tmp_path)
    assert read is not None
    told = read(given)
    assert told.shape == (5,)
    assert ((told > 0.0) & (told < 1.0)).all()
    np.testing.assert_allclose(told, head()(given), atol=1e-2)  # kept in 16 bits


def test_a_folder_may_do_without(tmp_path: Path, tiny_judge: OnnxJudge) -> None:
    assert RelationHead.load(tmp_path) is None
    (scores,) = tiny_judge.judge([Pair("Ada left.", "Ada left.")])
    assert scores.stated is None


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "relation.npz").write_bytes(b"no archive")
    with pytest.raises(JudgeError, match="holds no relation head"):
        RelationHead.load(tmp_path)


def test_layers_that_do_not_fit_are_named(tmp_path: Path) -> None:
    head()._replace(outer=np.ones(7, np.float32)).save(tmp_path)
    with pytest.raises(JudgeError, match="layers do not fit"):
        RelationHead.load(tmp_path)


def test_a_head_beside_a_model_that_does_not_feed_it_is_an_error(
    judge_folder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(judge_folder, tmp_path / "judge"))
    model = onnx.load(str(folder / "model.onnx"))
    del model.graph.output[-1]
    onnx.save(model, str(folder / "model.onnx"))
    head().save(folder)
    with pytest.raises(JudgeError, match="relation_head"):
        OnnxJudge(folder).warm_up()


@pytest.mark.parametrize(
    ("stating", "another", "triple"),
    [
        ("Ida Voss started Acme.", "Ida Voss sued Acme.", "Acme, founded by: Ida Voss."),
        ("Acme was set up in 1998.", "Acme was fined in 1998.", "Acme, inception: 1998."),
        ("Ida Voss lives in Bern.", "Ida Voss fled Bern.", "Ida Voss, residence: Bern."),
        ("Ida Voss wrote Dusk.", "Ida Voss reviewed Dusk.", "Dusk, author: Ida Voss."),
    ],
)
def test_the_shipped_judge_tells_relations_apart(stating: str, another: str, triple: str) -> None:
    own, other, blank = OnnxJudge().judge(
        [Pair(stating, triple), Pair(another, triple), Pair("", triple)]
    )
    assert own.stated is not None
    assert other.stated is not None
    assert own.stated > 0.5 > other.stated
    assert blank.stated is None
    assert "stated" not in own.model_dump()
