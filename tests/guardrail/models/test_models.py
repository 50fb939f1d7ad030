"""Models by name."""

from __future__ import annotations

import pytest

from guardrail.core.errors import ConfigError
from guardrail.models import default_model, open_model


def test_models_open_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert open_model("openai:gpt", api_key="k").name == "gpt"
    with pytest.raises(ConfigError, match="unknown model"):
        open_model("opnai:gpt")
    with pytest.raises(ConfigError, match="no LangChain model"):
        open_model(3)
    ready = open_model("openai:gpt", api_key="k")
    assert open_model(ready) is ready


def test_without_an_endpoint_there_is_no_default_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError):
        default_model()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_MODEL", "tiny")
    assert default_model().name == "tiny"
