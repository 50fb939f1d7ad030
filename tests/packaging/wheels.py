"""Wheels built for tests, from copies, so that the checkout stays as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILT = ("guardrail", "kg", "judges", "chains", "pyproject.toml", "README.md", "LICENSE")
"""What a build reads."""


def pip(*arguments: object, **environment: str) -> None:
    """Run pip; fails with what it said."""
    command = [sys.executable, "-m", "pip", "--isolated", "--quiet", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | environment
    )
    assert done.returncode == 0, done.stderr


def built(source: Path, wheels: Path, *, without: tuple[str, ...] = (), **environment: str) -> Path:
    """Our wheel.

    Args:
        source: Folder for the copy that it is built from.
        wheels: Folder for the wheel.
        without: Patterns of files' names that are left out.
        environment: Variables of the build.
    """
    for name in BUILT:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", *without)
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        else:
            source.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source)
    options = ("--no-deps", "--no-index", "--no-build-isolation")
    pip("wheel", *options, "--wheel-dir", wheels, source, **environment)
    (wheel,) = wheels.glob("*.whl")
    return wheel
