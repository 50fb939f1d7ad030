"""Public names load their module when they are first asked for."""

import sys
from types import ModuleType

import pytest

from guardrail.core.errors import MissingExtraError
from guardrail.core.lazy import loaded_on_use


@pytest.fixture
def package(monkeypatch):
    made = ModuleType("a_package")
    made.__all__ = ["loads", "dumps"]
    monkeypatch.setitem(sys.modules, "a_package", made)
    return made


def test_a_missing_library_is_reported_with_its_extra(package, monkeypatch):
    monkeypatch.setitem(sys.modules, "a_library", None)
    homes = {"a_library.part": "read"}
    with pytest.raises(MissingExtraError) as stated:
        loaded_on_use("a_package", homes, {"a_library": "documents"})[0]("read")
    assert (stated.value.package, stated.value.extra) == ("a_library", "documents")
    with pytest.raises(ModuleNotFoundError):
        loaded_on_use("a_package", homes)[0]("read")
