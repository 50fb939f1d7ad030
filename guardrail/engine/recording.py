"""Recording: every finished answer goes to the score log, which never fails an answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from guardrail.config import LogConfig
from guardrail.core.errors import GuardrailError, OverloadedError, RecordError
from guardrail.core.types import GuardedAnswer, Problem
from guardrail.core.workers import Workers
from guardrail.log.entries import tagged_lost
from guardrail.log.tracing import log_failed, record_answer, stage

if TYPE_CHECKING:
    from guardrail.log.records import ScoreLog


WAIT_S = 2.0
"""Seconds that an answer waits for its record."""


class Recorder:
    """Writes answers to a score log that is opened when it is first needed.

    Its threads are its own: a log that another process holds locked takes none from the judge.
    """

    def __init__(self, settings: LogConfig | None, log: ScoreLog | None) -> None:
        self._settings = settings
        self._log = log
        self._owns_log = log is None
        # Threads that write; a log has one writer at a time, so that more would wait for each
        # other. After 32 writes that hang and are no longer waited for, no further ones are begun.
        self._workers = Workers(2, 32)
        self._opening = threading.Lock()

    def open(self) -> ScoreLog | None:
        """The log; None where there is none.

        Raises:
            RecordError: It cannot be opened.
        """
        with self._opening:
            if self._log is None and self._settings is not None:
                from guardrail.log.records import open_log

                days = self._settings.retention_days
                self._log = open_log(
                    self._settings.path,
                    sample=self._settings.sample,
                    retention=None if days is None else timedelta(days=days),
                )
            return self._log

    async def record(self, answers: Sequence[GuardedAnswer]) -> list[GuardedAnswer]:
        """Write n answers; a failed or late write is reported in their errors."""
        finished = list(answers)
        if self._log is not None or self._settings is not None:
            with stage("record"):
                try:
                    async with asyncio.timeout(WAIT_S):
                        finished = await self._workers.run(
                            lambda: [self._write(answer) for answer in answers]
                        )
                except TimeoutError:
                    late = RecordError(
                        f"the score log did not confirm the record within {WAIT_S:g} s; it may "
                        "still be written. Check whether another process has locked the file"
                    )
                    finished = [_unrecorded(item, late) for item in answers]
                except GuardrailError as error:
                    hangs = (
                        "32 records before it still wait for the score log; look for what holds "
                        "its file"
                    )
                    reported = RecordError(hangs) if isinstance(error, OverloadedError) else error
                    finished = [_unrecorded(item, reported) for item in answers]
        for answer in () if tagged_lost() else finished:
            record_answer(answer, alone=len(finished) == 1)
        return finished

    def close(self) -> None:
        """Release the threads, and the log where it was opened here."""
        self._workers.close()
        if self._owns_log and self._log is not None:
            self._log.close()

    def _write(self, answer: GuardedAnswer) -> GuardedAnswer:
        try:
            log = self.open()
            if log is not None:
                log.write(answer)
        except Exception as error:  # the log may be foreign code; an answer is worth more
            return _unrecorded(answer, error)
        return answer


def _unrecorded(answer: GuardedAnswer, error: Exception) -> GuardedAnswer:
    log_failed(type(error).__name__)
    problem = Problem(part="records", message=f"not recorded: {error}")
    return answer.model_copy(update={"errors": (*answer.errors, problem)})
