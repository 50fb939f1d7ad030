"""The model card: what the judge was trained on, how good it is, where it fails."""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_card"]

_CARD = Path(__file__).with_name("card.md")

_VERDICTS = """\
Threshold 0.5, in 8 bits. Each half of the evidence sets is calibrated on the other half. Balanced
accuracy is of supported against not, over statements that claim something; then by phenomenon."""


def write_card(
    path: Path, version: str, verdicts: str, table: str, breakdown: str, *, history: str = ""
) -> None:
    """Write the model card.

    Args:
        path: The file.
        version: Version of the weights.
        verdicts: Measurements of verdicts on statements, in Markdown; empty without any.
        table: Measurements in Markdown.
        breakdown: The attribution head by category and complexity, in Markdown.
        history: How the judge came about where it is not by the recipe alone; a paragraph.
    """
    text = _CARD.read_text("utf-8").format(
        version=version,
        verdicts=f"\n## Verdicts on held-out statements\n\n{_VERDICTS}\n\n{verdicts}\n"
        if verdicts
        else "",
        table=table,
        breakdown=breakdown,
        history=f"\n{history}\n" if history else "",
    )
    path.write_text(text, encoding="utf-8")
