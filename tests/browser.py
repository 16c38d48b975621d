"""Pages as a browser shows them: a page of ours loads each of them in frames of several widths, and sends what it sees."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import NamedTuple

import pytest

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium to look at pages with")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-background-networking --no-first-run "
    "--disable-component-update --disable-sync --disable-extensions --enable-logging=stderr --v=0"
).split()
WIDTHS = 390, 1280  # pixels: a phone, and a screen
PATIENCE = 120  # seconds
RAW = re.compile(r"```|\|[ :]*-{3,}|^#{1,6} |^ *\|.*\| *$", re.MULTILINE)
"""Marks of Markdown: a fence, a table, a heading."""
LOOK = """<!doctype html><title>look</title><body><script>
const pages = PAGES, widths = WIDTHS, seen = [];
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const words = (root) => {
  const copy = root.cloneNode(true);
  copy.querySelectorAll("pre, code, script, style, svg").forEach((part) => part.remove());
  return copy.textContent;
};
const past = (root, width) => [...root.querySelectorAll("body *")].filter((part) => {
  const box = part.getBoundingClientRect();
  if (!box.width || box.right <= width + 1 || getComputedStyle(part).position == "fixed") return false;
  for (let at = part.parentElement; at; at = at.parentElement)
    if (getComputedStyle(at).overflowX != "visible" && at.getBoundingClientRect().right <= width + 1) return false;
  return true;
}).map((part) => part.tagName + "." + part.className);
(async () => {
  for (const page of pages) {
    const frame = document.createElement("iframe");
    const loaded = new Promise((done) => { frame.onload = done; });
    frame.src = page;
    document.body.append(frame);
    await loaded;
    const still = frame.contentDocument.createElement("style");
    still.textContent = "* { transition: none !important; animation: none !important }";
    frame.contentDocument.head.append(still);
    for (const width of widths) {
      frame.style = `width: ${width}px; height: 800px; border: 0`;
      await wait(50);
      const root = frame.contentDocument, main = root.querySelector("article") || root.body;
      seen.push({
        page, width, text: words(main), past: past(root, width).slice(0, 5),
        scrolls: root.documentElement.scrollWidth - root.documentElement.clientWidth,
        headings: [...main.querySelectorAll("h1, h2, h3, h4")].map((part) => part.textContent.trim()),
      });
    }
    frame.remove();
  }
  await fetch("/seen", {method: "POST", body: JSON.stringify(seen)});
})();
</script></body>
"""


class Seen(NamedTuple):
    """A page at a width.

    text : what stands outside code.  past : elements that reach beyond the right edge, where nothing scrolls.
    scrolls : pixels by which all of the page scrolls to the right.
    """

    page: str
    width: int
    text: str
    past: list[str]
    scrolls: int
    headings: list[str]


class _Handler(SimpleHTTPRequestHandler):
    """Serves a folder, and the page that looks at the others; takes what that one sends."""

    def __init__(self, *arguments, pages: Sequence[str], seen: Queue, **others):
        self.pages, self.seen = pages, seen
        super().__init__(*arguments, **others)

    def do_GET(self):
        if self.path != "/look":
            return super().do_GET()
        text = LOOK.replace("PAGES", json.dumps(self.pages)).replace("WIDTHS", json.dumps(WIDTHS)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(text)

    def do_POST(self):
        told = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.seen.put([Seen(**one) for one in json.loads(told)])

    def log_message(self, *words):
        pass


def look(folder: Path, pages: Sequence[str]) -> tuple[list[Seen], list[str]]:
    """What a browser shows of pages, by their names in the folder, at each width; and what stands on its console."""
    seen: Queue[list[Seen]] = Queue()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=folder, pages=pages, seen=seen))
    Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile, tempfile.TemporaryFile() as log:
        address = f"http://127.0.0.1:{server.server_port}/look"
        browser = subprocess.Popen(
            [PROGRAM, *FLAGS, "--remote-debugging-port=0", f"--user-data-dir={profile}/data", address],
            stdout=subprocess.DEVNULL, stderr=log,
        )  # fmt: skip
        try:
            found = seen.get(timeout=PATIENCE)
        except Empty:
            log.seek(0)
            raise AssertionError(f"the browser sent nothing: {log.read()[-2000:].decode(errors='replace')}") from None
        finally:
            browser.terminate()
            browser.wait()
            server.shutdown()
            server.server_close()
        log.seek(0)
        lines = log.read().decode(errors="replace").splitlines()
    return found, [line for line in lines if "CONSOLE" in line]


def faults(one: Seen) -> list[str]:
    """What is wrong with a page at a width: marks of Markdown, headings without words, what is cut off or scrolls."""
    found = [f"raw {raw[0]!r}"] if (raw := RAW.search(one.text)) else []
    found += [] if one.headings and all(one.headings) else ["an empty heading, or none"]
    found += [f"wider by {one.scrolls} pixels"] if one.scrolls > 0 else []
    return [*found, *(f"{part} is cut off" for part in one.past)]


def check_pages(folder: Path, pages: Sequence[str]) -> None:
    """Nothing is wrong with the pages, and nothing stands on the console."""
    found, console = look(folder, pages)
    assert len(found) == len(pages) * len(WIDTHS) and not console, console
    wrong = {(one.page, one.width): its for one in found if (its := faults(one))}
    assert not wrong and all(len(one.text) > 100 for one in found), wrong
