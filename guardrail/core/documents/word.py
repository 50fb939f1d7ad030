"""Word documents as a reader sees them: with fields and formulas, without hidden text."""

from __future__ import annotations

import io
import re
import zipfile
from typing import Final
from xml.etree import ElementTree

__all__ = ["seen_text"]

W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
M: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
PARTS: Final = re.compile(r"word/(?:document|footnotes|endnotes)\d*\.xml")
OFF: Final = ("0", "false", "off")


def seen_text(data: bytes) -> io.BytesIO:
    """A Word document with its fields and formulas as plain text, without text that is hidden.

    Args:
        data: The file's bytes.

    Raises:
        zipfile.BadZipFile: It is no archive.
        ElementTree.ParseError: A part of it is no XML.
    """
    found = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(found, "w") as new:
        for part in old.infolist():
            content = old.read(part)
            if PARTS.fullmatch(part.filename):
                root = ElementTree.fromstring(content)
                _rewrite(root)
                content = ElementTree.tostring(root, "utf-8")
            new.writestr(part, content)
    found.seek(0)
    return found


def _rewrite(element: ElementTree.Element) -> None:
    children: list[ElementTree.Element] = []
    for child in element:
        if child.tag == f"{M}oMath":
            children.append(_run(_linear(child)))
        elif child.tag == f"{W}r" and _hidden(child):
            continue
        else:
            _rewrite(child)
            unwrapped = child.tag in (f"{W}fldSimple", f"{M}oMathPara")
            children += list(child) if unwrapped else [child]
    element[:] = children


def _hidden(run: ElementTree.Element) -> bool:
    mark = run.find(f"{W}rPr/{W}vanish")
    return mark is not None and mark.get(f"{W}val") not in OFF


def _run(text: str) -> ElementTree.Element:
    run = ElementTree.Element(f"{W}r")
    ElementTree.SubElement(run, f"{W}t").text = text
    return run


def _linear(element: ElementTree.Element) -> str:
    """A formula in one line: fractions with a slash, powers with a caret, roots by name."""
    name = element.tag.removeprefix(M)
    if name == "t":
        return element.text or ""
    parts = {part.tag.removeprefix(M): _linear(part) for part in element}
    if name == "f":
        return f"({parts.get('num', '')})/({parts.get('den', '')})"
    if name == "sSup":
        return f"{parts.get('e', '')}^{parts.get('sup', '')}"
    if name == "sSub":
        return f"{parts.get('e', '')}_{parts.get('sub', '')}"
    if name == "rad":
        return f"sqrt({parts.get('deg', '')} {parts.get('e', '')})".replace("( ", "(")
    return "".join(map(_linear, element))
