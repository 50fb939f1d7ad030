"""What the doctor finds."""

import json

from typer.testing import CliRunner

from guardrail.cli import app
from tests.guardrail.models.endpoint import serve


def findings(*options: str) -> tuple[int, dict[str, dict]]:
    done = CliRunner().invoke(app, ["doctor", "--json", *options])
    return done.exit_code, {load["part"]: load for load in json.loads(done.stdout)}


def test_a_sound_installation_is_reported_part_by_part(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with serve() as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        status, found = findings()
    assert list(found) == [
        "installation", "extras", "settings", "parser", "judge", "checks", "scorers", "evidence",
        "graph", "model", "GPU", "log",
    ]  # fmt: skip
    assert {found[part]["state"] for part in ("settings", "parser", "judge", "graph")} == {"ok"}
    assert found["log"]["state"] == "note"
    assert status == (found["model"]["state"] == "wrong")


def test_what_is_wrong_comes_with_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("GUARDRAIL_LOG", str(tmp_path / "nowhere" / "log.sqlite"))
    monkeypatch.setenv("GUARDRAIL_GRAPH", str(tmp_path / "none.ttl"))
    monkeypatch.setenv("GUARDRAIL_JUDGE", "onix")
    status, found = findings()
    assert status == 1
    for part in ("judge", "graph", "model", "log"):
        assert found[part]["state"] == "wrong", part
        assert found[part]["remedy"]
    assert found["settings"]["state"] == "ok"


def test_settings_that_cannot_be_read_do_not_stop_the_rest(tmp_path):
    path = tmp_path / "guardrail.toml"
    path.write_text("jugde = 'none'\n")
    status, found = findings("--config", str(path))
    assert status == 1
    assert "did you mean 'judge'" in found["settings"]["said"]
    assert found["parser"]["state"] == "ok"


def test_checks_and_scorers_from_outside_are_made_and_the_checks_are_tried(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "tried.py").write_text(
        "class Sound:\n    name = 'sound'\n    score = None\n"
        "    def apply(self, claim, evidence, context):\n        return []\n"
        "class Broken(Sound):\n"
        "    def apply(self, claim, evidence, context):\n        return 1 / 0\n"
    )
    path = tmp_path / "guardrail.toml"
    for part, name, state, said in (
        ("checks", "tried:Sound", "ok", "those of the package, without yes_no, tried:Sound"),
        ("checks", "tried:Broken", "wrong", "check 'sound' failed: ZeroDivisionError"),
        ("checks", "tried", "wrong", "there is no check 'tried'"),
        ("scorers", "tried:Sound", "ok", "sound: created"),
        ("scorers", "tried:Gone", "wrong", "has no attribute 'Gone'"),
    ):
        scorers, more = ([], [name]) if part == "checks" else ([name], [])
        path.write_text(
            f"judge = 'none'\nscorers = {scorers}\n[checks]\noff = ['yes_no']\nmore = {more}\n"
        )
        status, found = findings("--config", str(path))
        assert (found[part]["state"], said in found[part]["said"]) == (state, True), found[part]
        assert status == (state == "wrong")


def test_the_section_of_the_gateway_is_read_too(tmp_path):
    path = tmp_path / "guardrail.toml"
    for section, state, said in (
        ("port = 9000", "ok", "http://127.0.0.1:9000"),
        ("host = '0.0.0.0'", "note", "no key"),
        ("prot = 9000", "wrong", "port"),
    ):
        path.write_text(f"judge = 'none'\n[gateway]\n{section}\n")
        status, found = findings("--config", str(path))
        assert found["gateway"]["state"] == state
        assert said in found["gateway"]["said"] + found["gateway"]["remedy"]
        assert status == 1 or state != "wrong"
