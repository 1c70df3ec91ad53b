"""The documentation as a website: nothing comes from elsewhere, no table is cut, and the search box stays and finds."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

ROOT = Path(__file__).parents[2]
CUT = """() => [...document.querySelectorAll('.md-typeset__scrollwrap')]
    .filter(around => around.scrollWidth > around.clientWidth + 1).map(around => around.innerText.slice(0, 60))"""
"""Tables that scroll sideways. The theme wraps each in a box that does so and in one that grows with it."""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Print no line for each request."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the built site. Its search does not work from files."""
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
def test_tables_fit_the_search_box_stays_and_finds(chromium: Browser, site: str) -> None:
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    elsewhere: list[str] = []
    page.on("request", lambda request: None if request.url.startswith(site) else elsewhere.append(request.url))
    box = page.locator(".md-search__input").first
    cut: dict[str, list[str]] = {}
    for file in sorted((ROOT / "docs").glob("*.md")):
        page.goto(f"{site}/{file.stem}.html")
        page.locator(".md-typeset__scrollwrap, .md-typeset h1").first.wait_for()
        if page.locator(".md-typeset table").count():
            page.locator(".md-typeset__scrollwrap").first.wait_for()
            cut[file.stem] = page.evaluate(CUT)
    assert len(cut) > 20
    assert {name: found for name, found in cut.items() if found} == {}
    for name in ("index", "attacks-simulation", "query-language", "tables", "limits"):
        page.goto(f"{site}/{name}.html")
        page.mouse.wheel(0, 5000)
        found = box.bounding_box()
        assert found is not None
        assert 0 <= found["y"] < 800, name
    box.click()
    page.keyboard.type("k-anonymity")
    expect(page.locator(".md-search-result__item").first).to_be_visible()
    assert elsewhere == []
    page.close()


@pytest.mark.slow
def test_every_person_has_a_picture_on_the_home_page(chromium: Browser, site: str) -> None:
    page = chromium.new_page()
    page.goto(f"{site}/index.html")
    cards = page.locator(".grid.cards > ul > li")
    guides = {path.stem for path in (ROOT / "docs" / "how-to").glob("*.md")} | {"add-a-part"}
    assert cards.count() == len(guides)
    shown = page.evaluate("[...document.querySelectorAll('.grid.cards img')].map(one => one.naturalWidth > 0)")
    assert shown == [True] * len(guides)
    targets = page.evaluate("[...document.querySelectorAll('.grid.cards li > p:first-child a')].map(one => one.href)")
    assert {Path(target).stem for target in targets} == guides
    page.close()
