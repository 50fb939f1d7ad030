"""A program that judges by the embedded defaults, and notes each attempt to reach a network.

Run in a folder of its own: ``python -m tests.packaging.embedded_path``.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

OUT = frozenset(
    {
        "socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo",
        "socket.gethostbyname", "socket.gethostbyaddr", "urllib.Request",
    }
)  # fmt: skip
"""What Python tells its audit hooks of before it is done, whoever asks for it."""

QUESTION = "Where was Ada Lovelace born?"
TRUE, FALSE = "Ada Lovelace was born in London.", "Ada Lovelace was born in Paris."

tried: list[str] = []


def forbid(event: str, arguments: tuple[object, ...]) -> None:
    """Refuse what goes out, and note it: what is caught elsewhere is seen at the end."""
    if event in OUT:
        tried.append(f"{event} {arguments}")
        raise OSError(f"no network in this test: {event} {arguments}")


def judge() -> None:
    """Check, rank and keep records, by the shipped graph and by a passage."""
    from guardrail import STRICT, Guardrail, GuardrailConfig, Passage

    with Guardrail(GuardrailConfig(log=Path("scores.sqlite"), policy=STRICT)) as guard:
        guard.self_test()
        answer = guard.check(question=QUESTION, answer=TRUE)
        assert answer.sentences[0].citations, answer
        assert not answer.errors, answer
        passage = Passage("The Fjell 3 costs 2,490 euros.")
        answer = guard.check("", "The Fjell 3 costs 2,190 euros.", evidence=[passage])
        assert answer.removed, answer
        assert guard.rank(question=QUESTION, answers=[FALSE, TRUE])[0].text == TRUE
        assert asyncio.run(guard.acheck(question=QUESTION, answer=TRUE)).text == TRUE


def use_a_graph_of_ones_own() -> None:
    """Load a table into a graph on disk, and judge by it."""
    from guardrail import Guardrail

    Path("rooms.csv").write_text("id,rooms\nHotel Aurora,42\n", encoding="utf-8")
    command("kg", "load", "rooms.csv", "--kg", "graph", "--subject", "id")
    with Guardrail(graph="graph") as guard:
        answer = guard.check("How large is it?", "Hotel Aurora has 42 rooms.")
        assert answer.sentences[0].category == "supportive", answer


def command(*words: str) -> None:
    """Run a command of the program in this process."""
    from typer.testing import CliRunner

    from guardrail.cli import app

    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, (words, done.output, done.exception)


if __name__ == "__main__":
    sys.addaudithook(forbid)
    judge()
    use_a_graph_of_ones_own()
    command("check", QUESTION, TRUE)
    command("doctor")
    command("report", "scores.sqlite", "--output", "page.html")
    assert not tried, tried
    print("judged without a network")
