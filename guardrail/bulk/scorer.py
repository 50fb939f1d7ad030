"""The scorer of many rows: an Arrow table of rows in, an Arrow table of results out.

It knows nothing of files or engines, so that the process pool, Ray Data and Spark's ``mapInArrow``
run the same code.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from guardrail.config import GuardrailConfig
from guardrail.errors import MissingExtraError
from guardrail.types import Value

if TYPE_CHECKING:
    import pyarrow as pa

    from guardrail.commands.lines import LineJob
    from guardrail.guard import Guardrail

__all__ = ["BulkScorer", "Task", "arrow"]

Task = Literal["check", "score", "rank"]

LINES = "json"
"""Name of the one column of a table that holds JSON lines."""

_UNSTEADY = ("timings_ms",)
"""Fields that differ from run to run."""


def arrow() -> Any:
    """The Arrow library.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    return pyarrow


class BulkScorer(Value):
    """Checks, scores or ranks the rows of Arrow tables; cheap to make and to send to a worker.

    The guardrail is loaded with the first table, and once a process.

    Attributes:
        task: What is done with a row; the fields are those of the command of that name.
        config: Settings of the guardrail.
        causal_lm: Language model of CONNER's likelihoods, for ``score``.

    Example:
        >>> import pyarrow as pa
        >>> scorer = BulkScorer(task="check", config=GuardrailConfig())
        >>> table = pa.table({"question": ["Who was Ada?"], "answer": ["Ada Lovelace was a poet."]})
        >>> scorer(table).column_names
        ['id', 'result', 'error']
    """

    task: Task
    config: GuardrailConfig
    causal_lm: str | None = None

    def __call__(self, table: pa.Table | pa.RecordBatch, first: int = 1) -> pa.Table:
        """Judge a table.

        Args:
            table: Columns by the fields of the task's rows (``question``, ``answer``,
                ``answers``, ``triples``, ``passages``, ``reference``, ``id``), or one column
                ``json`` that holds a JSON line a row.
            first: Number of the first row, for messages.

        Returns:
            One row for each, in order: ``id`` and either ``result`` (JSON) or ``error``.
        """
        pa = arrow()
        job = _job(self)
        ids: list[str | None] = []
        results: list[str | None] = []
        errors: list[str | None] = []
        for row in job.results(_lines(table), first):
            name = row.pop("id", None)
            ids.append(None if name is None else str(name))
            error = row.pop("error", None)
            errors.append(error)
            if error is None:
                for field in _UNSTEADY:
                    row.pop(field, None)
            results.append(_json(row) if error is None else None)
        text = pa.string()
        return pa.table(
            {
                "id": pa.array(ids, text),
                "result": pa.array(results, text),
                "error": pa.array(errors, text),
            }
        )


_LOADED: dict[str, tuple[Guardrail, LineJob[Any]]] = {}


def _job(scorer: BulkScorer) -> LineJob[Any]:
    """The scorer's work on lines, with its guardrail loaded; one is kept a process."""
    from guardrail.commands.jobs import check_job, rank_job, score_job
    from guardrail.guard import Guardrail

    key = scorer.model_dump_json()
    if key not in _LOADED:
        for guard, _ in _LOADED.values():
            guard.close()
        _LOADED.clear()
        guard = Guardrail(scorer.config)
        guard.warm_up()
        if scorer.task == "score":
            job: LineJob[Any] = score_job(guard, scorer.causal_lm)
        else:
            job = check_job(guard) if scorer.task == "check" else rank_job(guard)
        _LOADED[key] = guard, job
    return _LOADED[key][1]


def _lines(table: pa.Table | pa.RecordBatch) -> Iterable[str]:
    if table.schema.names == [LINES]:
        yield from table.column(LINES).to_pylist()
        return
    for row in table.to_pylist():
        yield json.dumps({name: value for name, value in row.items() if value is not None},
                         default=str)  # fmt: skip


def _json(row: Mapping[str, object]) -> str:
    from guardrail.commands.figures import json_line

    return json_line(row)
