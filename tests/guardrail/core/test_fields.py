"""Settings and requests that people write."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from chains.gateway.requests import CheckBody
from guardrail import ConfigError, GuardrailConfig
from guardrail.commands.tuning import write_settings
from guardrail.config import gateway_section
from guardrail.core.fields import field_problems, read_toml
from kg.profiles import load_profile


@pytest.mark.parametrize(
    ("body", "stated"),
    [
        ({"answer": "x", "evidences": []}, "'evidences'; did you mean 'evidence'?"),
        ({"answer": "x", "passages": [{"text": "y", "titel": "z"}]}, "did you mean 'title'?"),
        ({"answer": "x", "evidence": [{"text": "y", "titel": "z"}]}, "did you mean 'title'?"),
        ({"answer": "x", "zzz": 1}, "'zzz'; known: id, question, triples"),
        ({}, "answer: Field required"),
    ],
)
def test_a_wrong_field_is_reported_with_the_nearest(body, stated):
    with pytest.raises(ValidationError) as raised:
        CheckBody.model_validate(body)
    assert stated in field_problems(CheckBody, raised.value)


HOSTILE = {
    "digits": b"x = " + b"9" * 5_000,
    "nested": b"x = " + b"[" * 100_000,
    "no UTF-8": b"x = '\xff'",
    "no TOML": b"x",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_every_reader_of_toml_refuses_what_is_none(tmp_path, content):
    path = tmp_path / "settings.toml"
    path.write_bytes(content)
    readers = (
        lambda: read_toml(content, path),
        lambda: GuardrailConfig.from_toml(path, environ={}),
        lambda: gateway_section(path),
        lambda: load_profile(path),
        lambda: write_settings(path, {"policy": {"a": 0.5}}),
    )
    for read in readers:
        with pytest.raises(ConfigError, match="not TOML"):
            read()


def test_a_variable_with_a_long_number_is_text():
    environ = {"GUARDRAIL_JUDGE": "9" * 5_000}
    assert GuardrailConfig.from_env(environ).judge == "9" * 5_000
