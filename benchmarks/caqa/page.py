"""Rows on one self-contained HTML page, graph, evidence and label side by side, to be read."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from benchmarks.caqa.rows import CAQARow
from guardrail.core.types import Triple

__all__ = ["render_page"]

_STYLE = """\
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:75rem;padding:1rem}
article{border:1px solid #8886;border-radius:6px;margin:1rem 0;padding:.6rem 1rem}
header{display:flex;gap:.6rem;flex-wrap:wrap;align-items:baseline}
h1{font-size:1.3rem}h2{font-size:1rem;margin:.3rem 0}
.grid{display:grid;grid-template-columns:1fr 1fr;gap:1rem}
@media(max-width:45rem){.grid{grid-template-columns:1fr}}
.tag{border-radius:4px;padding:0 .4rem;font-size:.85rem;border:1px solid #8886}
.supportive{background:#2a75}.partially_supportive{background:#ca26}
.contradictory{background:#c335}.irrelevant{background:#8885}
ul{margin:.2rem 0;padding-left:1.2rem}li.noise{opacity:.65}li.missing{color:#c33}
nav a{margin-right:.8rem}
"""


def render_page(rows: Sequence[CAQARow], title: str = "CAQA rows") -> str:
    """One page of rows; needs no network and no script.

    Args:
        rows: What to show, in this order.
        title: Heading.
    """
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.category] = counts.get(row.category, 0) + 1
    listed = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items())
    body = "\n".join(_article(number, row) for number, row in enumerate(rows, 1))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f"<p>{len(rows)} rows: {escape(listed)}. In the list of facts the evidence's noise is "
        f"faded and facts that the evidence lacks are red.</p>\n{body}\n</body></html>\n"
    )


def _article(number: int, row: CAQARow) -> str:
    tags = [
        f'<span class="tag {row.category}">{escape(row.category.replace("_", " "))}</span>',
        f'<span class="tag">{escape(row.complexity)}</span>',
        f'<span class="tag">{row.supported} of {len(row.sub_facts)} sub-facts</span>',
    ]
    shape = f"{row.base} + {row.extension}" if row.extension else row.base
    tags.append(f'<span class="tag">{shape}</span>')
    if row.edited:
        tags.append('<span class="tag">states what the graph does not</span>')
    evidence = "".join(f"<li>{escape(text)}</li>" for text in row.evidence)
    claimed = "".join(
        f'<li class="{"" if fact.supported else "missing"}">{_fact(fact.triple)}</li>'
        for fact in row.sub_facts
    )
    held = "".join(f"<li>{_fact(triple)}</li>" for triple in row.triples)
    noise = "".join(f'<li class="noise">{_fact(triple)}</li>' for triple in row.noise)
    return (
        f'<article id="r{number}"><header><a href="#r{number}">{number}</a> '
        f"<small>{escape(row.id)}</small>{''.join(tags)}</header>"
        f"<h2>{escape(row.question)}</h2><p>{escape(row.answer)}</p>"
        f'<div class="grid"><section>Evidence<ol>{evidence}</ol></section>'
        f"<section>Answer's facts<ul>{claimed}</ul>Evidence's facts<ul>{held}{noise}</ul></section>"
        "</div></article>"
    )


def _fact(triple: Triple) -> str:
    return f"{escape(triple.subject)} · <em>{escape(triple.property)}</em> · {escape(triple.value)}"
