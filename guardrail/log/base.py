"""What score logs of every format share: which responses are recorded, and what of them."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TypedDict, Unpack

from guardrail.core.closing import Closing
from guardrail.core.types import GuardedAnswer
from guardrail.log.entries import Record, Redact, prepare

__all__ = ["Kept", "RecordLog"]


class Kept(TypedDict, total=False):
    """What of the responses a log keeps; see ``RecordLog``."""

    redact: Redact | None
    sample: float
    retention: timedelta | None
    whole: bool


class RecordLog(Closing):
    """A score log in a file.

    Args:
        path: The file.
        redact: Applied to every record before it is written.
        sample: Share of responses to record, in [0, 1]; those with errors are always kept.
        retention: How long records are kept; None for ever.
        whole: Keep all evidence and all candidates of linking, not only what the answer's
            sentences rest on; records are then some fifty times as large.
    """

    def __init__(self, path: str | Path, **kept: Unpack[Kept]) -> None:
        self.path = Path(path)
        self._redact = kept.get("redact")
        self._sample = kept.get("sample", 1.0)
        self._retention = kept.get("retention")
        self._whole = kept.get("whole", False)
        self._lock = threading.Lock()

    def write(self, answer: GuardedAnswer, *, tags: Mapping[str, str] | None = None) -> None:
        """Record one response; it is with the operating system when this returns."""
        record = prepare(answer, tags, self._redact, self._sample, self._whole)
        if record is not None:
            self.write_record(record)

    @abstractmethod
    def write_record(self, record: Record) -> None:
        """Write a finished record."""
