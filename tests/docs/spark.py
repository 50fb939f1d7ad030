"""What the pages use of Spark: ``mapInArrow`` over files, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq

TYPES = {"string": pa.string()}


def modules() -> dict[str, ModuleType]:
    """``pyspark`` and ``pyspark.sql``, by their names."""
    session = SimpleNamespace(read=SimpleNamespace(parquet=lambda path: Rows(pq.read_table(path))))
    sql = ModuleType("pyspark.sql")
    sql.SparkSession = SimpleNamespace(  # type: ignore[attr-defined]
        builder=SimpleNamespace(getOrCreate=lambda: session)
    )
    return {"pyspark": ModuleType("pyspark"), "pyspark.sql": sql}


class Rows:
    """Rows that are handed over as Spark does it: record batches in, batches of a schema out."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.write = SimpleNamespace(parquet=self._save)

    def mapInArrow(  # noqa: N802
        self, function: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]], schema: str
    ) -> Rows:
        """Fails where a batch that comes back has other columns than the schema."""
        columns = [column.split() for column in schema.split(", ")]
        fields = pa.schema([(name, TYPES[kind]) for name, kind in columns])
        batches = function(iter(self.table.to_batches(max_chunksize=1)))
        return Rows(pa.Table.from_batches(batches, fields))

    def _save(self, path: str) -> None:
        """Fails if the path exists, as Spark does by default."""
        Path(path).mkdir()
        pq.write_table(self.table, Path(path) / "part-00000.parquet")
