"""A tiny judge, written once; torch on one thread: its models here are too small for more."""

from pathlib import Path

import pytest
import torch

from tests.judges.tiny import write_judge

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def judge_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judge like the shipped one, with random weights."""
    return write_judge(tmp_path_factory.mktemp("judge"))
