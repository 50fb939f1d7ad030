"""Evidence that a caller hands over: items of a list, and the ``guardrail`` field of a request."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import BeforeValidator, ValidationError
from typing_extensions import TypedDict

from chains.evidence.rows import table_of_item
from guardrail import Policy, Table, policy_named
from guardrail.core.errors import InputError
from guardrail.core.fields import did_you_mean
from guardrail.core.types import (
    Evidence,
    OwnStrictness,
    Passage,
    Triple,
    Value,
    passage_of_document,
)
from guardrail.evidence.bounds import bounded

__all__ = [
    "FIELD",
    "HandedOver",
    "RequestField",
    "evidence_items",
    "evidence_of_item",
    "request_field",
]

FIELD = "guardrail"
"""Name of the field in a request's body, and of the key in a LangChain config's metadata."""

PASSAGE_KEYS = ("text", "id", "title", "url")
ITEM_KEYS = (*PASSAGE_KEYS, "triple", "table", "file")
TABLE_KEYS = ("rows", "columns", "subject", "name")
FILE_KEYS = ("filename", "file_data")


class WrittenTable(TypedDict, total=False):
    """Rows of a table: objects by column, or lists of cells in the order of ``columns``."""

    rows: list[dict[str, object]] | list[list[object]]
    columns: list[str]
    subject: str
    name: str


class WrittenFile(TypedDict):
    """A document: its name, and its bytes in base 64, which may be a ``data:`` address."""

    filename: str
    file_data: str


class WrittenItem(TypedDict, total=False):
    """An item of evidence as a request writes it: a passage, a triple, or both; a table; a file."""

    text: str
    id: str | int
    title: str
    url: str
    triple: tuple[str, str, str]
    table: WrittenTable
    file: WrittenFile


def _read_items(items: object) -> tuple[Evidence, ...] | None:
    return None if items is None else evidence_items(items)


HandedOver = Annotated[
    tuple[Evidence, ...] | None,
    BeforeValidator(
        _read_items,
        json_schema_input_type=list[str | WrittenItem | tuple[str, str, str]] | None,
    ),
]
"""The type of a field that hands evidence over; see ``evidence_items``."""


class RequestField(Value):
    """What a request says of its own guarding.

    Attributes:
        evidence: What its answer is judged against; None where it hands nothing over.
        policy: A policy by name.
        strictness: How sure the judge must be, a preset or thresholds.
    """

    evidence: HandedOver = None
    policy: str | None = None
    strictness: OwnStrictness = None

    @property
    def changes_policy(self) -> bool:
        """Whether it asks for another policy, or for a strictness of its own."""
        return self.policy is not None or self.strictness is not None

    def chosen_policy(self, configured: Policy) -> Policy:
        """The policy named, else the configured one, with the strictness told.

        The time that an answer may take stays the configured one: a caller does not change it.

        Raises:
            ConfigError: There is none of that name.
        """
        policy = configured
        if self.policy:
            # Time is the settings', and who tries the guardrail out does so on every policy.
            policy = policy_named(self.policy)
            policy = policy.changed(
                deadline_s=configured.deadline_s, dry_run=policy.dry_run or configured.dry_run
            )
        return policy.changed(strictness=self.strictness) if self.strictness else policy


def request_field(value: object) -> RequestField:
    """Read the ``guardrail`` field of a request.

    Args:
        value: ``{"evidence": [...], "policy": "strict", "strictness": "lenient"}``; None for a
            request without it.

    Raises:
        InputError: It holds a key that is not known, or an item that is no evidence.
        ConfigError: There is no such policy or strictness.
    """
    if value is None:
        return RequestField()
    if not isinstance(value, Mapping):
        raise InputError(f"{FIELD!r} must be an object, not {_kind(value)}")
    _known_keys(value, tuple(RequestField.model_fields), FIELD)
    evidence, policy = value.get("evidence"), value.get("policy")
    if policy is not None:
        if not isinstance(policy, str):
            raise InputError(f"{FIELD}.policy must be a policy's name, not {_kind(policy)}")
        policy_named(policy)
    items = None if evidence is None else evidence_items(evidence, f"{FIELD}.evidence")
    return RequestField(evidence=items, policy=policy, strictness=value.get("strictness"))


def evidence_items(items: object, where: str = "evidence") -> tuple[Evidence, ...]:
    """Read a list of items as evidence.

    Args:
        items: Strings, ``{"text", "id", "title", "url"}``, ``{"triple": [s, p, o]}``, objects
            with both, ``{"table": {"rows": […]}}``, ``{"file": {"filename", "file_data"}}``,
            triples, passages, tables, or LangChain documents.
        where: Its name, for errors.

    Raises:
        InputError: It is no list, or an item is none of these or has a name of thousands of
            characters.
    """
    if isinstance(items, str | bytes | Mapping | Value) or not isinstance(items, Iterable):
        raise InputError(f"{where} must be a list of items, not {_kind(items)}")
    return tuple(
        bounded(evidence, f"{where}[{place}]")
        for place, item in enumerate(items)
        for evidence in evidence_of_item(item, f"{where}[{place}]")
    )


def evidence_of_item(item: object, where: str = "item") -> tuple[Evidence, ...]:
    """Read one item as evidence; see ``evidence_items``.

    Returns:
        One piece of evidence, or several: an object may hold a text and a triple beside it; a
        table has a fact for each cell, a document a passage for each paragraph.

    Raises:
        InputError: It is no evidence.
    """
    if isinstance(item, Triple | Passage):
        return (item,)
    if isinstance(item, Table):
        return item.triples
    if isinstance(item, str):
        return (Passage(text=item),)
    if (document := passage_of_document(item)) is not None:
        return (document,)
    if isinstance(item, Mapping):
        return _object(item, where)
    if isinstance(item, list | tuple):
        return (_triple(item, where),)
    raise InputError(
        f"{where} must be a text, an object with 'text', 'triple', 'table' or 'file', a Triple, a "
        f"Passage, a Table or a LangChain document, not {_kind(item)}"
    )


def _object(item: Mapping[str, object], where: str) -> tuple[Evidence, ...]:
    _known_keys(item, ITEM_KEYS, where)
    for key, read in (("table", _table), ("file", _file)):
        if item.get(key) is not None:
            if len(item) > 1:
                raise InputError(f"{where} has more than {key!r}; write each in an item of its own")
            return read(item[key], f"{where}.{key}")
    fields = {key: item[key] for key in PASSAGE_KEYS if item.get(key) is not None}
    triple = item.get("triple")
    if triple is None:
        return (_passage(fields, where),)
    if fields and "text" not in fields:
        raise InputError(
            f"{where} has {next(iter(fields))!r} beside 'triple' and no 'text': a triple holds "
            "subject, property and value alone; add the text, or leave it out"
        )
    fact = _triple(triple, f"{where}.triple")
    return (_passage(fields, where), fact) if fields else (fact,)


def _table(value: object, where: str) -> tuple[Evidence, ...]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where} must be an object with 'rows', not {_kind(value)}")
    _known_keys(value, TABLE_KEYS, where)
    return table_of_item(value, where).triples


def _file(value: object, where: str) -> tuple[Evidence, ...]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where} must be an object with 'filename' and 'file_data'")
    _known_keys(value, FILE_KEYS, where)
    name, data = value.get("filename"), value.get("file_data")
    if not isinstance(name, str) or not isinstance(data, str):
        raise InputError(f"{where} must have 'filename' and 'file_data', both texts")
    try:
        content = b64decode(
            data.partition(",")[2] if data.startswith("data:") else data, validate=True
        )
    except ValueError as error:
        raise InputError(f"{where}.file_data is not base 64: {error}") from error
    return Passage.from_bytes(content, name)


def _passage(fields: Mapping[str, object], where: str) -> Passage:
    try:
        return Passage.model_validate({key: _written(value) for key, value in fields.items()})
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{where}.{place}: {first['msg']}") from None


def _triple(parts: object, where: str) -> Triple:
    if (
        not isinstance(parts, list | tuple)
        or len(parts) != 3
        or not all(isinstance(part, str | int | float) for part in parts)
    ):
        raise InputError(f"{where} must be [subject, property, value]")
    subject, name, value = (str(part) for part in parts)
    return Triple(subject=subject, property=name, value=value)


def _known_keys(value: Mapping[str, object], known: tuple[str, ...], where: str) -> None:
    for key in value:
        if key not in known:
            raise InputError(f"{where} has no field {key!r}; {did_you_mean(str(key), known)}")


def _written(value: object) -> object:
    """Ids and the like may be numbers."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
