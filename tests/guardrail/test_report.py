"""The report of a score log: true numbers, one file, and a page that a browser shows."""

import json
import random
import re
import shutil
import statistics
import subprocess
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

from guardrail import Passage
from guardrail.core.errors import InputError, RecordError
from guardrail.core.types import (
    Action,
    Category,
    GuardedAnswer,
    Problem,
    Score,
    ScoreCard,
    Sentence,
    Span,
    SpanKind,
    Triple,
)
from guardrail.log.records import Feedback, Record, RecordFilter, SQLiteLog
from guardrail.report import dashboard_html, read_feedback, report_html, summarise
from tests.program import python

MOZART = (
    "Wolfgang Amadeus Mozart was a composer born in Salzburg. He was born in 1770. "
    "His father was Leopold."
)
START = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOSTILE = '<script>alert(1)</script> & "quotes" <img src=http://example.com/x> \ud800'


@pytest.fixture(scope="module")
def checked(exact_guard):
    return [exact_guard.check("Who was Mozart?", MOZART, policy=item) for item in (None, "strict")]


@pytest.fixture
def log(tmp_path, checked):
    with SQLiteLog(tmp_path / "log.sqlite") as log:
        for number in range(40):
            created = START + timedelta(hours=number)
            tags = {"intent": "factoid" if number % 3 else "reason"}
            answer = checked[number % 2]
            log.write_record(Record(id=f"r{number}", answer=answer, created=created, tags=tags))
        yield log


def made(number, overall=None, text="Ada lived in Rome.", **changes):
    card = Score(value=overall) if overall is not None else Score(reason="no claim")
    return Record(
        id=f"m{number}",
        created=START + timedelta(minutes=number),
        answer=GuardedAnswer(
            id=str(number), question=changes.pop("question", "Where did Ada live?"), text=text,
            marked=text, action=changes.pop("action", Action.ANNOTATE),
            scorecard=ScoreCard(overall=card), **changes,
        ),
    )  # fmt: skip


def test_the_summary_counts_what_was_logged(log):
    log.write_feedback(Feedback(record_id="r0", sentence=1, thumb=-1, correction="in 1756"))
    summary = summarise(log, shown=8)
    last = START + timedelta(hours=39)
    assert (summary.records, summary.first, summary.last) == (40, START, last)
    assert summary.actions == {"annotate": 20, "filter": 20}
    # One of each record's sentences; the filtered ones count what was removed.
    assert summary.categories["contradictory"] == 40
    assert set(summary.intents) == {"factoid", "reason"}
    assert sum(counts["contradictory"] for counts in summary.intents.values()) == 40
    overall = summary.scores[0]
    assert (overall.name, overall.count, sum(overall.bins)) == ("overall", 40, 40)
    assert sum(point.count for point in overall.trend) == 40
    assert [stage.name for stage in summary.stages][-1] == "total"
    assert len(summary.failing) == 6
    assert [record.id for record in summary.others] == ["r39", "r38"]
    assert (summary.thumbs_down, summary.corrections) == (1, 1)
    assert summarise(log, RecordFilter(since=START + timedelta(hours=30))).records == 10
    assert summarise(log, latest=3).records == 3


def test_quantiles_are_those_of_the_values_and_a_missing_score_is_none(tmp_path):
    dice = random.Random(7)
    scores = [dice.random() for _ in range(301)]
    with SQLiteLog(tmp_path / "log.sqlite") as log:
        log.write_records(made(number, overall) for number, overall in enumerate(scores))
        log.write_record(made(301))
        summary = summarise(log, shown=12)
    scores.sort()
    assert [record.answer.scorecard.overall.value for record in summary.failing] == scores[:9]
    overall = summary.scores[0]
    assert (overall.count, overall.missing, overall.reason) == (301, 1, "no claim")
    assert overall.quantiles == pytest.approx((scores[30], scores[150], scores[270]))
    assert overall.mean == pytest.approx(statistics.mean(scores))
    assert len(overall.trend) <= 60


def test_phrases_without_support_are_listed_by_entity(tmp_path, exact_guard):
    with SQLiteLog(tmp_path / "log.sqlite") as log:
        for text in ("He was born in Graz. Mozart lived in Graz.", "Mozart lived in Graz."):
            log.write(exact_guard.check(question="Who was Mozart?", answer=text))
        summary = summarise(log)
    found = {(phrase.entity, phrase.count) for phrase in summary.phrases if phrase.text == "Graz"}
    assert ("Wolfgang Amadeus Mozart", 2) in found
    assert summary.unsupported >= 2


class Addresses(HTMLParser):
    """Everything a browser would fetch, and every id."""

    def __init__(self, html):
        super().__init__()
        self.fetched, self.ids, self.links = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        held = dict(attrs)
        self.fetched += [held[key] for key in ("src", "srcset", "data", "action") if key in held]
        if tag == "link" or (tag == "a" and not held["href"].startswith("#")):
            self.fetched.append(held.get("href"))
        elif tag == "a":
            self.links.append(held["href"][1:])
        if "id" in held:
            self.ids.append(held["id"])


def test_answers_that_nothing_is_wrong_with_are_not_among_the_worst(tmp_path):
    with SQLiteLog(tmp_path / "log.sqlite") as log:
        log.write_record(made(1, 0.2))
        log.write_record(made(2, 1.0, action=Action.PASS))
        log.write_record(made(3, 0.7))
        log.write_record(made(4, action=Action.REFUSE))
        html = report_html(log)
    worst, others = html.split("<h3>Others, newest first (2 of 4)</h3>")
    assert "<h3>Failing, worst first (2 of 4)</h3>" in worst
    sections = re.findall(r'<section id="(\w+)">', html)
    assert sections.index("answers") == 0
    assert re.findall(r'id="a-(m\d)', worst) == ["m1", "m3"]
    assert re.findall(r'id="a-(m\d)', others) == ["m4", "m2"]
    assert "50 % annotate, 25 % pass, 25 % refuse" in html
    assert '<a href="#problems">' not in html


@pytest.mark.parametrize("make", [report_html, dashboard_html])
def test_the_page_needs_no_network_and_its_links_lead_somewhere(log, make):
    html = make(log)
    found = Addresses(html)
    assert found.fetched == []
    assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org)", html)
    assert len(found.ids) == len(set(found.ids))
    assert set(found.links) <= set(found.ids)
    assert re.search(r"date of birth( ✓)? ✗", html)


def test_hostile_text_is_shown_and_never_run(tmp_path):
    triple = Triple(subject=HOSTILE, property=HOSTILE, value=HOSTILE)
    span = Span(text=HOSTILE[:8], start=0, end=8, kind=SpanKind.CONTRADICTED, triple=triple)
    sentence = Sentence(
        text=HOSTILE, start=0, end=len(HOSTILE), category=Category.CONTRADICTORY, note=HOSTILE,
        citations=(triple.citation,), spans=(span,),
    )  # fmt: skip
    record = made(
        1, 0.0, text=HOSTILE, question=HOSTILE, sentences=(sentence,), reasons=(HOSTILE,),
        evidence=(triple, Passage(text=HOSTILE)), errors=(Problem(part="kg", message=HOSTILE),),
    ).model_copy(update={"id": '"><script>', "tags": {HOSTILE: HOSTILE}})  # fmt: skip
    with SQLiteLog(tmp_path / "log.sqlite") as log:
        log.write_record(record)
        html = dashboard_html(log, feedback_url='"><script>')
    assert html.count("<script>") == 1
    assert "<img" not in html
    assert Addresses(html).fetched == []


def test_what_the_buttons_post_is_stored_and_shown(log):
    posted = b'{"record_id": "r39", "sentence": 1, "thumb": -1, "correction": "in 1756"}'
    log.write_feedback(read_feedback(posted))
    assert "a reader found this wrong: in 1756" in dashboard_html(log)
    for body in (b"{", b"{}", b'{"record_id": "r39"}', b'{"record_id": "r39", "thumb": 7}'):
        with pytest.raises(InputError):
            read_feedback(body)
    with pytest.raises(RecordError):
        log.write_feedback(read_feedback(b'{"record_id": "gone", "thumb": 1}'))


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is installed")


def browse(*arguments):
    return subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         "--virtual-time-budget=3000", *arguments],
        capture_output=True, text=True, timeout=280, check=True,
    ).stdout  # fmt: skip


@needs_browser
@pytest.mark.parametrize(("theme", "paper"), [("light", (255, 255, 255)), ("dark", (21, 24, 29))])
def test_a_browser_shows_the_page_in_both_themes(log, tmp_path, theme, paper):
    page = tmp_path / "report.html"
    page.write_text(report_html(log, title="A week"), encoding="utf-8")
    shot = tmp_path / "shot.png"
    browse(f"--screenshot={shot}", "--window-size=1000,1400", f"{page.as_uri()}?theme={theme}")
    image = Image.open(shot).convert("RGB")
    assert image.size == (1000, 1400)
    assert image.getpixel((0, 0)) == paper
    assert image.getcolors(maxcolors=50) is None


@needs_browser
def test_scripts_run_without_errors_and_an_address_opens_an_answer(log, tmp_path):
    page = tmp_path / "report.html"
    html = report_html(log)
    watch = "<script>onerror=(m)=>{document.title='failed: '+m}</script>"
    page.write_text(html.replace("<head>", f"<head>{watch}"), encoding="utf-8")
    shown = browse("--dump-dom", f"{page.as_uri()}?theme=dark#a-r1")
    assert "<title>Guardrail report</title>" in shown
    assert 'data-theme="dark"' in shown
    opened = re.findall(r"<details[^>]* open(?:=\"\")?[^>]*>", shown)
    assert len(opened) == 1
    assert json.dumps("a-r1") in opened[0]


def test_the_example_logs_redacts_and_reports(tmp_path):
    example = Path(__file__).parents[2] / "examples" / "log_scores.py"
    done = python(example, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "[Q7259, place of birth: London]" in done.stdout
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Who was" not in html
    assert "a reader found this wrong: born in 1756" in html
