"""HTML and DOCX as Markdown: what a reader sees of them, without the frame of a page."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Sequence
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

from guardrail.core.documents.markdown import Cell, has_head, markdown_table, spread
from guardrail.core.errors import InputError

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag
    from markdownify import MarkdownConverter

MAX_UNPACKED: Final = 256 * 1024 * 1024
"""Bytes that a DOCX file may unpack to."""
W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
M: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"


def html_pages(data: bytes | str) -> list[str]:
    """The text of an HTML page, of its main part if it has one, with headings, lists and tables.

    Raises:
        InputError: Its elements are nested too deep; the text continues after the file's name.
    """
    try:
        soup = _page_reader()(data, "html.parser")
        _take_frame_off(soup)
        body = _main_part(soup)
        # Elements that begin a line, in addition to those of Markdown
        blocks = (
            "address", "aside", "center", "dialog", "details", "fieldset", "figure", "footer",
            "form", "header", "hgroup", "legend", "main", "search", "summary",
        )  # fmt: skip
        for element in body.find_all(["sup", "input", "table", *blocks]):
            if element.name == "sup":
                _raise(element)
            elif element.name == "input":
                if element.get("type") in ("checkbox", "radio"):
                    element.replace_with("[x] " if element.has_attr("checked") else "[ ] ")
            elif element.name != "table":
                element.name = "div"
            elif _is_layout(element):
                for part in (element, *_own(element, "thead", "tbody", "tfoot", "tr", "td", "th")):
                    part.name = "div"
        return [str(_converter().convert_soup(body))]
    except RecursionError as error:
        raise InputError("has elements that are nested too deep") from error


def docx_pages(data: bytes) -> list[str]:
    """The text of a Word document, with headings, lists and tables; images are left out.

    Raises:
        InputError: It is no such document, or unpacks to more than ``MAX_UNPACKED``; the text
            continues after the file's name.
    """
    import mammoth

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(part.file_size for part in archive.infolist())
        if unpacked > MAX_UNPACKED:
            raise InputError(f"unpacks to more than {MAX_UNPACKED // 1024**2} MB; split it")
        # Headings of Word in addition to those that mammoth knows
        styles = "\n".join(
            ["p[style-name='Title'] => h1:fresh"]
            + [f"p[style-name='{name} {level}'] => h6:fresh" for name in ("heading", "Heading")
               for level in (7, 8, 9)]
        )  # fmt: skip
        images = mammoth.images.img_element(lambda image: {})
        html = mammoth.convert_to_html(
            seen_text(data), convert_image=images, style_map=styles
        ).value
    except InputError:
        raise
    except Exception as error:  # damaged XML and archives raise any error
        raise InputError(f"is no Word document that can be read: {error}") from error
    # mammoth's link from a note back to the text
    return html_pages(html.replace("↑</a>", "</a>"))


def seen_text(data: bytes) -> io.BytesIO:
    """A Word document with its fields and formulas as plain text, and without hidden text."""
    found = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(found, "w") as new:
        for part in old.infolist():
            content = old.read(part)
            if re.fullmatch(r"word/(?:document|footnotes|endnotes)\d*\.xml", part.filename):
                root = ElementTree.fromstring(content)
                _rewrite(root)
                content = ElementTree.tostring(root, "utf-8")
            new.writestr(part, content)
    found.seek(0)
    return found


@cache
def _page_reader() -> type[BeautifulSoup]:
    """Reads HTML; ends elements whose end is left out where the next begins.

    Python's parser does not: each row would be nested in the previous one.
    """
    from bs4 import BeautifulSoup

    # Elements whose end may be omitted (HTML, 13.1.2.4), and the elements that contain them
    unclosed = {
        "li": ("ul", "ol", "menu"), "dt": ("dl",), "dd": ("dl",), "tbody": ("table",),
        "tfoot": ("table",), "tr": ("tbody", "thead", "tfoot", "table"), "td": ("tr", "table"),
        "th": ("tr", "table"),
    }  # fmt: skip
    # Elements that the beginning of an element ends, if not only one of the same name
    ended_by = {
        "dt": ("dt", "dd"), "dd": ("dt", "dd"), "td": ("td", "th"), "th": ("td", "th"),
        "tbody": ("tbody", "thead"), "tfoot": ("tbody", "thead"),
    }  # fmt: skip

    class Page(BeautifulSoup):
        def handle_starttag(self, name: str, *rest: object, **more: object) -> Tag | None:
            around = unclosed.get(name, ())
            ended = ended_by.get(name, (name,)) if around else ()
            for element in reversed(self.tagStack if around else ()):
                if element.name in ended:
                    self.handle_endtag(element.name)
                if element.name in (*ended, *around):
                    break
            return super().handle_starttag(name, *rest, **more)  # type: ignore[arg-type]

    return Page


def _take_frame_off(soup: Tag) -> None:
    """Drop what is no text of the document; the title in a page's header is."""
    # Elements that parts of a page are by their role (ARIA in HTML)
    roles = {
        "main": "main", "navigation": "nav", "banner": "header", "contentinfo": "footer",
        "complementary": "aside",
    }  # fmt: skip
    # Elements that are no text of the document; struck-out text is not, either
    never_seen = {
        "script", "style", "template", "noscript", "nav", "iframe", "svg", "title", "del", "s",
        "strike",
    }  # fmt: skip
    # Parts of a page's frame, and the elements inside which they are text of the document
    frame = {
        "header": ("main", "article", "section"),
        "footer": ("main", "article", "section"),
        "aside": ("main", "article"),
    }
    for element in soup.find_all(True):
        if element.name in ("div", "section") and element.get("role") in roles:
            element.name = roles[str(element["role"])]
        if element.name == "main" and element.has_attr("hidden"):
            element.name = "div"
        name = element.name
        if name in {"select", "textarea", "datalist", "button"}:
            # Elements inside which a button is a heading that opens the text below it
            unseen = element.find_parent("form") and not element.find_parent(
                ("h1", "h2", "h3", "h4", "h5", "h6", "summary", "dt")
            )
        else:
            unseen = name in never_seen or (name in frame and not element.find_parent(frame[name]))
        if unseen:
            for title in element.find_all("h1") if name == "header" else ():
                element.insert_before(title.extract())
            element.extract()


def _main_part(soup: Tag) -> Tag:
    """The main part of a page, else the smallest that holds all its articles, else all of it."""
    for name in ("main", "article"):
        found = [part for part in soup.find_all(name) if part.get_text(strip=True)]
        if found:
            around = [found[0], *found[0].parents]
            held = [{id(part), *map(id, part.parents)} for part in found[1:]]
            return next(part for part in around if all(id(part) in one for one in held))
    return soup.body or soup


def _raise(element: Tag) -> None:
    """Write a raised figure in raised signs: it is a power or the mark of a note, no digit more."""
    found = re.fullmatch(r"\[?([+\-\u2212]?\d{1,3})\]?", element.get_text(strip=True))
    after = element.next_sibling
    if found and not (isinstance(after, str) and after.lstrip()[:1] in ("/", "\u2044")):
        element.string = found[1].translate(str.maketrans("0123456789+-\u2212", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻"))
    elif found:
        element.string = f" {found[1]}"


def _is_layout(table: Tag) -> bool:
    """True if a table only places parts of the page."""
    if table.get("role") in ("presentation", "none") or table.find("table") is not None:
        return True
    rows = [row.find_all(["td", "th"]) for row in table.find_all("tr")]
    return table.find("th") is None and (len(rows) < 2 or all(len(row) < 2 for row in rows))


def _own(table: Tag, *names: str) -> list[Tag]:
    """Elements of a table and not of one in it."""
    return [part for part in table.find_all(list(names)) if part.find_parent("table") is table]


@cache
def _converter() -> MarkdownConverter:
    from markdownify import ATX, MarkdownConverter

    class Converter(MarkdownConverter):
        """Markdown whose tables have the cells that a reader sees below each head."""

        def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
            parts = [line.strip() for line in text.splitlines() if line.strip()]
            if el.find("li"):
                parts = [re.sub(r"^(?:[*+-]|\d{1,4}\.)\s+", "", line) for line in parts]
            pictures = [str(image.get("alt", "")) for image in el.find_all("img")]
            return (", " if el.find("li") else " ").join(parts or filter(None, pictures))

        convert_th = convert_td

        def convert_table(self, el: Tag, text: str, parent_tags: set[str]) -> str:
            caption = el.find("caption")
            title = f"{self.convert_soup(caption).strip()}\n\n" if caption else ""
            rows = [[_cell(cell, self.convert_soup(cell)) for cell in row.find_all(["td", "th"])]
                    for row in el.find_all("tr")]  # fmt: skip
            marked = len(el.select("thead tr"))
            return f"\n\n{title}{_table(list(filter(None, spread(rows))), marked)}\n\n"

    return Converter(
        heading_style=ATX,
        strip=["a", "img"],
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
    )


def _cell(cell: Tag, text: str) -> Cell:
    def number(name: str) -> int:
        span = str(cell.get(name, "1"))
        return int(span) if re.fullmatch("[0-9]{1,5}", span) else 1

    return Cell(text, number("colspan"), number("rowspan"), cell.name == "th")


def _table(rows: Sequence[Sequence[Cell]], marked: int) -> str:
    """A table as Markdown; ``marked`` rows are its head, and those of heads alone."""
    for row in rows[marked:]:
        if not any(cell.text for cell in row) or not all(cell.head for cell in row if cell.text):
            break
        marked += 1
    texts = [[cell.text for cell in row] for row in rows]
    head, below = texts[:marked], texts[marked:]
    if head:
        columns = zip_longest(*head, fillvalue="")
        return markdown_table(
            below, [" ".join(dict.fromkeys(column)).strip() for column in columns]
        )
    if rows and all(row[0].head and not any(cell.head for cell in row[1:]) for row in rows):
        return "\n".join(f"{row[0]}: {', '.join(filter(None, row[1:]))}" for row in texts)
    return markdown_table(texts[1:], texts[0]) if has_head(texts) else markdown_table(texts, None)


def _rewrite(element: ElementTree.Element) -> None:
    children: list[ElementTree.Element] = []
    for child in element:
        if child.tag == f"{M}oMath":
            children.append(_run(_linear(child)))
        elif child.tag == f"{W}r" and _hidden(child):
            continue
        else:
            _rewrite(child)
            unwrapped = child.tag in (f"{W}fldSimple", f"{M}oMathPara")
            children += list(child) if unwrapped else [child]
    element[:] = children


def _hidden(run: ElementTree.Element) -> bool:
    mark = run.find(f"{W}rPr/{W}vanish")
    return mark is not None and mark.get(f"{W}val") not in ("0", "false", "off")


def _run(text: str) -> ElementTree.Element:
    run = ElementTree.Element(f"{W}r")
    ElementTree.SubElement(run, f"{W}t").text = text
    return run


def _linear(element: ElementTree.Element) -> str:
    """A formula in one line: fractions with a slash, powers with a caret, roots by name."""
    name = element.tag.removeprefix(M)
    if name == "t":
        return element.text or ""
    parts = {part.tag.removeprefix(M): _linear(part) for part in element}
    if name == "f":
        return f"({parts.get('num', '')})/({parts.get('den', '')})"
    if name == "sSup":
        return f"{parts.get('e', '')}^{parts.get('sup', '')}"
    if name == "sSub":
        return f"{parts.get('e', '')}_{parts.get('sub', '')}"
    if name == "rad":
        return f"sqrt({parts.get('deg', '')} {parts.get('e', '')})".replace("( ", "(")
    return "".join(map(_linear, element))
