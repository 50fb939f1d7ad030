from __future__ import annotations

from pathlib import Path

import pytest

from judges.onnx import OnnxJudge
from tests.judges.tiny import write_judge


@pytest.fixture(scope="session")
def judge_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_judge(tmp_path_factory.mktemp("judge"))


@pytest.fixture(scope="session")
def tiny_judge(judge_folder: Path) -> OnnxJudge:
    return OnnxJudge(judge_folder, threads=2)
