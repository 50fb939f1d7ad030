"""Draws docs/picture.svg: an answer before and after the guardrail, judged now.

python docs/picture.py
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console
from rich.panel import Panel

from guardrail import STRICT_CORRECT, Guardrail
from guardrail.commands.render import answer_panel
from guardrail.company import company_graph, handbook

QUESTION = "What does the Fjell 3 cost, and how far does it go?"
ANSWER = (
    "The Fjell 3 costs 2,190 euros. It has a range of 110 km. "
    "It was voted bicycle of the year in Norway."
)
COLUMNS = 96


def main() -> None:
    """Judge the answer and draw it."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    with Guardrail(graph=company_graph()) as guard:
        evidence = (*guard.retrieve(QUESTION).evidence, *handbook())
        judged = guard.check(QUESTION, ANSWER, evidence=evidence, policy=STRICT_CORRECT)
    console.print(QUESTION, style="bold", highlight=False)
    console.print(Panel(ANSWER, title="the model's answer", title_align="left"))
    console.print(answer_panel(judged))
    drawing = console.export_svg(title="guardrail check")
    # Readers' own fixed-width fonts: nothing is fetched to show the picture.
    drawing = re.sub(r"@font-face \{.*?\}", "", drawing, flags=re.DOTALL)
    drawing = drawing.replace("Fira Code", "ui-monospace, Menlo, Consolas")
    Path(__file__).with_name("picture.svg").write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
