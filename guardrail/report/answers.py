"""One answer as a reader of the report sees it: sentences by support, and the facts behind."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from guardrail.core.types import Action, Passage, Sentence, Span, SpanKind, Triple
from guardrail.log.entries import Feedback, Record
from guardrail.report.charts import graph, number

__all__ = ["anchor", "answer_view", "quote"]

SIGNS = {
    SpanKind.SUPPORTED: "✓",
    SpanKind.NA: "?",
    SpanKind.CONTRADICTED: "✗",
    SpanKind.CORRECTED: "↻",
}
TIPS = {
    SpanKind.NA: "no fact of the graph supports this",
    SpanKind.SUPPORTED: "supported",
    SpanKind.CONTRADICTED: "contradicted",
    SpanKind.CORRECTED: "corrected",
}
MOST_SENTENCES = 60
"""Sentences shown of one answer; a report is not the place to read a book."""


def anchor(record_id: str) -> str:
    """The answer's place in the page."""
    return "a-" + "".join(sign if sign.isalnum() else "-" for sign in record_id)


def quote(text: str, most: int) -> str:
    """The beginning of a text, escaped."""
    flat = " ".join(text.split())
    return escape(flat if len(flat) <= most else flat[: most - 1] + "…")


def answer_view(record: Record, feedback: Sequence[Feedback], *, asking: bool) -> str:
    """A part of the page that can be opened and closed.

    Args:
        record: The record.
        feedback: What readers said of it.
        asking: Whether the page can send feedback.
    """
    answer = record.answer
    overall = answer.scorecard.overall.value
    named = "".join(f" <span class=dim>{escape(value)}</span>" for value in record.tags.values())
    head = (
        f'<summary><span class="score">{"—" if overall is None else number(overall)}</span>'
        f'<span class="act act-{answer.action.value}">{answer.decided}</span>'
        f'<span class="q">{quote(answer.question or answer.text, 110)}{named}</span>'
        f'<time datetime="{record.created.isoformat()}">{record.created:%Y-%m-%d %H:%M}</time>'
        "</summary>"
    )
    parts = [head, '<div class="body">']
    if answer.question.strip():
        parts.append(f"<h4>Question</h4><p>{quote(answer.question, 2000)}</p>")
    parts.append("<h4>Answer</h4>" + _sentences(record, feedback, asking))
    if answer.original and answer.original.strip() != answer.text.strip():
        parts.append(
            f"<details class=plain{' open' * (answer.action is Action.REFUSE)}>"
            "<summary>As it came in</summary>"
            f"<p>{quote(answer.original, 4000)}</p></details>"
        )
    drawn = graph(*_facts(record))
    if drawn:
        parts.append(f"<h4>Facts behind it</h4>{drawn}")
    passages = [item for item in answer.evidence if isinstance(item, Passage)]
    if passages:
        items = "".join(f"<li>{quote(passage.text, 300)}</li>" for passage in passages[:5])
        parts.append(f"<h4>Passages</h4><ul>{items}</ul>")
    parts.append(_why(record))
    parts.append("</div>")
    return (
        f'<details class="answer" id="{anchor(record.id)}" data-id="{escape(record.id)}">'
        f"{''.join(parts)}</details>"
    )


def _sentences(record: Record, feedback: Sequence[Feedback], asking: bool) -> str:
    answer = record.answer
    if not answer.sentences:
        return f'<p class="text">{quote(answer.text, 4000)}</p>'
    rows = []
    for place, sentence in enumerate(answer.sentences[:MOST_SENTENCES]):
        kind = sentence.category.value if sentence.category else "none"
        said = "".join(_said(item) for item in feedback if item.sentence == place)
        note = f'<p class="note">{quote(sentence.note, 400)}</p>' if sentence.note else ""
        label = kind.replace("_", " ") if sentence.category else "no claim"
        rows.append(
            f'<li class="s s-{kind}" data-sentence="{place}"><div>{_marked(sentence)}'
            f"{note}{said}{_thumbs() if asking else ''}</div>"
            f'<span class="cat">{label}</span></li>'
        )
    hidden = len(answer.sentences) - MOST_SENTENCES
    more = f"<p class=dim>and {hidden} more sentences</p>" if hidden > 0 else ""
    whole = "".join(_said(item) for item in feedback if item.sentence is None)
    return f'<ol class="sentences">{"".join(rows)}</ol>{more}{whole}'


def _marked(sentence: Sentence) -> str:
    """The sentence with its phrases by support."""
    text, at = [], 0
    for span in sentence.spans:
        start, end = span.start - sentence.start, span.end - sentence.start
        if start < at or end > len(sentence.text):
            continue
        text.append(escape(sentence.text[at:start]))
        text.append(_phrase(span, sentence.text[start:end]))
        at = end
    text.append(escape(sentence.text[at:]))
    return f'<p class="text">{"".join(text)}</p>'


def _phrase(span: Span, text: str) -> str:
    tip = TIPS[span.kind]
    if span.triple is not None:
        tip = f"{tip} by: {span.triple.text}"
    gone = f"<del>{escape(span.instead_of)}</del> " if span.instead_of else ""
    return (
        f'{gone}<mark class="m-{span.kind.value}" title="{escape(tip)}">{escape(text)}'
        f'<sup aria-label="{TIPS[span.kind]}">{SIGNS[span.kind]}</sup></mark>'
    )


def _thumbs() -> str:
    return (
        '<span class="thumbs"><button type="button" data-thumb="1" aria-label="right">▲ right'
        '</button><button type="button" data-thumb="-1" aria-label="wrong">▼ wrong</button>'
        '<button type="button" data-thumb="0">correct …</button></span>'
    )


def _said(feedback: Feedback) -> str:
    sign = {1: "▲ a reader found this right", -1: "▼ a reader found this wrong"}.get(
        feedback.thumb, "a reader corrected this"
    )
    text = f": {quote(feedback.correction, 300)}" if feedback.correction else ""
    return f'<p class="said">{sign}{text}</p>'


def _facts(record: Record) -> tuple[list[Triple], list[Triple]]:
    """The triples that the sentences cite, and those that contradict them."""
    spans = [span for sentence in record.answer.sentences for span in sentence.spans]
    against = [item.triple for item in spans if item.triple and item.kind is SpanKind.CONTRADICTED]
    cited = {citation for sentence in record.answer.sentences for citation in sentence.citations}
    carried = (SpanKind.SUPPORTED, SpanKind.CORRECTED)
    supporting = [item.triple for item in spans if item.triple and item.kind in carried]
    supporting += [
        item
        for item in record.answer.evidence
        if isinstance(item, Triple) and item.citation in cited
    ]
    return list(dict.fromkeys(supporting)), list(dict.fromkeys(against))


def _why(record: Record) -> str:
    answer = record.answer
    rows: list[tuple[str, str]] = [("decision", answer.decided)]
    rows += [("because", quote(reason, 300)) for reason in answer.reasons]
    scores = [
        f"{escape(name)} {'—' if score.value is None else number(score.value)}"
        for name, score in sorted(answer.scorecard.scores.items())
    ]
    if scores:
        rows.append(("scores", " · ".join(scores)))
    linked = [
        f"{escape(entity.entity.label)} <span class=dim>({escape(entity.entity.id)}, "
        f"{escape(entity.matched)})</span>"
        for entity in answer.entities[:12]
    ]
    if linked:
        rows.append(("entities", ", ".join(linked)))
    spent = ", ".join(f"{escape(k)} {number(v)} ms" for k, v in answer.timings_ms.items())
    if spent:
        rows.append(("time", spent))
    rows += [
        (f"problem: {escape(error.part)}", quote(error.message, 300)) for error in answer.errors
    ]
    named = [f"{escape(k)} {escape(v)}" for k, v in answer.versions.items()]
    rows.append(("with", ", ".join(named)))
    rows += [(escape(key), escape(value)) for key, value in record.tags.items()]
    rows.append(("id", f"<code>{escape(answer.id)}</code>"))
    cells = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows if text)
    return f"<dl>{cells}</dl>"
