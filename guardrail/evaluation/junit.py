"""A run as JUnit XML, which CI servers show row by row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from guardrail.core.errors import InputError
from guardrail.evaluation.rows import EvalResult

__all__ = ["write_junit"]

SUITE = "guardrail eval"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML may hold (XML 1.0, 2.2)."""


def write_junit(path: Path, results: Sequence[EvalResult]) -> None:
    """Write a test case a row: failed where it does not pass, an error where it was not checked.

    Raises:
        InputError: The file cannot be written.
    """
    errors = sum(row.error is not None for row in results)
    failed = sum(not row.passed for row in results) - errors
    counts = {"tests": len(results), "failures": failed, "errors": errors}
    suite = ElementTree.Element(
        "testsuite", {"name": SUITE} | {name: str(number) for name, number in counts.items()}
    )
    for place, row in enumerate(results, start=1):
        name = str(row.id) if row.id is not None else row.question or f"row {place}"
        case = ElementTree.SubElement(suite, "testcase", classname=SUITE, name=_told(name))
        if row.error is not None:
            ElementTree.SubElement(case, "error", message=_told(row.error))
        elif not row.passed:
            fault = ElementTree.SubElement(case, "failure", message=_told(row.failures[0]))
            fault.text = _told("\n".join((*row.failures, f"answer: {row.answer}")))
    whole = ElementTree.Element("testsuites")
    whole.append(suite)
    try:
        ElementTree.ElementTree(whole).write(path, "utf-8", xml_declaration=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def _told(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
