"""The scorer of many rows: an Arrow table of rows in, an Arrow table of results out.

It knows nothing of files or engines, so that the process pool, Ray Data and Spark's ``mapInArrow``
run the same code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from guardrail.bulk.arrow import LINES, arrow
from guardrail.config import GuardrailConfig
from guardrail.core.types import Value
from guardrail.core.unpacking import is_cut
from guardrail.log.fingerprints import shipped_judge
from kg.opening import SEPARATOR

if TYPE_CHECKING:
    import pyarrow as pa

    from guardrail.guard import Guardrail
    from guardrail.lines.rows import LineJob

__all__ = ["BulkScorer", "Result", "Task", "as_table", "release"]

Task = Literal["check", "score", "rank"]

Result = tuple[object, str | None, str | None]
"""A row's id as it was given, and either its result as JSON or its error."""

_UNSTEADY = ("timings_ms",)
"""Fields that differ from run to run."""


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

    def state(self) -> str:
        """What its results depend on: task, settings, files of graphs, evidence, profile, judge."""
        graph = self.config.graph
        second = self.config.second_judge
        judges = (
            self.config.judge,
            self.config.attribution_judge or "",
            second.judge if second else "",
        )
        places = [part.strip() for part in (graph.location or "").split(SEPARATOR)]
        places += map(str, self.config.evidence)
        places += [graph.profile or "", *(judge.partition(":")[2] for judge in judges)]
        states = [state for place in places if place for state in _states(Path(place).expanduser())]
        return self.model_dump_json() + json.dumps(states) + shipped_judge()

    def __call__(self, table: pa.Table | pa.RecordBatch, first: int = 1) -> pa.Table:
        """Judge a table.

        Args:
            table: Columns by the fields of the task's rows (``question``, ``answer``,
                ``answers``, ``evidence``, ``triples``, ``passages``, ``reference``, ``id``), or
                one column ``json`` that holds a JSON line a row, as text or as bytes.
            first: Number of the first row, for messages.

        Returns:
            One row for each, in order: ``id`` and either ``result`` (JSON) or ``error``.
        """
        return as_table(list(self.results(table, first)))

    def results(self, table: pa.Table | pa.RecordBatch, first: int = 1) -> Iterator[Result]:
        """Judge a table, as ``__call__`` does.

        Yields:
            A result for each row, in order.
        """
        for row in _job(self).results(_lines(table), first):
            id_, error = row.pop("id", None), row.pop("error", None)
            for field in _UNSTEADY:
                row.pop(field, None)
            yield id_, *((_json(row), None) if error is None else (None, str(error)))


_LOADED: dict[str, tuple[Guardrail, LineJob[Any]]] = {}


def _job(scorer: BulkScorer) -> LineJob[Any]:
    """The scorer's work on lines, with its guardrail loaded; one is kept a process."""
    from guardrail.guard import Guardrail
    from guardrail.lines.jobs import check_job, rank_job, score_job

    key = scorer.state()
    if key not in _LOADED:
        release()
        # Each row gets the whole of the policy's time: nobody waits for a batch.
        limits = scorer.config.limits.model_copy(update={"batch_s": math.inf})
        config = scorer.config.changed(limits=limits)
        if scorer.causal_lm is not None:
            model = config.model.model_copy(update={"causal_lm": scorer.causal_lm})
            config = config.model_copy(update={"model": model})
        guard = Guardrail(config)
        guard.warm_up()
        if scorer.task == "score":
            job: LineJob[Any] = score_job(guard)
        else:
            job = check_job(guard) if scorer.task == "check" else rank_job(guard)
        _LOADED[key] = guard, job
    return _LOADED[key][1]


def release() -> None:
    """Close the guardrail that a process keeps for its next table."""
    while _LOADED:
        _, (guard, _) = _LOADED.popitem()
        guard.close()


def as_table(rows: Sequence[Result]) -> pa.Table:
    """Results as columns of text: ``id``, ``result`` and ``error``."""
    pa = arrow()
    text = pa.string()
    return pa.table(
        {
            "id": pa.array([_whole(id_) for id_, _, _ in rows], text),
            "result": pa.array([result for _, result, _ in rows], text),
            "error": pa.array([_whole(error) for _, _, error in rows], text),
        }
    )


def _whole(value: object) -> str | None:
    """A value as text; halves of characters, which cannot be encoded, as their escapes."""
    if value is None:
        return None
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def _states(place: Path) -> list[str]:
    """Name, size and time of a file; of a folder's files those that are not the store's own."""
    if place.is_dir():
        note = place / "snapshot"
        files = [note] if note.is_file() else sorted(place.iterdir())
        return [state for file in files if file.is_file() for state in _states(file)]
    if not place.is_file():
        return []
    found = place.stat()
    return [f"{place.name} {found.st_size} {found.st_mtime_ns}"]


def _lines(table: pa.Table | pa.RecordBatch) -> Iterable[str]:
    if table.schema.names == [LINES]:
        for line in table.column(LINES).to_pylist():
            if isinstance(line, bytes):
                # One that is too long stays so, character by character.
                code = "latin-1" if is_cut(line) else "utf-8"
                line = line.decode(code, "surrogateescape").removeprefix("\ufeff")
            # Nothing is no object, and told as such: each row has a result.
            yield line if line and line.strip() else "null"
        return
    for row in table.to_pylist():
        yield json.dumps({name: value for name, value in row.items() if value is not None},
                         default=str)  # fmt: skip


def _json(row: Mapping[str, object]) -> str:
    from guardrail.lines.figures import json_line

    return json_line(row)
