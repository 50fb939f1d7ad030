"""How sure a judge must be, by name or by thresholds of one's own."""

import pytest

from guardrail.core.errors import ConfigError
from guardrail.core.types import Strictness
from guardrail.core.types.judging import as_strictness


def test_presets_take_more_support_and_tell_contradictions_sooner():
    lenient, balanced, strict = (preset.thresholds for preset in Strictness)
    assert lenient.support < balanced.support < strict.support
    assert lenient.contradiction > balanced.contradiction > strict.contradiction


def test_a_name_a_preset_and_thresholds_are_read():
    assert as_strictness(" Strict ") is Strictness.STRICT
    assert as_strictness(Strictness.LENIENT) is Strictness.LENIENT
    own = as_strictness({"support": 0.4})
    assert own.support == 0.4
    assert as_strictness(own) is own


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("strikt", "did you mean 'strict'"),
        ("zzz", "known: lenient, balanced, strict"),
        ({"suport": 0.4}, "strictness has no 'suport'; known: support"),
        ({"support": 2.0}, "strictness.support: "),
        (3, "strictness is one of"),
    ],
)
def test_what_is_none_is_told_with_what_is_known(value, message):
    with pytest.raises(ConfigError, match=message):
        as_strictness(value)
