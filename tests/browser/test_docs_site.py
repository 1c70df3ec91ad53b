"""The documentation as a website: no table is cut at the edge of a page, and the search box can be seen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
CUT = """() => [...document.querySelectorAll('.rst-content table')]
    .filter(table => table.scrollWidth > table.parentElement.clientWidth + 1).length"""


@pytest.mark.slow
def test_tables_fit_and_the_search_box_stays(chromium: Browser, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    subprocess.run(words, cwd=ROOT, check=True)
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    for name in ("index", "attacks-simulation", "query-language", "tables", "limits"):
        page.goto((tmp_path / f"{name}.html").as_uri())
        assert page.evaluate(CUT) == 0, name
        box = page.locator("#rtd-search-form input").first.bounding_box()
        assert box is not None
        assert 0 <= box["y"] < 800, name
    page.close()
