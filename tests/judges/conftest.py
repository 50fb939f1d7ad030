from __future__ import annotations

from pathlib import Path

import pytest

from judges.reading_judge import ReadingJudge
from tests.judges.tiny import write_judge


@pytest.fixture(scope="session")
def judge_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_judge(tmp_path_factory.mktemp("judge"))


@pytest.fixture(scope="session")
def tiny_judge(judge_folder: Path) -> ReadingJudge:
    return ReadingJudge(judge_folder, threads=2)
