"""Errors are of one family, and of Python's own where code that does not know us catches them."""

import pytest

from guardrail.core import errors
from guardrail.core.errors import GuardrailError, MissingExtraError


@pytest.mark.parametrize("name", errors.__all__)
def test_whoever_catches_ours_catches_each(name):
    kind = getattr(errors, name)
    assert issubclass(kind, GuardrailError)
    assert kind.__doc__


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("InputError", ValueError),
        ("DeadlineExceededError", TimeoutError),
        ("MissingExtraError", ImportError),
    ],
)
def test_some_are_python_s_own_too(name, builtin):
    assert issubclass(getattr(errors, name), builtin)


def test_a_missing_package_is_told_with_what_brings_it():
    error = MissingExtraError("pdfplumber", "documents")
    assert (error.package, error.extra) == ("pdfplumber", "documents")
    assert '--editable ".[documents]"' in str(error)
