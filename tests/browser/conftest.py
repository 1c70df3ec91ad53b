"""A real Chromium and a real app process for the tests of the pages.

The browser is the one that `make programs` installs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

import programs
from sfumato.data import Table, write
from sfumato.demos.people import hospital

expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a module. It must end with it: Playwright's event loop would run under all later tests."""
    program, environment = programs.chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=programs.BROWSER_OPTIONS, env=environment)
        yield browser
        browser.close()


class RunningApp:
    """`sfumato app` as a user starts it."""

    def __init__(self, folder: Path, data: Path | None) -> None:
        self.folder, self.data = folder, data
        self.lines: list[str] = []
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "sfumato", "app", *([str(self.data)] if self.data else []), "--no-browser"]
        self.process = subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE, text=True, env=os.environ)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/#sign-in=\S+", line)
        assert found, line
        self.link = found[0]
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(self.process.stderr)

    @property
    def address(self) -> str:
        return self.link.split("/#")[0]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


class Service(Protocol):
    """A service at an address."""

    @property
    def address(self) -> str: ...


class Visit:
    """A browser profile that signs in to a service and fails on requests to other hosts and on errors of the pages."""

    def __init__(self, chromium: Browser, app: Service) -> None:
        self.app = app
        self.tabs: list[Page] = []
        self.elsewhere: list[str] = []
        self.errors: list[str] = []
        self.context: BrowserContext = chromium.new_context(viewport={"width": 1280, "height": 900}, locale="en-US")
        self.context.set_default_timeout(60_000)
        self.context.route("**/*", self._only_the_app)

    def _only_the_app(self, route: Route) -> None:
        if route.request.url.startswith((f"{self.app.address}/", "data:", "blob:")):
            route.continue_()
        else:
            self.elsewhere.append(route.request.url)
            route.abort()

    def tab(self) -> Page:
        page = self.context.new_page()
        self.tabs.append(page)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self._said(message.type, message.text))
        return page

    def _said(self, kind: str, text: str) -> None:
        # a refusal of the service is shown to the person; the browser also logs its status
        if kind == "error" and "the server responded with a status of 4" not in text:
            self.errors.append(text)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApp]:
    folder = tmp_path_factory.mktemp("people")
    write(Table(frame=hospital(1, patients=400, town=1500)), folder / "hospital.csv")
    running = RunningApp(folder, folder / "hospital.csv")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def visit(chromium: Browser, app: RunningApp) -> Iterator[Visit]:
    made = Visit(chromium, app)
    page = made.tab()
    page.goto(app.link)
    page.get_by_role("heading", name="Data", exact=True).wait_for()
    yield made  # this tab stays open: it gives the second secret of the session to the others
    made.context.close()


@pytest.fixture
def page(visit: Visit) -> Iterator[Page]:
    """A new tab. Afterwards: no request left the app, no page failed, and the browser keeps only the tab's secret."""
    tab = visit.tab()
    yield tab
    stored = tab.evaluate("[localStorage.length, sessionStorage.length, document.cookie]")
    tab.close()
    assert visit.elsewhere == []
    assert visit.errors == []
    assert stored == [0, 1, ""]
