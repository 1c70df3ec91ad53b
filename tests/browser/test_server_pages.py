"""The pages of the server in a real browser: administration, questions with a budget, sign-in and what roles hide."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from conftest import Visit

pytestmark = pytest.mark.xdist_group("browser")
PASSWORD = "correct horse battery staple"
METADATA = """sfumato: 1
dataset: hospital
ledger: ledger.db
person: row
tables:
  patients:
    data: patients.csv
    columns:
      ward: {kind: category, domain: {values: [east, west]}}
"""


class RunningServer:
    """`sfumato serve` as an administrator starts it."""

    def __init__(self, folder: Path) -> None:
        pl.DataFrame({"ward": ["east", "west"] * 200}).write_csv(folder / "patients.csv")
        (folder / "hospital.yaml").write_text(METADATA)
        command = [sys.executable, "-m", "sfumato", "serve", "hospital.yaml", "--port", "0", "--postgres-port", "-1"]
        self.process = subprocess.Popen(
            [*command, "--epsilon", "5"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "XDG_STATE_HOME": str(folder / "witness")},
        )  # fmt: skip
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := re.match(r"Sign in: +(http://127\.0\.0\.1:\d+)(/sign-in/\S+)", line):
                self.address, self.link = found[1], found[1] + found[2]
                break
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    running = RunningServer(tmp_path_factory.mktemp("server"))
    yield running
    running.stop()


@pytest.fixture
def people(chromium: Browser, server: RunningServer) -> Iterator[list[Visit]]:
    """Browser profiles of a test: at its end none of them has asked another host, failed or stored anything."""
    opened: list[Visit] = []
    yield opened
    for visit in opened:
        stored = [tab.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") for tab in visit.tabs]
        visit.context.close()
        assert visit.elsewhere == []
        assert visit.errors == []
        assert stored == [[0, 0, ""]] * len(stored)


def browser_of(people: list[Visit], chromium: Browser, server: RunningServer) -> Page:
    people.append(Visit(chromium, server))
    return people[-1].tab()


def go(page: Page, name: str) -> None:
    page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()
    page.get_by_role("heading", level=1, name=name, exact=True).wait_for()


def sign_in(page: Page, link: str) -> None:
    page.goto(link)
    page.get_by_role("button", name="Sign in to sfumato").click()
    page.get_by_role("heading", level=1, name="Account").wait_for()
    assert "/sign-in/" not in page.url


def serious(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [entry["id"] for entry in found if entry["impact"] in ("serious", "critical")]


def test_from_the_first_link_to_an_answer_and_its_trace(
    people: list[Visit], chromium: Browser, server: RunningServer
) -> None:
    admin = browser_of(people, chromium, server)
    sign_in(admin, server.link)
    go(admin, "Users")
    admin.get_by_label("Name").fill("ada")
    admin.get_by_role("button", name="Add and make a one-time link").click()
    invitation = admin.locator("code.secret").inner_text()
    go(admin, "Data sets")
    admin.get_by_label("Let somebody ask hospital").select_option("ada")
    expect(admin.get_by_role("button", name="Withdraw from ada")).to_be_visible()
    go(admin, "Budgets")
    admin.get_by_label("Data set", exact=True).select_option("hospital")
    admin.get_by_label("Holder").fill("ada")
    admin.get_by_label("ε", exact=True).fill("2")
    admin.get_by_label("Why").fill("trial")
    admin.get_by_role("button", name="Set the cap").click()
    expect(admin.get_by_role("region", name="Budgets").get_by_text("ada")).to_be_visible()

    ada = browser_of(people, chromium, server)
    sign_in(ada, invitation)
    pages = ada.get_by_role("navigation").get_by_role("link").all_inner_texts()
    assert pages == ["Ask", "Questions", "Budgets", "Account"], "an analyst sees no administration"
    ada.get_by_label("New password").fill(PASSWORD)
    ada.get_by_label("Repeat it").fill(PASSWORD)
    ada.get_by_role("button", name="Set the password").click()
    ada.get_by_label("User").fill("ada")
    ada.get_by_role("textbox", name="Password").fill(PASSWORD)
    ada.get_by_role("button", name="Sign in", exact=True).click()
    go(ada, "Ask")
    ada.get_by_label("SQL question").fill("SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward")
    ada.get_by_label("ε of this answer").fill("0.5")
    ada.get_by_role("button", name="Explain").click()
    expect(ada.get_by_label("Cost and expected error")).to_contain_text("ε = 0.5")
    assert serious(ada) == []
    ada.get_by_role("button", name="Ask", exact=True).click()
    rows = ada.get_by_role("region", name="Answer").get_by_role("row")
    expect(rows).to_have_count(3)
    expect(ada.get_by_text("left ε = 1.5")).to_be_visible()
    ada.get_by_label("SQL question").fill("SELECT * FROM patients")
    ada.get_by_role("button", name="Ask", exact=True).click()
    expect(ada.locator(".notice.bad")).to_be_visible()

    admin.reload()
    expect(admin.get_by_label(re.compile("Accumulated loss of hospital: ε = 0.5 of ε = 5"))).to_be_visible()
    for name in ("Users", "Budgets"):
        go(admin, name)
        assert serious(admin) == [], name
    go(admin, "Questions")
    expect(admin.get_by_text("SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward")).to_be_visible()
    go(admin, "Ledger")
    admin.get_by_role("button", name="Verify the ledger").click()
    expect(admin.get_by_text("Every hash, number and running total is right")).to_be_visible()
    go(admin, "Data sets")
    admin.get_by_label("Reason").fill("an incident")
    admin.get_by_role("switch", name="Freeze").click()
    expect(admin.get_by_role("switch", name="Frozen")).to_have_attribute("aria-checked", "true")
    ada.get_by_label("SQL question").fill("SELECT COUNT(*) AS n FROM patients WHERE ward = 'east'")
    ada.get_by_role("button", name="Ask", exact=True).click()
    expect(ada.locator(".notice.bad")).to_contain_text("No new question is answered")
    admin.get_by_role("button", name="Sign out").click()
    expect(admin.get_by_role("heading", name="Password")).to_be_visible()
    admin.goto(server.link)
    admin.get_by_role("button", name="Sign in to sfumato").click()
    expect(admin.get_by_role("alert").or_(admin.locator(".notice.bad"))).to_be_visible()
