"""A tiny judge, written once."""

from pathlib import Path

import pytest

from tests.judges.tiny import write_judge


@pytest.fixture(scope="session")
def judge_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judge like the shipped one, with random weights."""
    return write_judge(tmp_path_factory.mktemp("judge"))
