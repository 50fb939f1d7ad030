"""The page in a real browser: typing, submitting, colours, facts on hover and on focus."""

import base64
import re

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app
from tests.chains.conftest import ANSWER, QUESTION
from tests.chains.fake_openai import served
from tests.chains.gateway.browser import browser, find_browser, wait
from tests.guardrail.core.documents import made

UNKNOWN = " She liked to play chess."


@pytest.fixture(scope="module")
def site(guard):
    with served(create_app(guard, GatewaySettings())) as url:
        yield url


@pytest.fixture(scope="module")
def page(site, tmp_path_factory):
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium is installed; on Debian: apt-get install chromium")
    with browser(program, tmp_path_factory.mktemp("browser")) as page:
        yield page


def test_the_keyboard_alone_is_enough(page, site):
    page.open(f"{site}/")
    page.tab_to("e.id === 'question'")
    page.type(QUESTION)
    page.tab_to("e.id === 'text'")
    page.type(ANSWER + UNKNOWN)
    page.press("Enter", ctrl=True)
    wait(lambda: page.value("!document.getElementById('result').hidden"))
    kinds = page.value(
        "[...document.querySelectorAll('.sentence')].map((e) => e.className.split(' ')[1])"
    )
    assert kinds == ["supportive", "contradictory", "supportive", "irrelevant"]
    assert page.value("document.getElementById('answer').textContent") == ANSWER + UNKNOWN
    # Sign and line style tell what colour tells.
    styles = page.value(
        "[...document.querySelectorAll('.sentence')].map((e) => "
        "getComputedStyle(e, '::before').content + getComputedStyle(e).borderBottomStyle)"
    )
    assert len(set(styles)) == 3

    page.tab_to("e.classList.contains('contradictory')")
    tip = "document.getElementById('tip')"
    assert "Mary Shelley, date of birth: 1797-08-30" in page.value(f"{tip}.textContent")
    assert page.value(f"!{tip}.hidden")
    page.press("Escape")
    assert page.value(f"{tip}.hidden")


def submit(page, text):
    """Have a text judged; what each sentence rests on."""
    page.value(f"document.getElementById('text').value = {text!r}")
    page.value("document.getElementById('form').requestSubmit()")
    wait(lambda: page.value("!document.getElementById('result').hidden"))
    return page.value("[...document.querySelectorAll('#rests td')].map((e) => e.innerText)")


def test_passages_are_cited_on_hover(page, site):
    page.open(f"{site}/?passages")
    passages = "Breakfast costs 12 euros.\n\nThe Kestrel Hotel has 42 rooms."
    page.value(f"document.getElementById('evidence').value = {passages!r}")
    rests = submit(page, "The Kestrel Hotel has 42 rooms. Breakfast costs 15 euros.")
    assert "“The Kestrel Hotel has 42 rooms.”" in rests[0]
    assert "contradicted by: Breakfast costs 12 euros." in rests[1]
    assert "evidence was given" in page.value("document.getElementById('entities').innerText")
    for kind in ("supportive", "contradictory"):
        page.point_at(f".sentence.{kind}")
        wait(lambda: page.value("!document.getElementById('tip').hidden"))
        lines = page.value("[...document.querySelectorAll('#tip li')].map((e) => e.innerText)")
        assert lines
        assert [line for line in lines if line.rstrip().endswith(" by")] == []


def test_files_are_evidence_as_they_are(page, site):
    """A table is read as rows, a PDF as a document with its pages; nothing is read as its bytes."""
    page.open(f"{site}/?files")
    pdf = base64.b64encode(made.pdf()).decode()
    page.value(
        "(() => { const chosen = new DataTransfer();"
        "chosen.items.add(new File(['name,price_eur\\nSea room,120\\n'], 'rooms.csv'));"
        f"const bytes = Uint8Array.from(atob('{pdf}'), (sign) => sign.charCodeAt(0));"
        "chosen.items.add(new File([bytes], 'handbook.pdf'));"
        "document.getElementById('file').files = chosen.files; })()"
    )
    rests = submit(page, f"{made.WARRANTY} The price of the Sea room is 150 euros.")
    assert made.WARRANTY in rests[0]
    assert "Sea room, price_eur: 120" in rests[1]


def test_a_text_is_never_read_as_html(page, site):
    page.open(f"{site}/?html")
    submit(page, "<img src=x onerror=alert(1)> Mary.")
    assert page.value("document.querySelectorAll('#result img').length") == 0


def test_nothing_is_loaded_from_elsewhere(page, site):
    assert page.requested
    assert all(item.startswith((site, "data:")) for item in page.requested)
    assert page.complaints == []
    start = httpx.get(f"{site}/")
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", start.text)
    assert "default-src 'none'" in start.headers["content-security-policy"]
