"""Screenshots of all pages of the app in light, dark and phone width, on the demonstration hospital.

Run `make pictures`, or `python docs/images/app_screenshots.py FOLDER` for all pages in all three forms. It needs
Chromium or Chrome on the path.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent
PAGES = ("start", "data", "roles", "hierarchies", "protect", "compare", "attack", "report", "ask")
FORMS = {"light": (1280, 900), "dark": (1280, 900), "phone": (390, 844)}
IN_DOCS = {"app-roles.png": "roles", "app-protect.png": "protect", "app-attack.png": "attack"}
"""Pictures of the documentation: light, the upper part of the page."""


def main() -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("Install Chromium: it takes the screenshots.")
    everything = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        command = [sys.executable, "-m", "sfumato", "app", "--no-browser"]
        app = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env=os.environ)
        assert app.stderr is not None
        found = re.search(r"http://\S+", app.stderr.readline())
        assert found
        try:
            options = ["--no-sandbox", "--headless=new", "--disable-gpu", "--no-first-run"]
            chromium = playwright.chromium.launch(executable_path=browser, args=options)
            page = chromium.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(180_000)
            prepare(page, found[0])
            address = found[0].split("/#")[0]
            for picture, name in IN_DOCS.items():
                shoot(page, f"{address}/{name}", IMAGES / picture, whole=False)
            shoot_lattice(page, f"{address}/protect", IMAGES / "app-lattice.png")
            for form, (width, height) in FORMS.items() if everything is not None else ():
                page.set_viewport_size({"width": width, "height": height})
                page.emulate_media(color_scheme="dark" if form == "dark" else "light")
                for name in PAGES:
                    assert everything is not None
                    shoot(page, f"{address}/{name}", everything / f"{name}-{form}.png", whole=True)
            chromium.close()
        finally:
            app.terminate()
            app.wait()


def prepare(page: Page, link: str) -> None:
    """Open the demonstration, decide the roles, choose a preset and run it."""
    page.goto(link)
    page.get_by_role("button", name="Open the demonstration hospital").click()
    page.get_by_role("link", name="Next: roles").click()
    page.get_by_label("Decided by").fill("A. Steward")
    page.get_by_label("Role of admitted").select_option("drop")
    page.get_by_text("decided by A. Steward").first.wait_for()
    undecided = page.get_by_role("button", name=re.compile("Decide all"))
    if undecided.count():
        page.get_by_label("Role of several columns").select_option("drop")
        undecided.click()
    page.get_by_role("link", name="Next: protect").click()
    page.get_by_role("button", name="Use research-file").click()
    page.get_by_label("Targets per attack").fill("500")
    page.get_by_role("button", name="Run the recipe").click()
    page.get_by_role("status").wait_for()
    page.get_by_text(re.compile("models and limits are met|Not met")).wait_for()


def shoot_lattice(page: Page, address: str, path: Path) -> None:
    """The lattice of levels alone, on a page high enough to show it whole."""
    page.goto(address)
    page.get_by_role("button", name="Evaluate all combinations").click()
    page.get_by_text(re.compile("combinations meet the models")).wait_for()
    page.set_viewport_size({"width": 1280, "height": 1600})
    page.get_by_role("region", name="Lattice of levels").screenshot(path=path)
    page.set_viewport_size({"width": 1280, "height": 900})
    print(f"{path.name}: {path.stat().st_size // 1024} KB")


def shoot(page: Page, address: str, path: Path, *, whole: bool) -> None:
    page.goto(address)
    page.get_by_role("heading", level=1).wait_for()
    page.wait_for_timeout(3000)
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path, full_page=whole)
    print(f"{path.name}: {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
