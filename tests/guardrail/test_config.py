from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from guardrail import STRICT, ConfigError, Guardrail, GuardrailConfig
from guardrail.config import LogConfig
from guardrail.log.records import open_log
from judges.settings import SecondJudgeSettings
from kg import EndpointSettings

SETTINGS = """
judge = "none"
scorers = ["sck"]
log = "scores.sqlite"

[limits]
sentences = 50

[policy]
base = "strict"
deadline_s = 5.0
thresholds = {overall = 0.5}
"""


def test_toml_then_environment(tmp_path: Path) -> None:
    path = tmp_path / "guardrail.toml"
    path.write_text(SETTINGS)
    environ = {"GUARDRAIL_LIMITS__SENTENCES": "7", "GUARDRAIL_JUDGE": "onnx", "HOME": "/"}
    config = GuardrailConfig.from_toml(path, environ=environ)
    assert config.judge == "onnx"
    assert config.limits.sentences == 7
    assert config.log == LogConfig(path=Path("scores.sqlite"))
    assert config.policy == STRICT.model_copy(
        update={"deadline_s": 5.0, "thresholds": {"overall": 0.5}}
    )


def test_names_stand_for_whole_sections() -> None:
    graph = {"GUARDRAIL_GRAPH": "facts.nt", "GUARDRAIL_GRAPH__PROFILE": "rdfs"}
    others = {"GUARDRAIL_POLICY": "strict", "GUARDRAIL_SCORERS": '["sck", "conner"]'}
    config = GuardrailConfig.from_env(graph | others)
    assert (config.graph.location, config.graph.profile) == ("facts.nt", "rdfs")
    assert config.policy.name == "strict"
    assert config.scorers == ("sck", "conner")


def test_a_second_judge_is_a_name_or_a_table() -> None:
    named = GuardrailConfig.from_env({"GUARDRAIL_SECOND_JUDGE": "chat:m"}).second_judge
    assert named == SecondJudgeSettings(judge="chat:m")
    bounded = {"GUARDRAIL_SECOND_JUDGE": "chat:m", "GUARDRAIL_SECOND_JUDGE__SHARE": "0.1"}
    config = GuardrailConfig.from_env(bounded)
    assert config.second_judge == SecondJudgeSettings(judge="chat:m", share=0.1)
    assert config.changed(judge_cache=3).second_judge == config.second_judge
    assert config.changed(second_judge="none").second_judge is None


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"GUARDRAIL_JUGDE": "x"}, "no setting 'jugde'; did you mean 'judge'"),
        ({"GUARDRAIL_LIMITS__SENTENCE": "5"}, "did you mean 'sentences'"),
        ({"GUARDRAIL_POLICY__DEADLINE": "5"}, "did you mean 'deadline_s'"),
        ({"GUARDRAIL_POLICY": "strct"}, "did you mean 'strict'"),
        ({"GUARDRAIL_SECOND_JUDGE__BANDS": "1"}, "did you mean 'band'"),
        ({"GUARDRAIL_SECOND_JUDGE": "onnx", "GUARDRAIL_SECOND_JUDGE__SHARE": "2"}, "less than or"),
        ({"GUARDRAIL_LIMITS__SENTENCES": "0"}, "limits.sentences: Input should be greater"),
    ],
)
def test_a_wrong_setting_is_named_with_the_nearest_right_one(
    environ: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        GuardrailConfig.from_env(environ)


def test_a_file_that_is_no_toml(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("judge = ")
    with pytest.raises(ConfigError, match="is not TOML"):
        GuardrailConfig.from_toml(path, environ={})
    with pytest.raises(ConfigError, match="cannot read"):
        GuardrailConfig.from_toml(tmp_path / "none.toml", environ={})


def test_a_score_log_may_be_sampled_and_purged(tmp_path: Path) -> None:
    path = tmp_path / "guardrail.toml"
    held = tmp_path / "scores.sqlite"
    path.write_text(f'judge = "none"\n[log]\npath = "{held}"\nsample = 0.0\nretention_days = 0.5\n')
    config = GuardrailConfig.from_toml(path, environ={})
    assert config.log is not None
    assert config.log.retention_days == 0.5
    assert GuardrailConfig.model_validate(config.model_dump(mode="json")) == config
    old = {"created": datetime.now(UTC) - timedelta(days=1)}
    with Guardrail(GuardrailConfig(judge="none", log=held)) as guard:
        guard.check(question="", answer="Ada Lovelace was a poet.", id="yesterday")
    with open_log(held) as log:
        (yesterday,) = log.records()
        log.write_record(yesterday.model_copy(update={"id": "old", **old}))
    with Guardrail(config) as guard:
        guard.check(question="Who?", answer="Ada Lovelace was a poet.", id="unsampled")
        guard.check(question="Who?", answer="", id="failed")
    with open_log(held) as log:
        assert [record.answer.id for record in log.records()] == ["yesterday", "failed"]


def test_a_misspelled_score_in_a_threshold_is_named(tmp_path: Path) -> None:
    path = tmp_path / "guardrail.toml"
    path.write_text("[policy.thresholds]\nsuported_share = 0.5\n")
    with pytest.raises(ConfigError, match=r"guardrail.toml: .* did you mean 'supported_share'"):
        GuardrailConfig.from_toml(path, environ={})


def test_how_to_talk_to_an_endpoint(tmp_path: Path) -> None:
    path = tmp_path / "guardrail.toml"
    path.write_text(
        '[graph]\nlocation = "https://shop.example/sparql"\n[graph.endpoint]\ncache = "none"\n'
    )
    config = GuardrailConfig.from_toml(path, environ={"GUARDRAIL_GRAPH__ENDPOINT__DEADLINE_S": "2"})
    settings = config.graph.endpoint
    assert settings == EndpointSettings(cache=None, deadline_s=2)
    assert config.changed(judge="onnx").graph.endpoint == settings
    with pytest.raises(ConfigError, match="did you mean 'deadline_s'"):
        GuardrailConfig.from_env({"GUARDRAIL_GRAPH__ENDPOINT__DEADLINE": "2"})
    with pytest.raises(ConfigError, match="user': this setting is gone; set login"):
        GuardrailConfig.from_env({"GUARDRAIL_GRAPH__ENDPOINT__USER": "ada"})


def durations(kind: type[BaseModel], *above: str) -> Iterator[tuple[str, ...]]:
    """The places of all settings that are a time to wait, or an age."""
    for name, field in kind.model_fields.items():
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from durations(part, *above, name)
        if name.endswith(("_s", "_days")) and not name.endswith("_per_s"):
            yield (*above, name)


@pytest.mark.parametrize("place", list(durations(GuardrailConfig)), ids=".".join)
def test_a_time_longer_than_any_is_no_setting(place: tuple[str, ...]) -> None:
    """A socket, a lock and the calendar end, each with an error of its own."""
    needed = {"GUARDRAIL_LOG": "scores.sqlite", "GUARDRAIL_SECOND_JUDGE": "chat:m"}
    variable = "GUARDRAIL_" + "__".join(place).upper()
    with pytest.raises(ConfigError, match="less than or equal to"):
        GuardrailConfig.from_env(needed | {variable: "1e12"})
