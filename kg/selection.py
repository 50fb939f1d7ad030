"""Keeps a part of a Wikidata dump while it streams: languages, properties, classes of entities."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from guardrail.core.types import Value

__all__ = ["Selection"]

_WIKIDATA: Final = b"http://www.wikidata.org/"
_SUBJECT: Final = re.compile(rb"[ \t]*(\S+)[ \t]+<([^>\n]*)>[ \t]+")
_LANGUAGE: Final = re.compile(rb'"@([A-Za-z0-9-]+)[ \t]*\.[ \t]*$')
_DIRECT: Final = _WIKIDATA + b"prop/direct/"
_ENTITY: Final = _WIKIDATA + b"entity/"
_INSTANCE_OF: Final = _DIRECT + b"P31"


class Selection(Value):
    """Which lines of a dump are kept; what is left empty keeps everything.

    A dump tells all of an entity in one stretch of lines, which is held back until its classes
    are known. Properties are always kept, with their labels.

    Attributes:
        languages: Tags of the texts to keep (``en`` keeps ``en-GB``); untagged text always stays.
        properties: Ids of the properties whose facts to keep (``P31``).
        classes: Ids of the classes (``Q5``) whose instances to keep.
    """

    languages: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return not (self.languages or self.properties or self.classes)

    def keep(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines to keep, entity by entity, each in one piece.

        Args:
            lines: Lines of N-Triples, each with its end.
        """
        languages = tuple(tag.lower().encode() for tag in self.languages)
        regional = tuple(tag + b"-" for tag in languages)
        properties = frozenset(_DIRECT + item.encode() for item in self.properties)
        classes = frozenset(b"<" + _ENTITY + kind.encode() + b">" for kind in self.classes)
        block: list[bytes] = []
        subject, wanted = b"", not classes
        for line in lines:
            found = _SUBJECT.match(line)
            if found is None:
                # A comment, or no triple: that is for the load to say.
                yield line
                continue
            if found[1] != subject:
                if wanted and block:
                    yield b"".join(block)
                block, subject = [], found[1]
                wanted = not classes or subject.startswith(b"<" + _ENTITY + b"P")
            predicate = found[2]
            if classes and predicate == _INSTANCE_OF:
                wanted = wanted or line[found.end() :].split(None, 1)[0] in classes
            if properties and predicate.startswith(_DIRECT) and predicate not in properties:
                continue
            if languages and (tagged := _LANGUAGE.search(line)):
                tag = tagged[1].lower()
                if tag not in languages and not tag.startswith(regional):
                    continue
            block.append(line)
        if wanted and block:
            yield b"".join(block)
