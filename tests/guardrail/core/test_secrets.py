"""Credentials do not leave: not in messages, not in log records, not in the chain of an error."""

import logging
import traceback

import pytest

from guardrail.core.errors import ConfigError, KnowledgeGraphError
from guardrail.core.secrets import get_logger, redact, register_secret, resolve_secret
from guardrail.core.types import Problem


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://svc:s3cret@127.0.0.1:9/sparql: refused", "http://***@127.0.0.1:9/sparql: refused"),
        ("http://svc:p@ss/w#rd@host/sparql", "http://***@host/sparql"),
        ("https://token-alone@host/", "https://***@host/"),
        ("postgresql+psycopg://u:p%40w@db/x", "postgresql+psycopg://***@db/x"),
        ("u:pw@db/x cannot be opened", "***@db/x cannot be opened"),
        ("host=db user=ann password=s3cret", "host=db user=ann password=***"),
        ("https://h/q?api-version=2024&api_key=s3&x=1", "https://h/q?api-version=2024&api_key=***&x=1"),
        ("GET /v1/models?token=s3&x=1", "GET /v1/models?token=***&x=1"),
        ("Authorization: Bearer s3", "Authorization: ***"),
        ("{'authorization': 'Basic dTpwQHNz', 'x': 1}", "{'authorization': '***', 'x': 1}"),
        ("proxy login Basic dTpwQHNz refused", "proxy login Basic *** refused"),
        ("X-Api-Key: s3", "X-Api-Key: ***"),
        ('{"client_secret": "s3"}', '{"client_secret": "***"}'),
        ("Incorrect API key: sk-proj-abcdefgh12345678", "Incorrect API key: ***"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxIn0.c2ln", "***"),
    ],
)  # fmt: skip
def test_credentials_are_hidden_by_their_place_or_form(text, shown):
    assert redact(text) == shown
    assert redact(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "http://host:8080/path/x@v2 does not answer",
        "https://medium.example/@ann and ann@example.org",
        "max_tokens=5; the token: expected a number",
        "Basic authentication failed",
        "graph.endpoint.password: write env:NAME or file:PATH",
        "the bearer of the name",
        "row 3: 'a:b' at 10:30",
    ],
)
def test_other_text_stays(text):
    assert redact(text) == text


def test_a_registered_secret_is_hidden_wherever_it_stands():
    register_secret("corréct horse/battery")
    assert redact("401 for corréct horse/battery!") == "401 for ***!"
    assert redact("at corr%C3%A9ct%20horse%2Fbattery") == "at ***"
    register_secret("short")
    assert redact("a short message") == "a short message"


def test_errors_their_chain_and_problems_hold_none():
    address = "http://ann:s3cret-1@host/"

    def fail():
        try:
            raise OSError(f"cannot open {address}")
        except OSError as error:
            raise KnowledgeGraphError(f"failed: {error}") from error

    with pytest.raises(KnowledgeGraphError) as caught:
        fail()
    assert "s3cret-1" not in "".join(traceback.format_exception(caught.value))
    assert Problem(part="kg", message=address).message == "http://***@host/"


def test_log_records_hold_none(caplog):
    log = get_logger("tests.secrets")
    secret = "s3cret-2"
    try:
        raise ValueError(f"password={secret}")
    except ValueError:
        with caplog.at_level(logging.INFO, logger="tests.secrets"):
            log.exception("%s broke off", f"http://ann:{secret}@host/")
            log.info("%d answers", 3)
    assert "s3cret-2" not in caplog.text
    assert "http://***@host/ broke off" in caplog.text
    assert "3 answers" in caplog.text


def test_secrets_come_from_the_environment_or_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("A_SECRET", "from the environment")
    (tmp_path / "secret").write_text("from a file\n")
    assert resolve_secret("env:A_SECRET") == "from the environment"
    assert resolve_secret(f"file:{tmp_path / 'secret'}") == "from a file"


@pytest.mark.parametrize("content", ["", "\n", "two\nlines", None])
def test_a_file_without_one_secret_is_an_error(tmp_path, content):
    file = tmp_path / "secret"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError):
        resolve_secret(f"file:{file}")
