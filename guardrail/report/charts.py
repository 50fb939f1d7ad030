"""Charts as inline SVG; colours and patterns come from the page's style sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from guardrail.core.types import Triple
from guardrail.report.summary import NO_CLAIM, ScoreSummary, StageSummary, TrendPoint

__all__ = [
    "arrow",
    "graph",
    "histogram",
    "latency",
    "legend",
    "number",
    "patterns",
    "stacked",
    "trend",
]

WIDTH, HEIGHT = 280, 96
KINDS = ("supportive", "partially_supportive", "contradictory", "irrelevant", NO_CLAIM)
LABEL_CHARS = 26
ROW_PX = 38
MOST_TRIPLES = 12


def number(value: float) -> str:
    """A number in the fewest digits that a reader needs."""
    if value == int(value) and abs(value) >= 10:
        return f"{int(value):,}"
    return f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"


def patterns() -> str:
    """Fills that differ by pattern as well as by colour, defined once a page."""
    shapes = {
        "supportive": "",
        "partially_supportive": '<path d="M-2,2 l4,-4 M0,8 l8,-8 M6,10 l4,-4"/>',
        "contradictory": '<path d="M0,0 l8,8 M8,0 l-8,8"/>',
        "irrelevant": '<circle cx="4" cy="4" r="1.7"/>',
        "none": '<path d="M0,4 h8"/>',
    }
    defined = "".join(
        f'<pattern id="p-{name}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<rect width="8" height="8" class="f-{name}"/><g class="h-{name}">{shape}</g></pattern>'
        for name, shape in shapes.items()
    )
    return f'<svg class="defs" width="0" height="0" aria-hidden="true"><defs>{defined}</defs></svg>'


def histogram(score: ScoreSummary) -> str:
    """How often each value of a score occurs."""
    most = max(score.bins, default=0) or 1
    step = WIDTH / max(1, len(score.bins))
    width = (score.high - score.low) / max(1, len(score.bins))
    bars = []
    for place, count in enumerate(score.bins):
        tall = (HEIGHT - 18) * count / most
        low = score.low + place * width
        tip = f"{number(low)} to {number(low + width)}: {count:,}"
        bars.append(
            f'<rect class="bar" x="{place * step + 1:.1f}" y="{HEIGHT - 16 - tall:.1f}" '
            f'width="{step - 2:.1f}" height="{max(tall, 1 if count else 0):.1f}">'
            f"<title>{tip}</title></rect>"
        )
    axis = (
        f'<path class="axis" d="M0,{HEIGHT - 15.5} h{WIDTH}"/>'
        f'<text x="0" y="{HEIGHT - 3}">{number(score.low)}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - 3}" text-anchor="end">{number(score.high)}</text>'
    )
    label = f"Distribution of {score.name}: median {number(score.quantiles[1])}"
    return _svg(WIDTH, HEIGHT, label, "".join(bars) + axis)


def trend(points: Sequence[TrendPoint], low: float, high: float, name: str) -> str:
    """The mean of a score over time."""
    if not points:
        return ""
    begin, end = points[0].start.timestamp(), points[-1].start.timestamp()
    span, tall = (end - begin) or 1.0, (high - low) or 1.0

    def place(point: TrendPoint) -> tuple[float, float]:
        across = (point.start.timestamp() - begin) / span if end > begin else 0.5
        return 4 + across * (WIDTH - 8), 4 + (HEIGHT - 24) * (1 - (point.mean - low) / tall)

    spots = [place(point) for point in points]
    line = "M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    dots = "".join(
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.6">'
        f"<title>{point.start:%Y-%m-%d %H:%M} UTC: {number(point.mean)} over "
        f"{point.count:,}</title></circle>"
        for (x, y), point in zip(spots, points, strict=True)
    )
    form = "%H:%M" if span < 2 * 86_400 else "%d %b"
    axis = (
        f'<path class="axis" d="M0,{HEIGHT - 15.5} h{WIDTH}"/>'
        f'<text x="0" y="{HEIGHT - 3}">{points[0].start:{form}}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - 3}" text-anchor="end">{points[-1].start:{form}}</text>'
    )
    label = f"Mean of {name} over time, last {number(points[-1].mean)}"
    return _svg(WIDTH, HEIGHT, label, f'<path class="line" d="{line}"/>{dots}{axis}')


def stacked(rows: Sequence[tuple[str, Mapping[str, int]]]) -> str:
    """Shares of categories, one bar a row."""
    wide, left, right = 640, 150, 70
    parts = []
    for row, (label, counts) in enumerate(rows):
        total = sum(counts.values()) or 1
        x, y = float(left), 6 + row * 30
        parts.append(f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{escape(label)}</text>')
        for kind in KINDS:
            count = counts.get(kind, 0)
            part = (wide - left - right) * count / total
            if count:
                name = "none" if kind == NO_CLAIM else kind
                parts.append(
                    f'<rect class="edge" x="{x:.1f}" y="{y}" width="{part:.1f}" height="22" '
                    f'fill="url(#p-{name})"><title>{_words(kind)}: {count:,} '
                    f"({100 * count / total:.0f} %)</title></rect>"
                )
            x += part
        parts.append(f'<text x="{wide - right + 8}" y="{y + 15}">{total:,}</text>')
    return _svg(wide, 30 * len(rows) + 8, "Sentences by category", "".join(parts), "wide")


def legend() -> str:
    """The meaning of the patterns."""
    items = "".join(
        f'<li><svg width="22" height="14" aria-hidden="true"><rect class="edge" x="0.5" y="0.5" '
        f'width="21" height="13" fill="url(#p-{"none" if kind == NO_CLAIM else kind})"/></svg>'
        f"{_words(kind)}</li>"
        for kind in KINDS
    )
    return f'<ul class="legend">{items}</ul>'


def latency(stages: Sequence[StageSummary]) -> str:
    """Median and 95th percentile by stage; a tick marks the 99th."""
    wide, left, right = 640, 90, 190
    most = max((stage.p99 for stage in stages), default=0.0) or 1.0
    parts = []
    for row, stage in enumerate(stages):
        y = 6 + row * 28
        scale = (wide - left - right) / most
        p50, p95, p99 = stage.p50 * scale, stage.p95 * scale, stage.p99 * scale
        parts.append(
            f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{escape(stage.name)}</text>'
            f'<rect class="thin" x="{left}" y="{y + 6}" width="{p95:.1f}" height="8"/>'
            f'<rect class="bar" x="{left}" y="{y}" width="{max(p50, 1):.1f}" height="20"/>'
            f'<path class="tick" d="M{left + p99:.1f},{y} v20"/>'
            f'<text x="{wide - right + 8}" y="{y + 14}">{_ms(stage.p50)} · {_ms(stage.p95)}</text>'
        )
    return _svg(wide, 28 * len(stages) + 8, "Latency by stage", "".join(parts), "wide")


def graph(supporting: Sequence[Triple], against: Sequence[Triple]) -> str:
    """Triples as a small graph: subjects on the left, their values on the right.

    Args:
        supporting: Facts that sentences cite.
        against: Facts that contradict one; drawn dashed, with a cross.
    """
    triples = [(fact, False) for fact in supporting] + [(fact, True) for fact in against]
    left_out = len(triples) - MOST_TRIPLES
    triples = triples[:MOST_TRIPLES]
    if not triples:
        return ""
    subjects = list(dict.fromkeys(fact.subject for fact, _ in triples))
    triples.sort(key=lambda item: subjects.index(item[0].subject))
    values = list(dict.fromkeys(fact.value for fact, _ in triples))
    tall = ROW_PX * max(len(subjects), len(values)) + 8
    box, wide = 190, 640

    def middle(row: int, rows: int) -> float:
        return tall * (row + 0.5) / rows

    parts = []
    names: dict[str, list[str]] = {}
    for fact, wrong in triples:
        # A fact that supports one sentence and contradicts another has two lines.
        aside = 5 if wrong else 0
        y1 = middle(subjects.index(fact.subject), len(subjects)) + aside
        y2 = middle(values.index(fact.value), len(values)) + aside
        x1, x2 = box + 2, wide - box - 8
        bend = (x1 + x2) / 2
        curve = f"M{x1},{y1:.1f} C{bend},{y1:.1f} {bend},{y2:.1f} {x2},{y2:.1f}"
        kind = "wrong" if wrong else "link"
        parts.append(f'<path class="{kind}" d="{curve}" marker-end="url(#arrow)"/>')
        names_of_value = names.setdefault(fact.value, [])
        if fact.property in names_of_value:
            names_of_value[names_of_value.index(fact.property)] += " ✓ ✗" if wrong else ""
        elif not wrong or f"{fact.property} ✗" not in names_of_value:
            names_of_value.append(fact.property + (" ✗" if wrong else ""))
    labels = [
        f'<text class="rel" x="{wide - box - 18}" text-anchor="end" '
        f'y="{middle(values.index(value), len(values)) - 5:.1f}">{escape(_cut(text, 36))}'
        f"<title>{escape(text)}</title></text>"
        for value, text in ((value, ", ".join(known)) for value, known in names.items())
    ]
    nodes = [
        _node(text, x, middle(row, len(column)), box, kind)
        for column, x, kind in ((subjects, 0, "subject"), (values, wide - box, "value"))
        for row, text in enumerate(column)
    ]
    drawing = _svg(
        wide, tall, "Facts behind this answer", "".join([*parts, *labels, *nodes]), "wide"
    )
    more = f"<p class=dim>and {left_out} more facts</p>" if left_out > 0 else ""
    return f'<div class="graph">{drawing}</div>{more}'


def arrow() -> str:
    """The head of the graph's arrows, defined once a page."""
    return (
        '<svg class="defs" width="0" height="0" aria-hidden="true"><defs><marker id="arrow" '
        'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="head" d="M0,0 L8,4 L0,8 z"/></marker></defs></svg>'
    )


def _node(text: str, x: float, y: float, wide: float, kind: str) -> str:
    round_ = 12 if kind == "subject" else 2
    return (
        f'<g class="{kind}"><rect x="{x + 1}" y="{y - 12:.1f}" width="{wide - 2}" height="24" '
        f'rx="{round_}"/><text x="{x + wide / 2}" y="{y + 4:.1f}" text-anchor="middle">'
        f"{escape(_cut(text))}</text><title>{escape(text)}</title></g>"
    )


def _svg(wide: float, tall: float, label: str, inside: str, kind: str = "chart") -> str:
    return (
        f'<svg class="{kind}" viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}" '
        f'role="img" aria-label="{escape(label)}">{inside}</svg>'
    )


def _cut(text: str, most: int = LABEL_CHARS) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _words(kind: str) -> str:
    return kind.replace("_", " ")


def _ms(value: float) -> str:
    return f"{value / 1000:.2f} s" if value >= 1000 else f"{value:.1f} ms"
