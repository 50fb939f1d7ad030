"""The result of a query as evidence, from any database that Python speaks to."""

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
"""Most rows of one result; counts and sums of a part of it would be wrong."""


@runtime_checkable
class Connection(Protocol):
    """A connection of PEP 249: of ``sqlite3``, ``psycopg`` and others."""

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
    """Ask a database, and take the rows as evidence.

    The query runs as it is: hand it a connection that may only read. Nothing is committed.

    Args:
        connection: Of a driver (PEP 249), or a connection or session of SQLAlchemy's.
        query: In the database's own SQL; with SQLAlchemy its parameters are ``:name``.
        params: Its parameters, as the driver takes them; of SQLAlchemy by name.
        subject: Column that says what a row tells of; see ``Table``.
        name: What the rows are, in the plural; see ``Table``.

    Raises:
        InputError: The query fails, gives no rows at all (an update), or more than ``MAX_ROWS``.
    """
    try:
        if isinstance(connection, Connection):
            columns, rows = _by_driver(connection, query, params)
        else:
            columns, rows = _by_sqlalchemy(connection, query, params)
    except InputError:
        raise
    except Exception as error:  # each driver has errors of its own
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
