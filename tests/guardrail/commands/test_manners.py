"""One case from the command line, what a terminal shows, exit status, and errors that help."""

import json
import os
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail.cli import app
from guardrail.commands.serving import require_free
from guardrail.core.errors import ConfigError, GuardrailError, InputError
from guardrail.log.records import open_log
from tests.program import on_terminal

ROOT = Path(__file__).parents[3]


def run(*arguments: str, **options):
    return CliRunner().invoke(app, list(arguments), **options)


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    path = tmp_path / "handbook.txt"
    path.write_text("The bridge was opened in 1932.\n\nThe toll is 4 dollars.\n", "utf-8")
    return path


def test_one_case_is_a_line_of_json_when_piped(handbook: Path) -> None:
    done = run("check", "Toll?", "The toll is 5 dollars.", "--passage", str(handbook))
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert [item["id"] for item in answer["evidence"]] == ["handbook.txt 1", "handbook.txt 2"]
    assert answer["sentences"][0]["category"] == "contradictory"


def test_a_question_without_an_answer_is_a_wrong_use() -> None:
    done = run("check", "Toll?")
    assert done.exit_code == 2
    assert "guardrail check QUESTION ANSWER" in done.stderr


@pytest.mark.parametrize(
    "words",
    ["check Q A --passage {0} {0}", "check --passage {0} {0}", "rank Q --passage {0} {0}",
     "explain --evidence {0} {0} Q A", "serve --key one two"],
)  # fmt: skip
def test_an_option_with_two_values_is_to_be_repeated(words: str, handbook: Path) -> None:
    done = run(*words.format(handbook).split())
    assert done.exit_code == 2
    assert "repeat it" in done.stderr


@pytest.mark.parametrize(("words", "code"), [("Toll? No.", 0), ("Toll? No. Why?", 2)])
def test_what_stands_behind_an_option_may_be_an_argument(
    words: str, code: int, handbook: Path
) -> None:
    done = run("check", "--judge", "none", "--passage", str(handbook), *words.split())
    assert done.exit_code == code
    assert "repeat it" not in done.stderr


def test_explain_lists_what_was_read_for_which_sentence(handbook: Path) -> None:
    case = ("explain", "Toll?", "The toll is 4 dollars.", "--judge", "none")
    done = run(*case, "--passage", str(handbook))
    assert "  read for it: 2\nread: 1 of 2 passages and facts from files\n" in done.stdout
    assert "  2  handbook.txt 2: The toll is 4 dollars.\n" in done.stdout
    first, last = run(*case, "--json", "--passage", str(handbook)).stdout.splitlines()
    (number,) = json.loads(first)["read"]
    assert json.loads(last)["read"][number - 1]["id"] == "handbook.txt 2"


def test_explain_says_why_an_answer_is_refused_and_records_nothing(
    handbook: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "guardrail.toml"
    settings.write_text(f'log = "{tmp_path / "scores.sqlite"}"\n[policy]\nbase = "strict"\n')
    case = ("--judge", "none", "--config", str(settings), "--passage", str(handbook))
    refused = run("explain", "Toll?", "The toll is 5 dollars.", *case).stdout
    passed = run("explain", "Toll?", "The toll is 4 dollars.", *case).stdout
    assert "\nrefused: no sentence is left that the evidence supports\n" in refused
    assert "refused" not in passed
    assert not (tmp_path / "scores.sqlite").exists()
    run("check", "Toll?", "The toll is 4 dollars.", *case)
    assert (tmp_path / "scores.sqlite").exists()


def in_a_terminal(*arguments: str) -> str:
    """What the program prints where its output is a terminal of 100 columns."""
    environment = {**os.environ, "COLUMNS": "100", "TERM": "xterm-256color"}
    return on_terminal("-m", "guardrail", *arguments, env=environment)


def test_a_terminal_shows_each_sentence_next_to_its_evidence(handbook: Path) -> None:
    arguments = ("check", "Toll?", "The toll is 5 dollars.", "--passage", str(handbook))
    shown = in_a_terminal(*arguments)
    line = next(line for line in shown.splitlines() if "The toll is" in line)
    assert "contradicted" in line
    assert "\x1b[" in line  # coloured
    assert json.loads(in_a_terminal(*arguments, "--json"))["action"] == "annotate"


def test_invalid_bytes_fail_their_line_and_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(b'\xef\xbb\xbf{"answer": "Yes."}\n{"answer": "caf\xe9"}\n')
    done = run("check", "--judge", "none", "-i", str(source), "-o", str(target))
    assert done.exit_code == 0
    good, bad = map(json.loads, target.read_text("utf-8").splitlines())
    assert good["text"] == "Yes."
    assert bad["error"] == "line 2: not UTF-8: the byte 0xE9"


def test_a_port_in_use_is_reported_before_loading() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("serve", "--port", str(port))
        assert isinstance(done.exception, ConfigError)
        assert "choose another with --port" in str(done.exception)
        with pytest.raises(ConfigError, match=f"port {port}"):
            require_free("127.0.0.1", port)
    require_free("127.0.0.1", 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("kg", "load", "missing", "--kg", "g"), "cannot read missing: there is no such file"),
        (("kg", "load", "empty.nt", "--kg", "g"), "empty.nt holds no triples; nothing was loaded"),
        (("log", "empty.sqlite"), "empty.sqlite is not a score log"),
        (("log", "bytes.sqlite"), "bytes.sqlite is not a score log"),
        (("bulk", "check", "missing", "-o", "o"), "cannot read missing: there is no such file"),
        (("bulk", "check", "empty.jsonl", "-o", "o"), "no rows in empty.jsonl"),
        (("bulk", "check", "bad.jsonl", "-o", "o", "--judge", "none"), "all 1 rows failed"),
        (("check", "-i", "empty.jsonl", "--judge", "none"), "no rows in"),
        (("check", "-i", "blank.jsonl", "--judge", "none"), "no rows in"),
        (("check", "-i", "bytes.sqlite", "--judge", "none"), "the only line failed"),
        (("check", "-i", "worse.jsonl", "--judge", "none"), "all 2 lines failed"),
    ],
)
def test_a_file_that_is_missing_empty_or_another_thing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("empty.nt", "empty.sqlite", "empty.jsonl"):
        Path(name).touch()
    Path("bytes.sqlite").write_bytes(b"\xff\xfe\x00bad" * 99)
    texts = {"bad.jsonl": "{bad\n", "worse.jsonl": "{bad\n{worse\n", "blank.jsonl": "\n\n"}
    for name, text in texts.items():
        Path(name).write_text(text, "utf-8")
    done = run(*arguments)
    assert done.exit_code == 1
    assert isinstance(done.exception, GuardrailError)
    assert said in str(done.exception)


@pytest.mark.parametrize("command", ["log", "report"])
@pytest.mark.parametrize("option", ["--since", "--until"])
@pytest.mark.parametrize(
    "text",
    ["99999999999d", "999999999999999999w", "9" * 5_000 + "s", "0001-01-01T00:00+14:00",
     "9999-12-31T23:59-14:00", "0000-00-00", "soon", ""],
    ids=lambda text: text[:24],
)  # fmt: skip
def test_an_invalid_time_is_refused(tmp_path: Path, command: str, option: str, text: str) -> None:
    path = tmp_path / "scores.sqlite"
    open_log(path).close()
    done = run(command, str(path), option, text)
    assert (done.exit_code, type(done.exception)) == (1, InputError)
    assert len(str(done.exception)) < 200
