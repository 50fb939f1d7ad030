"""The README's code runs as it is printed, block after block, with its settings file."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_readme_s_code_runs_as_printed(tmp_path):
    (settings,) = blocks("toml")
    (tmp_path / "guardrail.toml").write_text(settings, "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks("python"))],
        capture_output=True, text=True, timeout=280, check=False, cwd=tmp_path,
        env={**os.environ, "OPENAI_API_KEY": "k"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (printed,) = blocks("text")
    against = printed.splitlines()[-1]
    assert against.startswith('contradicted: "She was born in Paris."')
    assert against in done.stdout
    assert "refuse supported_share is 0.33, below 0.50" in done.stdout
