"""The report's page: one HTML file without a single address to fetch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files

from guardrail.core.types import Action
from guardrail.log.entries import Record
from guardrail.report import charts
from guardrail.report.answers import anchor, answer_view, quote
from guardrail.report.charts import number
from guardrail.report.summary import ScoreSummary, Summary

__all__ = ["page"]

GAPS_SHOWN = 40
REFRESH_S = 30

SECTIONS = (
    ("answers", "Answers"),
    ("problems", "Problems"),
    ("gaps", "Knowledge gaps"),
    ("scores", "Scores"),
    ("support", "Support"),
    ("latency", "Latency"),
)

KEYS = (
    ("j / k", "next and previous answer"),
    ("Enter", "open or close it"),
    ("/", "search answers"),
    ("t", "light or dark"),
)


def page(summary: Summary, title: str, feedback_url: str | None = None) -> str:
    """The whole page.

    Args:
        summary: What it shows.
        title: Its heading.
        feedback_url: Where readers' feedback is posted; with one the page is live and reloads
            itself every half minute while nobody reads an answer.
    """
    live = feedback_url is not None
    data = f' data-feedback="{escape(feedback_url or "")}" data-refresh="{REFRESH_S}"' * live
    shown = {record.id for record in (*summary.worst, *summary.recent)}
    nav = "".join(
        f'<a href="#{key}">{name}</a>'
        for key, name in SECTIONS
        if key != "problems" or summary.problems
    )
    keys = "".join(f"<span><kbd>{key}</kbd> {what}</span>" for key, what in KEYS)
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)}</title><style>{_asset('report.css')}</style></head>",
        f"<body{data}>{charts.patterns()}{charts.arrow()}",
        '<a class="skip" href="#answers">Skip to the answers</a>',
        f"<header><h1>{escape(title)}</h1><p>{_range(summary)}</p>",
        f'<nav aria-label="Sections">{nav}',
        '<button type="button" id="theme">Light / dark</button></nav></header><main>',
        _tiles(summary, live=live),
        _section("answers", "Answers", _answers(summary, live)),
        _problems(summary),
        _section("gaps", "Knowledge gaps", _gaps(summary, shown)),
        _section("scores", "Scores", _scores(summary.scores)),
        _section("support", "Support by intent of the question", _support(summary)),
        _section("latency", "Latency by stage", _latency(summary)),
        (
            f'</main><footer><p class="keys">{keys}</p><p class="dim">'
            f"{' · '.join(map(escape, summary.versions))}</p></footer>"
        ),
        f"<script>{_asset('report.js')}</script></body></html>",
    ]
    return "".join(parts)


@cache
def _asset(name: str) -> str:
    return files("guardrail.report").joinpath("assets", name).read_text(encoding="utf-8")


def _section(key: str, title: str, inside: str) -> str:
    return f'<section id="{key}"><h2>{title}</h2>{inside}</section>'


def _range(summary: Summary) -> str:
    if summary.first is None or summary.last is None:
        return "The log holds no answers yet."
    return (
        f"{summary.records:,} answers, {summary.first:%Y-%m-%d %H:%M} to "
        f"{summary.last:%Y-%m-%d %H:%M} UTC"
    )


def _tiles(summary: Summary, *, live: bool) -> str:
    claims = sum(count for kind, count in summary.categories.items() if kind != "no claim") or 1
    total = summary.records or 1
    lacking = sum(
        summary.categories.get(kind, 0) for kind in ("partially_supportive", "irrelevant")
    )
    overall = next(
        (score for score in summary.scores if score.name == "overall" and score.count), None
    )
    whole = next((stage for stage in summary.stages if stage.name == "total"), None)
    tiles = [
        ("answers", f"{summary.records:,}", _actions(summary, total)),
        (
            "overall, mean",
            number(overall.mean) if overall else "—",
            f"median {number(overall.quantiles[1])}" if overall else "no score yet",
        ),
        (
            "supported",
            f"{100 * summary.categories.get('supportive', 0) / claims:.0f} %",
            f"of {claims:,} claims",
        ),
        (
            "contradicted",
            f"{100 * summary.categories.get('contradictory', 0) / claims:.0f} %",
            f"{summary.categories.get('contradictory', 0):,} of {claims:,} claims",
        ),
        (
            "[NA] phrases",
            f"{summary.gaps.phrases:,}",
            f"in {100 * lacking / claims:.0f} % of claims",
        ),
        (
            "time, median",
            f"{number(whole.p50)} ms" if whole else "—",
            f"95 of 100 within {number(whole.p95)} ms" if whole else "not measured",
        ),
    ]
    if live or summary.thumbs_up or summary.thumbs_down or summary.corrections:
        said = f"▲ {summary.thumbs_up:,} ▼ {summary.thumbs_down:,}"
        tiles.append(("readers said", said, f"corrections: {summary.corrections:,}"))
    cells = "".join(
        f'<div class="tile"><span>{name}</span><b>{value}</b><small>{more}</small></div>'
        for name, value, more in tiles
    )
    return f'<div class="tiles">{cells}</div>'


def _actions(summary: Summary, total: int) -> str:
    return ", ".join(
        f"{100 * count / total:.0f} % {name}" for name, count in summary.actions.items()
    )


def _scores(scores: Sequence[ScoreSummary]) -> str:
    if not scores:
        return "<p class=dim>No answer was scored yet.</p>"
    rows = []
    for score in scores:
        if score.count:
            low, middle, high = score.quantiles
            numbers = (
                f"<dl class=mini><dt>mean</dt><dd>{number(score.mean)}</dd>"
                f"<dt>median</dt><dd>{number(middle)}</dd>"
                f"<dt>10–90 %</dt><dd>{number(low)}–{number(high)}</dd>"
                f"<dt>answers</dt><dd>{score.count:,}</dd></dl>"
            )
            drawn = (
                f"<figure>{charts.histogram(score)}<figcaption>distribution</figcaption></figure>"
                f"<figure>{charts.trend(score.trend, score.low, score.high, score.name)}"
                "<figcaption>mean over time</figcaption></figure>"
            )
        else:
            numbers = drawn = ""
        missing = (
            f"<p class=dim>{score.missing:,} without: {quote(score.reason or '', 120)}</p>"
            if score.missing
            else ""
        )
        rows.append(
            f'<article class="score-row"><div><h3>{escape(score.name)}</h3>{numbers}{missing}'
            f"</div>{drawn}</article>"
        )
    return "".join(rows)


def _support(summary: Summary) -> str:
    rows = [("all", summary.categories), *summary.intents.items()]
    hint = (
        ""
        if summary.intents
        else "<p class=dim>No question has an intent; the scorer <code>sck</code> or a tag "
        "<code>intent</code> gives it.</p>"
    )
    return charts.legend() + charts.stacked(rows) + hint


def _latency(summary: Summary) -> str:
    if not summary.stages:
        return "<p class=dim>No times were recorded.</p>"
    return (
        "<p class=dim>Wide bar: median. Thin bar: 95 of 100. Tick: 99 of 100. "
        "Of batches, each answer's share.</p>" + charts.latency(summary.stages)
    )


def _gaps(summary: Summary, shown: Iterable[str]) -> str:
    gaps = summary.gaps
    if not gaps.facts:
        summary_text = "No phrase lacked support."
        if gaps.phrases:
            summary_text = (
                f"Phrases that lacked support: {gaps.phrases:,}; none names whose fact it asks for."
            )
        return f"<p class=dim>{summary_text}</p>"
    there = set(shown)

    def example(record_id: str) -> str:
        return f'<a href="#{anchor(record_id)}">see</a>' if record_id in there else ""

    facts = "".join(
        f"<tr><td class=n>{gap.count:,}</td><td>{escape(gap.entity)}"
        f"<span class=dim> {escape(gap.entity_id or 'not in the graph')}</span></td>"
        f"<td>{escape(gap.property)}</td>"
        f"<td>{' · '.join(quote(text, 48) for text in gap.phrases)}</td>"
        f"<td>{example(gap.record_id)}</td></tr>"
        for gap in gaps.facts[:GAPS_SHOWN]
    )
    entities = "".join(
        f"<tr><td class=n>{count:,}</td><td>{escape(name)}<span class=dim> "
        f"{escape(id_ or 'not in the graph')}</span></td></tr>"
        for name, id_, count in gaps.entities[:15]
    )
    properties = "".join(
        f"<tr><td class=n>{count:,}</td><td>{escape(name)}</td></tr>"
        for name, count in gaps.properties[:15]
    )
    return (
        "<p>Facts that answers state and the evidence does not hold, most wanted first. The "
        "property is guessed from the words round the phrase; check before adding.</p>"
        "<table><thead><tr><th class=n>asked</th><th>entity</th><th>property</th>"
        f"<th>values stated</th><th></th></tr></thead><tbody>{facts}</tbody></table>"
        '<div class="two"><div><h3>Entities</h3><table>'
        f"<tbody>{entities}</tbody></table></div><div><h3>Properties</h3><table>"
        f"<tbody>{properties}</tbody></table></div></div>"
    )


def _problems(summary: Summary) -> str:
    if not summary.problems:
        return ""
    rows = "".join(
        f"<tr><td class=n>{problem.count:,}</td><td>{escape(problem.part)}</td>"
        f"<td>{quote(problem.message, 200)}</td></tr>"
        for problem in summary.problems
    )
    table = (
        "<table><thead><tr><th class=n>times</th><th>part</th><th>latest message</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )
    return _section("problems", "Problems", table)


def _answers(summary: Summary, live: bool) -> str:
    worst = [record for record in summary.worst if _falls_short(record)]
    bad = {record.id for record in worst}
    others = {item.id: item for item in (*summary.recent, *summary.worst) if item.id not in bad}
    newest = sorted(others.values(), key=lambda record: record.created, reverse=True)
    if not worst and not newest:
        return "<p class=dim>No answers yet.</p>"
    search = (
        '<p class="search"><label>Search <input type="search" id="search" '
        'placeholder="words of question or answer"></label> '
        '<span id="found" role="status"></span></p>'
    )
    lists = []
    for title, records in (
        ("Failing, worst first", worst),
        ("Others, newest first" if worst else "Newest", newest),
    ):
        views = "".join(
            answer_view(record, summary.feedback.get(record.id, ()), asking=live)
            for record in records
        )
        if views:
            lists.append(f"<h3>{title} ({len(records):,} of {summary.records:,})</h3>{views}")
    return search + "".join(lists)


def _falls_short(record: Record) -> bool:
    """Whether an answer was not let through as it came with the best score there is."""
    return record.answer.action is not Action.PASS or record.score("overall") != 1.0
