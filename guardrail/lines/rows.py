"""Rows of JSON lines, and what is done with them: in order, with ``id`` echoed.

A line that cannot be used yields an object with ``error`` and does not stop the run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import ClassVar, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from guardrail.core import unpacking
from guardrail.core.errors import GuardrailError
from guardrail.core.fields import in_short
from guardrail.core.incoming import finite_json
from guardrail.core.secrets import get_logger

__all__ = ["LineJob", "Row", "RowT"]

logger = get_logger(__name__)

ALIKE = 0.75
"""How alike a key and a field must be for the key to be taken for a slip (``difflib`` ratio)."""
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""What ``surrogateescape`` leaves of a byte that is not UTF-8."""


class Row(BaseModel):
    """Base of the rows that commands read.

    A key that means a field the row leaves out, by another name or misspelled, is an error: what
    it holds would be missed in silence. Any other key (a gold label, a source) is passed over and
    named once on stderr.
    """

    model_config = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)

    other_names: ClassVar[Mapping[str, str]] = {}
    """Keys that mean a field, by the name of the field."""

    id: str | int | None = None

    @model_validator(mode="after")
    def _no_mistaken_key(self) -> Self:
        left_out = set(type(self).model_fields) - self.model_fields_set - {"id"}
        for key in self.model_extra or {}:
            meant = self.other_names.get(key.lower())
            if meant is None:
                near = get_close_matches(key.lower(), left_out, n=1, cutoff=ALIKE)
                meant = near[0] if near else None
            if meant in left_out:
                raise ValueError(f"there is no field {in_short(key)}; did you mean {meant!r}?")
        return self


RowT = TypeVar("RowT", bound=Row)


class LineJob(Generic[RowT]):
    """What a command does with its rows.

    Args:
        row_type: The model each line must match.
        process: Turns n rows into n results, in order; raises GuardrailError.
        batch_size: Number of rows handed to ``process`` at once.
        title: Shown beside the progress bar.
    """

    def __init__(
        self,
        row_type: type[RowT],
        process: Callable[[Sequence[RowT]], Sequence[BaseModel]],
        *,
        batch_size: int = 64,
        title: str = "rows",
    ) -> None:
        self.row_type = row_type
        self.process = process
        self.batch_size = batch_size
        self.title = title
        self.unread: dict[str, None] = {}
        """Keys that no field has, of all lines so far."""

    def results(self, lines: Iterable[str], first: int = 1) -> Iterator[dict[str, object]]:
        """Yield one JSON object for every line that is not blank, in order.

        Args:
            lines: The lines.
            first: Number of the first one, for messages.
        """
        numbered = ((n, line) for n, line in enumerate(lines, start=first) if line.strip())
        while batch := list(islice(numbered, self.batch_size)):
            parsed = [self._parse(number, line) for number, line in batch]
            rows = [row for row in parsed if isinstance(row, Row)]
            answers = iter(self._process(rows))
            for item in parsed:
                yield next(answers) if isinstance(item, Row) else item

    def _parse(self, number: int, line: str) -> RowT | dict[str, object]:
        """Read one line: a row, or the error object that stands in its place."""
        if unpacking.is_cut(line):
            most = unpacking.LONGEST_LINE
            return {"id": None, "error": f"line {number}: longer than {most} characters"}
        if wrong := _NOT_UTF8.search(line):
            byte = ord(wrong.group()) - 0xDC00
            return {"id": None, "error": f"line {number}: not UTF-8: the byte 0x{byte:02X}"}
        try:
            raw = finite_json(line)
        except json.JSONDecodeError as error:
            place = f"{error.msg}, character {error.pos + 1}"
            return {"id": None, "error": f"line {number}: not JSON: {place}"}
        except (ValueError, RecursionError) as error:
            return {"id": None, "error": f"line {number}: not JSON: {error}"}
        if not isinstance(raw, dict):
            return {"id": None, "error": f"line {number}: not a JSON object"}
        row_id = raw.get("id")
        if not isinstance(row_id, str | int | float):
            row_id = None  # an id is echoed as it came, and one that nests cannot always be
        try:
            row = self.row_type.model_validate(raw)
        except ValidationError as error:
            return {"id": row_id, "error": f"line {number}: {_first_problem(error)}"}
        self.unread |= dict.fromkeys(row.model_extra or {})
        return row

    def _process(self, rows: Sequence[RowT]) -> list[dict[str, object]]:
        """Process a batch; when it fails as a whole, row by row, so that one bad row is alone."""
        if not rows:
            return []
        try:
            results = self.process(rows)
        except Exception as error:  # a fault of ours on one row must not end a job of thousands
            if len(rows) > 1:
                return [result for row in rows for result in self._process([row])]
            if isinstance(error, GuardrailError):
                return [{"id": rows[0].id, "error": str(error)}]
            logger.exception("a row could not be judged")
            return [{"id": rows[0].id, "error": f"internal fault: {type(error).__name__}: {error}"}]
        return [
            {"id": row.id} | result.model_dump(mode="json", exclude={"id"})
            for row, result in zip(rows, results, strict=True)
        ]


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    text = str(first.get("ctx", {}).get("error", first["msg"]))
    return f"{place}: {text}" if place else text
