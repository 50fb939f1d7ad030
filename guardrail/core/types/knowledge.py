"""Entities, facts and passages, and the mentions that are linked to entities."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, FiniteFloat

from guardrail.core.incoming import Address, Text, Title
from guardrail.core.types.value import Value

if TYPE_CHECKING:
    from guardrail.core.documents import Section

__all__ = [
    "Candidate",
    "Citation",
    "Entity",
    "Evidence",
    "LinkedEntity",
    "Mention",
    "Passage",
    "Subgraph",
    "TableRow",
    "Triple",
    "linearise",
    "name_in_words",
    "passage_of_document",
]


class Entity(Value):
    """A node of the knowledge graph.

    Attributes:
        id: Short identifier, ``Q212657`` for Wikidata, else the IRI.
        label: Preferred name.
        types: Ids of the classes the node is an instance of; empty when unknown.
        aliases: Other names, without the label.
        description: One line on the entity, where the graph has one.
        url: Page a reader can open.
        prominence: Number of triples the node takes part in; breaks ties in re-ranking.
    """

    id: str
    label: str
    types: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    description: str | None = None
    url: str | None = None
    prominence: int = Field(default=0, ge=0)


class Citation(Value):
    """One cited triple of a marker: entity, property and value (KaLMA 4.2)."""

    entity: str
    property: str
    value: str


class Positional(Value):
    """A value whose first fields may be given by place, all of them or none."""

    _places: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *values: str, **fields: object) -> None:
        if len(values) not in (0, len(self._places)):
            names = ", ".join(self._places)
            raise TypeError(
                f"write {type(self).__name__}({names}), by place or by name; "
                f"{len(values)} came by place"
            )
        super().__init__(**dict(zip(self._places, values, strict=False)), **fields)


class TableRow(Value, extra="ignore"):
    """The table row to which a fact belongs. Further fields, which version 0.2 wrote, are ignored.

    Attributes:
        table: The table's name.
        number: Position of the row, from 1.
    """

    table: str
    number: int = Field(ge=1)


class Triple(Positional):
    """One fact: subject, property and value by their labels, with ids where the graph has them.

    Inline triples of a caller have labels only: ``Triple("Ada Lovelace", "born", "1815")``. A cell
    of a ``guardrail.Table`` has its row as well.
    """

    _places: ClassVar[tuple[str, ...]] = ("subject", "property", "value")

    subject: Text
    property: Text
    value: Text
    subject_id: Text | None = None
    property_id: Text | None = None
    value_id: Text | None = None
    row: TableRow | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            subject: str,
            property: str,  # noqa: A002
            value: str,
            *,
            subject_id: str | None = None,
            property_id: str | None = None,
            value_id: str | None = None,
            row: TableRow | None = None,
        ) -> None: ...

    @builtins.property  # the field of that name shadows it here
    def text(self) -> str:
        """The fact as flat text: subject, property and value (KaLMA 3.3)."""
        return f"{self.subject}, {self.property}: {self.value}."

    @builtins.property
    def statement(self) -> str:
        """The fact as judges read it, the property in words: *hasParking* is *has parking*."""
        return f"{self.subject}, {name_in_words(self.property)}: {self.value}."

    @builtins.property
    def citation(self) -> Citation:
        """The marker that cites this fact; the entity is the id where there is one."""
        return Citation(
            entity=self.subject_id or self.subject, property=self.property, value=self.value
        )


class Passage(Positional):
    """A piece of text that serves as evidence where there is no graph.

    Whoever wrote it may have written its title and address as well: a title is one line, and an
    address that would run something when it is opened is left out.
    """

    _places: ClassVar[tuple[str, ...]] = ("text",)

    text: Text
    id: Text | None = None
    title: Title | None = None
    url: Address = None

    if TYPE_CHECKING:

        def __init__(
            self,
            text: str,
            *,
            id: str | None = None,
            title: str | None = None,
            url: str | None = None,
        ) -> None: ...

    @classmethod
    def from_file(cls, path: str | Path) -> tuple[Passage, ...]:
        """Read a document: PDF, HTML, DOCX, Markdown or plain text.

        Each paragraph, list or table is a passage, below the heading that it stands under. Its id
        says where it stands: *handbook.pdf, p. 12, Returns*.

        Args:
            path: The file; its ending says how it is read. All but Markdown and plain text take
                the extra ``documents``.

        Raises:
            InputError: It cannot be read, is damaged, locked or too large, or holds no text.
            MissingExtraError: The extra is not installed.
        """
        from guardrail.core.documents import read_file

        return cls._of_sections(read_file(path), Path(path).name)

    @classmethod
    def from_bytes(cls, data: bytes, name: str) -> tuple[Passage, ...]:
        """Read a document that is at hand as bytes; all else is as in ``from_file``.

        Args:
            data: The bytes of the file.
            name: Its name; the ending says how it is read.
        """
        from guardrail.core.documents import read_document

        return cls._of_sections(read_document(data, name), Path(name).name)

    @classmethod
    def _of_sections(cls, sections: Sequence[Section], name: str) -> tuple[Passage, ...]:
        found = []
        for place, section in enumerate(sections, start=1):
            page = f"p. {section.page}" if section.page is not None else ""
            where = ", ".join(filter(None, [name, page, section.heading]))
            found.append(cls(section.text, id=f"{name} {place}" if where == name else where))
        return tuple(found)


Evidence = Triple | Passage


def name_in_words(name: str) -> str:
    """The name of a property or a key in words: *battery_life* is *battery life*."""
    # Where an identifier's words meet: battery_life, releaseDate, hours-of-work; an e-mail is one.
    hyphens = r"|(?<=[A-Za-z])-(?=\w)|(?<=\w)-(?=[A-Za-z])" if name.count("-") > 1 else ""
    return re.sub(r"_+|(?<=[a-z0-9])(?=[A-Z])" + ("" if " " in name else hyphens), " ", name)


def passage_of_document(document: object) -> Passage | None:
    """Read a LangChain document, or an object with its fields, as a passage.

    Its id is the document's own, else ``metadata["id"]``; its title is ``metadata["title"]``. Its
    address is ``metadata["url"]``, else ``metadata["source"]``: a url is an address, a source may
    be the name of a file. What is empty counts as missing.

    Args:
        document: Anything; a LangChain document has ``page_content`` and ``metadata``.

    Returns:
        The passage; None where there is no ``page_content`` that is a text.
    """

    def field(name: str) -> object:
        if isinstance(document, Mapping):
            return document.get(name)
        return getattr(document, name, None)

    text, metadata = field("page_content"), field("metadata")
    if not isinstance(text, str):
        return None
    fields = metadata if isinstance(metadata, Mapping) else {}
    return Passage(
        text=text,
        id=_first_written(field("id"), fields.get("id")),
        title=_first_written(fields.get("title")),
        url=_first_written(fields.get("url"), fields.get("source")),
    )


class Subgraph(Value):
    """The one-hop neighbourhood of an entity (KaLMA 3.1).

    Attributes:
        entity: The node in the centre.
        triples: Facts whose subject is the entity, in the graph's stable order.
        incoming: Facts whose value is the entity.
        truncated: True when the graph held more facts than the caller's limit.
    """

    entity: Entity
    triples: tuple[Triple, ...] = ()
    incoming: tuple[Triple, ...] = ()
    truncated: bool = False


def _first_written(*values: object) -> str | None:
    """The first value that says something, as text."""
    written = (str(value).strip() for value in values if value is not None)
    return next(filter(None, written), None)


def linearise(triples: Iterable[Triple]) -> str:
    """Write triples as the flat text that judges read as premise (KaLMA 3.3).

    Neighbouring triples of one subject share a sentence:
    ``Artemisia Gentileschi, place of birth: Rome, occupation: painter.``
    """
    sentences = []
    for subject, group in groupby(triples, key=lambda triple: triple.subject):
        facts = ", ".join(f"{triple.property}: {triple.value}" for triple in group)
        sentences.append(f"{subject}, {facts}.")
    return " ".join(sentences)


class Mention(Value):
    """A stretch of text that may name an entity.

    Attributes:
        text: The surface form, possessive ``'s`` removed.
        start: Offset of the first character.
        end: Offset past the last character.
        ner: The tagger's entity type (``PERSON``, …); None when only the label index found it.
    """

    text: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    ner: str | None = None


class Candidate(Value):
    """One node considered for a mention, with the counts that decided (KaLMA 3.2).

    Attributes:
        entity: The node.
        matches: Neighbour values found exactly in the question.
        score: What the candidates were ordered by, higher first.
    """

    entity: Entity
    matches: tuple[str, ...] = ()
    score: FiniteFloat = 0.0


class LinkedEntity(Value):
    """An entity that was linked, and why.

    Attributes:
        mention: Its span in the text; for an entity reached over a relation,
            the words that name the relation.
        entity: The chosen node.
        matched: How it was found: ``label``, ``alias``, ``partial name``, ``list``,
            ``relation: father`` and so on.
        candidates: All nodes considered, best first.
    """

    mention: Mention
    entity: Entity
    matched: str
    candidates: tuple[Candidate, ...] = ()
