"""The examples for Guardrails AI and NeMo Guardrails.

Neither package is needed for development. Where one is installed its own program runs the example;
the other tests give the example a small fake of the host, which speaks the documented protocol.
"""

import asyncio
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from guardrail import STRICT
from tests.chains import fake_openai

EXAMPLES = Path(__file__).parents[2] / "examples"
ASKED = "How many rooms does the Kestrel Hotel have?"
RIGHT = "The Kestrel Hotel has 42 rooms."
WRONG = "The Kestrel Hotel has 97 rooms."
OPEN = "The Kestrel Hotel serves otters."
METADATA = {
    "sources": [RIGHT, {"text": "The pool is open daily.", "title": "Pool"}],
    "question": ASKED,
}


class FakeValidator:
    """What Guardrails AI asks of a validator: ``validate`` calls ``_validate``."""

    def __init__(self, on_fail=None):
        self.on_fail = on_fail

    def validate(self, value, metadata):
        return self._validate(value, metadata)


@pytest.fixture
def fake_guardrails_ai(monkeypatch):
    validators = ModuleType("guardrails.validators")
    validators.PassResult = type("PassResult", (SimpleNamespace,), {"outcome": "pass"})
    validators.FailResult = type("FailResult", (SimpleNamespace,), {"outcome": "fail"})
    validators.Validator = FakeValidator
    validators.register_validator = lambda name, data_type: lambda kind: kind
    package = ModuleType("guardrails")
    package.Guard = None
    package.validators = validators
    monkeypatch.setitem(sys.modules, "guardrails", package)
    monkeypatch.setitem(sys.modules, "guardrails.validators", validators)


def validator(guard):
    example = runpy.run_path(str(EXAMPLES / "guardrails_ai_validator.py"))
    return example["Grounded"](guard, on_fail="fix")


def test_a_validator_passes_and_fails(guard, fake_guardrails_ai):
    grounded = validator(guard)
    assert grounded.validate(RIGHT, METADATA).outcome == "pass"
    for said in (WRONG, OPEN):
        failed = grounded.validate(f"{RIGHT} {said}", METADATA)
        assert failed.outcome == "fail"
        assert failed.fix_value == RIGHT
        assert said in failed.error_message
    assert grounded.validate(WRONG, METADATA).fix_value == STRICT.refusal


@pytest.mark.skipif(find_spec("guardrails") is None, reason="Guardrails AI is not installed")
def test_in_guardrails_ai(guard):
    from guardrails import Guard

    guarded = Guard().use(validator(guard))
    assert guarded.validate(RIGHT, metadata=METADATA).validation_summaries == []
    outcome = guarded.validate(f"{RIGHT} {WRONG}", metadata=METADATA)
    assert outcome.validated_output == RIGHT
    assert WRONG in outcome.validation_summaries[0].failure_reason


class FakeRails:
    """What NeMo Guardrails does with an action: it keeps it, and calls it with the context."""

    def register_action(self, action, name):
        self.actions = {name: action}


CHUNKS = [
    ({"relevant_chunks": f"{RIGHT}\nThe pool is open daily."}, RIGHT),
    ({"relevant_chunks": "unread", "relevant_chunks_sep": [RIGHT]}, RIGHT),
    ({"relevant_chunks": "\n", "relevant_chunks_sep": []}, STRICT.refusal),
    ({}, STRICT.refusal),
]


@pytest.mark.parametrize(("chunks", "shown"), CHUNKS)
def test_an_action_returns_the_text_to_show(guard, chunks, shown):
    rails = FakeRails()
    runpy.run_path(str(EXAMPLES / "nemo_action.py"))["add_action"](rails, guard)
    context = {"last_user_message": ASKED, "bot_message": f"{RIGHT} {WRONG}", **chunks}
    assert asyncio.run(rails.actions["check_grounding"](context)) == shown


@pytest.mark.skipif(find_spec("nemoguardrails") is None, reason="NeMo Guardrails is not installed")
def test_in_nemo_guardrails(guard, monkeypatch):
    from nemoguardrails import LLMRails, RailsConfig

    example = runpy.run_path(str(EXAMPLES / "nemo_action.py"))
    monkeypatch.setattr(fake_openai, "ANSWER", f"{RIGHT} {WRONG}")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with fake_openai.served(fake_openai.FakeOpenAI().app) as address:
        model = f'plain, parameters: {{base_url: "{address}/v1"}}'
        settings = example["YAML"].replace("gpt-4o-mini", model)
        rails = LLMRails(RailsConfig.from_content(example["COLANG"], settings))
        example["add_action"](rails, guard)
        for chunks, shown in ((RIGHT, RIGHT), ("", STRICT.refusal)):
            context = {"role": "context", "content": {"relevant_chunks": chunks}}
            said = rails.generate(messages=[context, {"role": "user", "content": ASKED}])["content"]
            assert said.endswith(shown)
            assert WRONG not in said
