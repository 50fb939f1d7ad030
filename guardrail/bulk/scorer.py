"""The scorer of many rows: an Arrow table of rows in, an Arrow table of results out.

It knows nothing of files or engines, so that the process pool, Ray Data and Spark's ``mapInArrow``
run the same code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from guardrail.bulk.inputs import LINES
from guardrail.config import GuardrailConfig
from guardrail.core.errors import MissingExtraError
from guardrail.core.rows import is_cut
from guardrail.core.types import Value
from kg.opening import SEPARATOR

if TYPE_CHECKING:
    import pyarrow as pa

    from guardrail.guard import Guardrail
    from guardrail.lines import LineJob

Task = Literal["check", "score", "rank"]

Result = tuple[object, str | None, str | None]
"""A row's id as given, and either its result as JSON or its error."""


class BulkScorer(Value):
    """Checks, scores or ranks the rows of Arrow tables; cheap to create and to send to a worker.

    The guardrail is loaded with the first table, once per process. The task is the command whose
    rows these are.

    Example:
        >>> import pyarrow as pa
        >>> scorer = BulkScorer(task="check", config=GuardrailConfig())
        >>> table = pa.table({"question": ["Who was Ada?"], "answer": ["Ada Lovelace was a poet."]})
        >>> scorer(table).column_names
        ['id', 'result', 'error']
    """

    task: Task
    config: GuardrailConfig

    def state(self) -> str:
        """What results depend on: task, settings, files of graphs, evidence, profile, judge."""
        config = self.config
        second = config.second_judge.judge if config.second_judge else ""
        places = [part.strip() for part in (config.graph.location or "").split(SEPARATOR)]
        places += [*map(str, config.evidence), config.graph.profile or ""]
        places += [judge.partition(":")[2] for judge in (config.judge, second)]
        states = [state for place in places if place for state in _states(Path(place).expanduser())]
        shipped = files("judges") / "weights" / "judge" / "judge.json"
        judge = shipped.read_text("utf-8") if shipped.is_file() else ""
        return self.model_dump_json() + json.dumps(states) + judge

    def __call__(self, table: pa.Table | pa.RecordBatch, first: int = 1) -> pa.Table:
        """Judge a table.

        Args:
            table: Columns named like the fields of the task's rows (``question``, ``answer``,
                ``answers``, ``evidence``, ``triples``, ``passages``, ``reference``, ``id``), or
                one column ``json`` that holds one JSON line per row, as text or as bytes.
            first: Number of the first row, for messages.

        Returns:
            One row for each, in order: ``id`` and either ``result`` (JSON) or ``error``.

        Raises:
            MissingExtraError: PyArrow is not installed.
        """
        return as_table(list(self.results(table, first)))

    def results(self, table: pa.Table | pa.RecordBatch, first: int = 1) -> Iterator[Result]:
        """Judge a table, as ``__call__`` does; yields a result for each row, in order."""
        from guardrail.lines import json_line

        for row in _job(self).results(_lines(table), first):
            id_, error = row.pop("id", None), row.pop("error", None)
            row.pop("timings_ms", None)  # differ from run to run
            yield id_, *((json_line(row), None) if error is None else (None, str(error)))


_LOADED: dict[str, tuple[Guardrail, LineJob[Any]]] = {}


def _job(scorer: BulkScorer) -> LineJob[Any]:
    """The scorer's job on lines; each process keeps one with its guardrail loaded."""
    from guardrail.guard import Guardrail
    from guardrail.lines import check_job, rank_job, score_job

    key = scorer.state()
    if key not in _LOADED:
        release()
        # Each row gets the policy's whole time: nobody waits for a batch.
        limits = scorer.config.limits.model_copy(update={"batch_s": math.inf})
        guard = Guardrail(scorer.config.model_copy(update={"limits": limits}))
        guard.warm_up()
        jobs: dict[str, Any] = {"check": check_job, "rank": rank_job, "score": score_job}
        _LOADED[key] = guard, jobs[scorer.task](guard)
    return _LOADED[key][1]


def release() -> None:
    """Close the guardrail that this process keeps for its next table."""
    while _LOADED:
        _, (guard, _) = _LOADED.popitem()
        guard.close()


def as_table(rows: Sequence[Result]) -> pa.Table:
    """Results as columns of text: ``id``, ``result`` and ``error``; raises MissingExtraError."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            name: pa.array(map(_text, column), pa.string())
            for name, column in zip(("id", "result", "error"), columns, strict=True)
        }
    )


def _text(value: object) -> str | None:
    """A value as text; surrogates, which cannot be encoded, become escapes."""
    if value is None:
        return None
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def _states(place: Path) -> list[str]:
    """Name, size and time of a file, or of the files of a folder."""
    if place.is_dir():
        snapshot = place / "snapshot"  # a store's other files change when it is opened
        files = [snapshot] if snapshot.is_file() else sorted(place.iterdir())
        return [state for file in files if file.is_file() for state in _states(file)]
    if not place.is_file():
        return []
    found = place.stat()
    return [f"{place.name} {found.st_size} {found.st_mtime_ns}"]


def _lines(table: pa.Table | pa.RecordBatch) -> Iterator[str]:
    if table.schema.names == [LINES]:
        for line in table.column(LINES).to_pylist():
            if isinstance(line, bytes):
                # Latin-1 keeps the length of a line that is too long.
                code = "latin-1" if is_cut(line) else "utf-8"
                line = line.decode(code, "surrogateescape").removeprefix("\ufeff")
            # A blank row has a result too: the error that null is no object.
            yield line if line and line.strip() else "null"
        return
    for row in table.to_pylist():
        fields = {name: value for name, value in row.items() if value is not None}
        yield json.dumps(fields, default=str)
