from __future__ import annotations

from pathlib import Path

import pytest

from judges.onnx import OnnxJudge
from tests.judges.tiny import write_judge


@pytest.fixture(scope="session")
def judge_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_judge(tmp_path_factory.mktemp("judge"))


@pytest.fixture(scope="session")
def windows_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The encoder of a judge that encodes evidence once, as it is published."""
    from tests.judges.tiny_windows import write_base  # imports torch

    return write_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="session")
def windows_judge(tmp_path_factory: pytest.TempPathFactory, windows_base: Path) -> Path:
    """A judge that encodes evidence once, with random weights."""
    from tests.judges.tiny_windows import write_judge

    return write_judge(tmp_path_factory.mktemp("windows"), windows_base)


@pytest.fixture(scope="session")
def tiny_judge(judge_folder: Path) -> OnnxJudge:
    return OnnxJudge(judge_folder, threads=2)
