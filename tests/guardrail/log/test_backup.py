"""A log is whole in one file: once its service has stopped, and in a copy made meanwhile."""

import os
import shutil
import signal
import subprocess
import sys

import httpx
import pytest
from typer.testing import CliRunner

from guardrail import GuardrailConfig, InputError
from guardrail.cli import app
from guardrail.core.errors import RecordError
from guardrail.log.records import open_log
from tests.chains.conftest import QUESTION, TRUE_START, scripted_guard
from tests.chains.fake_openai import until_ready
from tests.clock import PATIENCE_S
from tests.ports import free_port


@pytest.fixture
def written(tmp_path):
    """A log with two records, open for writing."""
    path = tmp_path / "scores.sqlite"
    with scripted_guard(config=GuardrailConfig(log=path)) as guard:
        for _ in range(2):
            guard.check(question=QUESTION, answer=TRUE_START)
        yield path


def count(path):
    with open_log(path, read_only=True) as log:
        return len(list(log.records()))


def test_a_closed_log_is_whole_in_its_file_though_somebody_reads_it(tmp_path):
    path = tmp_path / "scores.sqlite"
    with scripted_guard(config=GuardrailConfig(log=path)) as guard:
        guard.check(question=QUESTION, answer=TRUE_START)
        reader = open_log(path, read_only=True)  # keeps SQLite from tidying up by itself
    copied = shutil.copy(path, tmp_path / "copied.sqlite")
    reader.close()
    assert count(copied) == 1


def test_what_cannot_be_copied_is_an_error(written, tmp_path):
    with open_log(written, read_only=True) as log:
        with pytest.raises(InputError):
            log.back_up(written)
        with pytest.raises(RecordError):
            log.back_up(tmp_path / "no folder" / "copy")
    with pytest.raises(RecordError):
        open_log(tmp_path / "none.sqlite", read_only=True)


def test_a_copy_of_a_log_in_use(written, tmp_path):
    target = tmp_path / "copy.sqlite"
    target.write_text("an older one")
    run = CliRunner().invoke
    done = run(app, ["log", "backup", str(written), str(target)])
    assert done.stderr == f"2 records in {target}\n"
    assert count(target) == 2
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.sqlite"]
    shown = run(app, ["log", "--json", "-n", "1", str(target)])
    assert shown.exit_code == 0
    assert shown.stdout.count('"action"') == 1
    assert run(app, ["log", str(target)]).exit_code == 0


def test_a_service_that_is_told_to_stop_closes_its_log(tmp_path):
    path = tmp_path / "scores.sqlite"
    port = free_port()
    command = [
        sys.executable, "-m", "guardrail", "serve", "--port", str(port), "--judge", "none",
        "--kg", "none", "--log", str(path),
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=dict(os.environ)) as gateway:
        try:
            until_ready(url)
            asked = {"question": QUESTION, "answer": TRUE_START}
            assert httpx.post(f"{url}/v1/checks", json=asked, timeout=PATIENCE_S).status_code == 200
            gateway.send_signal(signal.SIGTERM)
            assert gateway.wait(PATIENCE_S) == 0
        finally:
            gateway.kill()
    assert not path.with_name("scores.sqlite-wal").exists()
    assert count(path) == 1
