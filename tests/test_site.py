"""The pages of the documentation as a site: what stands in their Markdown is what readers see."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import check_pages, faults, look, needs_browser
from test_docs import PAGES, TOP

pytest.importorskip("material", reason="the site needs mkdocs-material")

HEADINGS = {"h1", "h2", "h3", "h4"}
CODE = {"code", "pre", "script", "style"}
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r"^ *(?:-|\d+\.) ", re.MULTILINE)
FLAT = re.compile(r"^ {1,3}(?:-|\d+\.) .*", re.MULTILINE)
HEADING = re.compile(r"^(#+) (.*)$", re.MULTILINE)
TABLE = re.compile(r"^ *\|?[ :|-]*---[ :|-]*$", re.MULTILINE)
MARKS = re.compile(r"[`*_\\\[\]]|\([^)]*\)")
RAW = re.compile(r"```|\|---|--\|")


class Page(HTMLParser):
    """What the article of a page shows: headings, numbers of tables, items and blocks of code, the text outside code."""

    def __init__(self, html: str):
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.n_tables = self.n_blocks = self.n_items = 0
        self.text = ""
        self.feed(html[html.index("<article") : html.index("</article>")])

    def handle_starttag(self, tag, attrs):
        if tag in HEADINGS:
            self.headings.append("")
        self.n_tables += tag == "table"
        self.n_blocks += tag == "pre"
        self.n_items += tag == "li"
        if tag not in {"img", "br", "hr", "input", "path"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if HEADINGS & set(self.open):
            self.headings[-1] += data
        if not CODE & set(self.open):
            self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", TOP / "docs" / "mkdocs.yml", "-d", folder]
    subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True)
    return folder


def without_indented(text: str) -> tuple[str, int]:
    """Markdown without its blocks of code that are set in by four blanks, and their number; items may be set in, too."""
    prose, n, is_code, is_item = list[str](), 0, False, False
    for part in re.split(r"\n\n+", text):
        was_code, is_code = is_code, part.startswith("    ") and not is_item
        n += is_code and not was_code
        if not is_code:
            is_item = bool(ITEM.match(part)) or (is_item and part.startswith(" "))
            prose.append(part)
    return "\n\n".join(prose), n


def words_of(heading: str) -> str:
    return " ".join(re.sub(r"\W+", " ", MARKS.sub("", heading)).split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_a_page_shows_what_its_markdown_says(site, page):
    """Its blocks of code, tables and headings are there, and no others; no mark of Markdown stands in the text."""
    name = page.relative_to(TOP)
    folder = site / name.parent / ("" if name.stem == "README" else name.stem)
    seen = Page((folder / "index.html").read_text())
    source = page.read_text()
    prose, n_indented = without_indented(FENCED.sub("", source))
    assert not FLAT.search(prose), "an item within another one needs four blanks before it"
    assert not RAW.search(seen.text), RAW.search(seen.text)
    assert seen.n_blocks == len(FENCED.findall(source)) + n_indented
    assert seen.n_items == len(ITEM.findall(prose))
    assert seen.n_tables == len(TABLE.findall(prose))
    assert [words_of(text.replace("\xb6", "")) for text in seen.headings] == [words_of(t) for _, t in HEADING.findall(prose)]


@needs_browser
def test_a_browser_shows_all_pages(site):
    """On a phone and on a screen; see browser.py."""
    pages = [str(path.relative_to(site)) for path in sorted(site.rglob("*.html")) if path.name != "404.html"]
    assert len(pages) >= len(PAGES)
    check_pages(site, pages)


GOOD = "<p>" + "words in a row, " * 20
PAGE = "<!doctype html><link rel=icon href='data:,'>"
BAD = {
    "fence": "<h1>T</h1>" + GOOD + "<p>```sh",
    "table": "<h1>T</h1>" + GOOD + "<p>|---|---|",
    "heading": "<h1>T</h1>" + GOOD + "<p>\n## More\n",
    "empty": "<h1>T</h1><h2></h2>" + GOOD,
    "wide": "<h1>T</h1>" + GOOD + "<table><td>" + "long" * 500 + "</table>",
    "cut": "<h1>T</h1>" + GOOD + "<p style='width: 2000px'>x",
}


@needs_browser
def test_a_browser_finds_what_is_wrong(tmp_path):
    for name, body in {"good": "<h1>T</h1>" + GOOD + "<script>missing()</script>", **BAD}.items():
        (tmp_path / f"{name}.html").write_text(PAGE + body)
    found, console = look(tmp_path, [f"{name}.html" for name in ("good", *BAD)])
    assert {one.page.removesuffix(".html") for one in found if faults(one)} == set(BAD)
    assert len(console) == 1 and "missing is not defined" in console[0]
