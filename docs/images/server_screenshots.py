"""Screenshots of the pages of the server: an analyst's question with its answer, and the budgets of a data set.

Run `make pictures`. It needs Chromium or Chrome on the path.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).parent
METADATA = """sfumato: 1
dataset: hospital
ledger: ledger.db
person: row
tables:
  patients:
    data: patients.csv
    columns:
      ward: {kind: category, domain: {values: [east, north, south, west]}}
      age: {kind: integer, domain: {low: 0, high: 110}}
      stay: {kind: integer, domain: {low: 0, high: 60}}
"""
QUESTIONS = (
    "SELECT COUNT(*) AS patients FROM patients WHERE age >= 65",
    "SELECT AVG(stay) AS days FROM patients",
    "SELECT ward, COUNT(*) AS patients, AVG(stay) AS days FROM patients GROUP BY ward ORDER BY patients DESC",
)


def main() -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("Install Chromium: it takes the screenshots.")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        write_data(Path(folder))
        server, link = start(Path(folder))
        try:
            options = ["--no-sandbox", "--headless=new", "--disable-gpu", "--no-first-run"]
            chromium = playwright.chromium.launch(executable_path=browser, args=options)
            admin = signed_in(chromium, link)
            invitation = invite(admin)
            analyst = signed_in(chromium, invitation)
            ask(analyst)
            analyst.screenshot(path=IMAGES / "server-ask.png")
            go(admin, "Ledger")
            go(admin, "Budgets")
            admin.wait_for_timeout(3000)
            admin.screenshot(path=IMAGES / "server-budgets.png")
            chromium.close()
        finally:
            server.terminate()
            server.wait(30)


def write_data(folder: Path) -> None:
    draw = np.random.default_rng(1)
    rows = 8000
    pl.DataFrame(
        {
            "ward": draw.choice(["east", "north", "south", "west"], rows, p=[0.4, 0.3, 0.2, 0.1]),
            "age": np.clip(draw.normal(55, 20, rows), 0, 110).astype(int),
            "stay": np.clip(draw.gamma(2, 3, rows), 0, 60).astype(int),
        }
    ).write_csv(folder / "patients.csv")
    (folder / "hospital.yaml").write_text(METADATA)


def start(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """The server as an administrator starts it, and the link to sign in."""
    command = [sys.executable, "-m", "sfumato", "serve", "hospital.yaml", "--port", "0", "--postgres-port", "-1"]
    server = subprocess.Popen(
        [*command, "--epsilon", "5"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "XDG_STATE_HOME": str(folder / "witness")},
    )  # fmt: skip
    assert server.stdout is not None
    for line in server.stdout:
        if found := re.match(r"Sign in: +(http://\S+)", line):
            return server, found[1]
    sys.exit("The server did not start.")


def signed_in(chromium: Browser, link: str) -> Page:
    page = chromium.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(60_000)
    page.goto(link)
    page.get_by_role("button", name="Sign in to sfumato").click()
    page.get_by_role("heading", level=1, name="Account").wait_for()
    return page


def go(page: Page, name: str) -> None:
    page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()
    page.get_by_role("heading", level=1, name=name, exact=True).wait_for()


def invite(admin: Page) -> str:
    """Add an analyst with a budget; the one-time link of their account."""
    go(admin, "Users")
    admin.get_by_label("Name").fill("ada")
    admin.get_by_role("button", name="Add and make a one-time link").click()
    invitation = admin.locator("code.secret").inner_text()
    go(admin, "Data sets")
    admin.get_by_label("Let somebody ask hospital").select_option("ada")
    admin.get_by_role("button", name="Withdraw from ada").wait_for()
    go(admin, "Budgets")
    admin.get_by_label("Data set", exact=True).select_option("hospital")
    admin.get_by_label("Holder").fill("ada")
    admin.get_by_label("ε", exact=True).fill("2")
    admin.get_by_label("Why").fill("a study of stays")
    admin.get_by_role("button", name="Set the cap").click()
    admin.get_by_role("region", name="Budgets").get_by_text("ada").wait_for()
    return invitation


def ask(analyst: Page) -> None:
    go(analyst, "Ask")
    for question in QUESTIONS:
        analyst.get_by_label("SQL question").fill(question)
        analyst.get_by_label("ε of this answer").fill("0.25")
        analyst.get_by_role("button", name="Explain").click()
        analyst.get_by_label("Cost and expected error").get_by_text("ε = 0.25").first.wait_for()
        analyst.get_by_role("button", name="Ask", exact=True).click()
        analyst.get_by_role("region", name="Answer").first.wait_for()
        analyst.wait_for_timeout(3000)  # until the budget is shown again
    analyst.set_viewport_size({"width": 1280, "height": 1150})


if __name__ == "__main__":
    main()
