"""Characters that no query takes are known in one place."""

from __future__ import annotations

from pathlib import Path

import pytest

import kg
from guardrail.core.errors import InputError
from kg.characters import holds_surrogates, readable, writable
from kg.profiles import check_iri
from kg.quoting import quote_literal


def test_one_module_says_which_characters_they_are() -> None:
    marks = ("ud800", "udfff", "0xD800", r"\x00-\x1f")
    naming = {
        path.name
        for path in Path(kg.__file__).parent.glob("*.py")
        if any(mark.lower() in path.read_text(encoding="utf-8").lower() for mark in marks)
    }
    assert naming == {"characters.py"}


@pytest.mark.parametrize("code", [0xD800, 0xDBFF, 0xDC00, 0xDFFF])
def test_a_lone_surrogate_is_replaced_and_refused(code: int) -> None:
    text = f"Ada{chr(code)}"
    assert holds_surrogates(text)
    assert not writable(text)
    assert readable(text) == "Ada\ufffd"
    assert quote_literal(text) == '"Ada\ufffd"'
    with pytest.raises(InputError):
        check_iri(f"urn:{text}")


@pytest.mark.parametrize("control", ["\x00", "\n", "\x1f", "\x7f"])
def test_a_control_character_is_escaped_and_refused(control: str) -> None:
    assert not writable(f"Ada{control}")
    assert control not in quote_literal(f"Ada{control}")
    with pytest.raises(InputError):
        check_iri(f"urn:Ada{control}")


def test_whole_characters_stay() -> None:
    for text in ("Éamon de Valera", "𝔸da", "\ufffd"):
        assert readable(text) == text
        assert writable(text)
        assert not holds_surrogates(text)
    assert check_iri("urn:𝔸da") == "urn:𝔸da"
