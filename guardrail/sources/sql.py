"""Query results as evidence, from any database with a Python driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, runtime_checkable

from guardrail.core.errors import InputError
from guardrail.sources.tables import Table, rows_by_column

if TYPE_CHECKING:
    from sqlalchemy import Connection as SQLAlchemyConnection
    from sqlalchemy.orm import Session

__all__ = ["MAX_ROWS", "evidence_from_sql"]

MAX_ROWS: Final = 10_000
"""Most rows of one result."""


@runtime_checkable
class Connection(Protocol):
    """A PEP 249 connection: ``sqlite3``, ``psycopg`` and others."""

    def cursor(self) -> Any: ...


Connections: TypeAlias = "Connection | SQLAlchemyConnection | Session"
Params: TypeAlias = Sequence[object] | Mapping[str, object]


def evidence_from_sql(
    connection: Connections,
    query: str,
    params: Params | None = None,
    *,
    subject: str | None = None,
    name: str | None = None,
) -> Table:
    """Query a database and use the rows as evidence.

    The query runs unchanged, so pass a read-only connection. Nothing is committed.

    Args:
        connection: A PEP 249 connection, or an SQLAlchemy connection or session.
        query: SQL of the database; with SQLAlchemy, parameters are written ``:name``.
        params: Parameters in the form of the driver; by name with SQLAlchemy.
        subject: Column that names the subject of a row; see ``Table``.
        name: The plural noun for the rows; see ``Table``.

    Raises:
        InputError: The query fails, is no SELECT, or returns more than ``MAX_ROWS`` rows.
    """
    try:
        if isinstance(connection, Connection):
            columns, rows = _by_driver(connection, query, params)
        else:
            columns, rows = _by_sqlalchemy(connection, query, params)
    except InputError:
        raise
    except Exception as error:  # each driver has its own errors
        raise InputError(f"the query failed: {error}") from error
    if len(rows) > MAX_ROWS:
        raise InputError(
            f"the query gives more than {MAX_ROWS:,} rows; ask for fewer, or let the database "
            "count and sum them"
        )
    return Table(rows_by_column(columns, rows), subject=subject, name=name)


def _by_driver(
    connection: Connection, query: str, params: Params | None
) -> tuple[list[str], list[Iterable[object]]]:
    cursor = connection.cursor()
    try:
        cursor.execute(query, *([] if params is None else [params]))
        if cursor.description is None:
            raise InputError("the query gives no rows; write one that selects some")
        columns = [str(column[0]) for column in cursor.description]
        return columns, list(cursor.fetchmany(MAX_ROWS + 1))
    finally:
        cursor.close()


def _by_sqlalchemy(
    connection: SQLAlchemyConnection | Session, query: str, params: Params | None
) -> tuple[list[str], list[Iterable[object]]]:
    from sqlalchemy import text

    if params is not None and not isinstance(params, Mapping):
        raise InputError("SQLAlchemy takes parameters by name: write :name and {'name': …}")
    result = connection.execute(text(query), dict(params or {}))
    if not result.returns_rows:  # type: ignore[attr-defined]
        raise InputError("the query gives no rows; write one that selects some")
    columns = [str(key) for key in result.keys()]  # noqa: SIM118 - a result is no dict
    return columns, list(result.fetchmany(MAX_ROWS + 1))
