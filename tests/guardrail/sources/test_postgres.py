"""Rows of a real PostgreSQL server, where one is installed."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from guardrail import Guardrail, GuardrailConfig, evidence_from_sql
from tests.clock import PATIENCE_S
from tests.ports import free_port

psycopg = pytest.importorskip("psycopg", reason="the driver psycopg is not installed")
ACCOUNT = "postgres"
"""A server refuses to run as root; Debian's package makes this account."""


def program(name: str) -> str | None:
    """A program of the newest server, which Debian keeps off the path."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(places[-1]) if places else shutil.which(name)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    initdb, pg_ctl = program("initdb"), program("pg_ctl")
    if initdb is None or pg_ctl is None:
        pytest.skip("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    with TemporaryDirectory() as folder:
        yield from _serving(initdb, pg_ctl, Path(folder))


def _serving(initdb: str, pg_ctl: str, folder: Path) -> Iterator[str]:
    account = None
    if os.geteuid() == 0:
        account = ACCOUNT
        try:
            shutil.chown(folder, ACCOUNT)
        except LookupError:
            pytest.skip(f"a server does not run as root, and there is no account {ACCOUNT}")

    def run(*arguments: str) -> None:
        done = subprocess.run(
            arguments, user=account, cwd=folder, capture_output=True, text=True, check=False,
            timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"

    port = free_port()
    data = str(folder / "data")
    run(initdb, "-D", data, "-U", "guard", "--auth=trust", "--no-sync")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
    run(pg_ctl, "-D", data, "-w", "-o", options, "-l", str(folder / "log"), "start")
    try:
        yield f"host=127.0.0.1 port={port} user=guard dbname=postgres"
    finally:
        run(pg_ctl, "-D", data, "-m", "immediate", "stop")


def test_rows_of_a_server_keep_their_types_and_are_evidence(address: str) -> None:
    with psycopg.connect(address) as connection:
        connection.execute(
            "create table orders (number text, customer text, amount_eur numeric(10, 2), "
            "placed date, sent timestamptz, paid boolean)"
        )
        connection.execute(
            "insert into orders values "
            "('A-1', 'Ann Berg', 120.50, '2025-03-01', '2025-03-02 10:00+00', true), "
            "('A-2', 'Ann Berg', 79.50, '2025-04-11', null, true), "
            "('A-3', 'Bo Dahl', 300.00, '2025-04-12', null, false)"
        )
        connection.commit()
        connection.read_only = True
        query = "select * from orders where placed >= %s order by number"
        orders = evidence_from_sql(
            connection, query, ("2025-01-01",), subject="number", name="orders"
        )
    assert [(item.property, item.value) for item in orders][:5] == [
        ("customer", "Ann Berg"),
        ("amount_eur", "120.50"),
        ("placed", "2025-03-01"),
        ("sent", "2025-03-02 10:00:00+00:00"),
        ("paid", "true"),
    ]
    with Guardrail(GuardrailConfig(graph="none")) as guard:
        answer = guard.check(
            "How are the orders?",
            "The order A-3 was placed on 21 April 2025.",
            evidence=orders,
        )
    assert [sentence.category for sentence in answer.sentences] == ["contradictory"]
