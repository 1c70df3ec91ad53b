"""The HTTP service of the app: sign-in, refusals, edits, jobs and results."""

from __future__ import annotations

import io
import json
import os
import time
import webbrowser
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient

from sfumato.app import runs
from sfumato.app import serve as serving
from sfumato.app.jobs import Jobs
from sfumato.app.project import open_project
from sfumato.app.run_routes import lattice_key
from sfumato.app.service import create_app, openapi
from sfumato.app.work import WORK
from sfumato.app.workspace import AppWorkspace
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.register import register
from sfumato.progress import SILENT
from sfumato.web import OneTimeTokens

ORIGIN = "http://127.0.0.1:8000"
SECRET = "Xanthippe-Nilsson"
RECIPE = """\
sfumato: 1
data: people.csv
seed: 3
columns:
  name: {role: identifier}
  age: {role: quasi, kind: integer, hierarchy: {intervals: [5, 10, 20]}}
  sex: {role: quasi}
  ill: {role: sensitive}
models:
  - k-anonymity: {k: 3}
steps:
  - mondrian
attacks:
  - linkage
measures:
  - marginals
"""


class Browser:
    """A signed-in browser that repeats the CSRF token."""

    def __init__(self, workspace: AppWorkspace) -> None:
        self.tokens = OneTimeTokens()
        app = create_app(workspace, port=8000, tokens=self.tokens)
        self.client = TestClient(app, base_url=ORIGIN, raise_server_exceptions=False)
        self.headers: dict[str, str] = {}

    def sign_in(self) -> None:
        signed = self.client.post("/api/sign-in", json={"token": self.tokens.issue()})
        self.headers = {"x-csrf-token": signed.json()["csrf"]}

    def get(self, path: str, status: int = 200) -> Any:
        response = self.client.get(path, headers=self.headers)
        assert response.status_code == status, response.text
        return response.json()

    def opened(self, path: str) -> Any:
        """What a browser gets that opens the address by itself: no header, but a ticket."""
        return self.client.get(path, params={"ticket": self.post("/api/ticket")["ticket"]})

    def post(self, address: str, status: int = 200, /, **body: Any) -> Any:
        response = self.client.post(address, json=body, headers=self.headers)
        assert response.status_code == status, response.text
        return response.json()

    def wait(self, kind: str) -> dict[str, Any]:
        for _ in range(600):
            job: dict[str, Any] = next(job for job in self.get("/api/jobs") if job["kind"] == kind)
            if job["state"] != "running":
                return job
            time.sleep(0.1)
        raise AssertionError("the job does not end")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    draw = pl.DataFrame(
        {
            "name": [SECRET if i == 7 else f"person {i}" for i in range(120)],
            "age": [20 + (i * 7) % 50 for i in range(120)],
            "sex": ["f", "m"] * 60,
            "ill": ["no", "no", "yes"] * 40,
        }
    )
    draw.write_csv(tmp_path / "people.csv")
    (tmp_path / "sfumato.yaml").write_text(RECIPE)
    kept = tmp_path / ".sfumato" / "sfumato"
    kept.mkdir(parents=True)
    (kept / "profile.json").write_text("{}")  # a profile that is there is not made again
    return tmp_path / "people.csv"


@pytest.fixture
def browser(people: Path) -> Iterator[Browser]:
    workspace = AppWorkspace(people.parent)
    made = Browser(workspace)
    made.sign_in()
    made.post("/api/data/open", path=str(people))
    yield made
    workspace.close()


def operations() -> list[tuple[str, str]]:
    document = json.loads(openapi(Path()))
    return [(method.upper(), path) for path, methods in document["paths"].items() for method in methods]


@pytest.mark.parametrize(("method", "path"), operations())
def test_nothing_is_served_without_signing_in(method: str, path: str, tmp_path: Path) -> None:
    stranger = Browser(AppWorkspace(tmp_path)).client
    address = path.replace("{number}", "1").replace("{audience}", "internal")
    assert stranger.request(method, address, json={}).status_code == 401
    assert stranger.request(method, address, json={}, headers={"host": "evil.example"}).status_code == 421


def test_a_link_works_once_and_changes_need_the_csrf_token(people: Path) -> None:
    browser = Browser(AppWorkspace(people.parent))
    token = browser.tokens.issue()
    assert browser.client.post("/api/sign-in", json={"token": token}).status_code == 200
    assert browser.client.post("/api/sign-in", json={"token": token}).status_code == 403
    assert browser.client.post("/api/data/open", json={"path": str(people)}).status_code == 403
    assert browser.client.get("/").status_code == 200
    assert "script-src 'self'" in browser.client.get("/").headers["content-security-policy"]


def test_a_cookie_alone_reads_nothing(browser: Browser) -> None:
    """The browser sends it to every port of the machine, so to the servers of other users."""
    for method, path in operations():
        address = path.replace("{number}", "1").replace("{audience}", "internal")
        assert browser.client.request(method, address, json={}).status_code in (401, 403), address
        assert browser.client.request(method, address, json={}, headers={"x-csrf-token": "guess"}).status_code in (
            401,
            403,
        )
    ticket = browser.post("/api/ticket")["ticket"]
    assert browser.client.get("/api/data/rows", params={"ticket": ticket}).status_code == 401  # read by scripts
    page = {"ticket": browser.post("/api/ticket")["ticket"]}
    assert browser.client.get("/report/internal", params=page).status_code == 400  # there is no run
    assert browser.client.get("/report/internal", params=page).status_code == 401  # a ticket works once


def test_the_link_is_in_no_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    serving._open_browser("http://127.0.0.1:8000/#sign-in=TOKEN")
    [address] = opened
    page = Path(address.removeprefix("file://"))
    assert "TOKEN" not in address
    assert 'url=http://127.0.0.1:8000/#sign-in=TOKEN"' in page.read_text()
    assert page.stat().st_mode & 0o077 == 0
    assert page.parent.stat().st_mode & 0o077 == 0


def run(browser: Browser) -> dict[str, Any]:
    browser.post("/api/jobs", kind="protect", targets=50)
    assert browser.wait("protect")["state"] == "done"
    report: dict[str, Any] = browser.get("/api/report")["report"]
    return report


def test_a_run_is_put_in_place_as_a_whole(browser: Browser, people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(browser)
    package = browser.opened("/api/package").content
    version = browser.get("/api/recipe")["version"]
    browser.post("/api/recipe/section", key="steps", value=[], version=version)
    project = people.parent / ".sfumato" / "sfumato"

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    # a process that writes its release and is killed before the run is in place
    unfinished = runs.new_run(project)
    monkeypatch.setattr(runs, "finish_run", killed)
    text = people.with_name("sfumato.yaml").read_text()
    with pytest.raises(KeyboardInterrupt):
        WORK["protect"](
            SILENT, text=text, base=str(people.parent), out=str(unfinished), before=None, targets=50, seconds=None
        )
    assert (unfinished / "release" / "release.json").is_file()
    browser.post("/api/data/open", path=str(people))  # as after a restart
    assert not unfinished.exists()
    assert browser.get("/api/report")["report"]["stale"] == "recipe"
    browser.post("/api/recipe/undo")
    report = browser.get("/api/report")["report"]
    assert (report["stale"], report["fingerprint"]) == ("", first["fingerprint"])
    assert zipped(browser.opened("/api/package").content) == zipped(package)
    assert SECRET.encode() not in b"".join(zipped(package).values())


def zipped(package: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_another_data_file_makes_a_run_stale(browser: Browser, people: Path) -> None:
    assert run(browser)["stale"] == ""
    people.touch()
    assert browser.get("/api/report")["report"]["stale"] == ""  # the same bytes at another time
    frame = pl.read_csv(people)
    frame.reverse().write_csv(people)
    assert browser.get("/api/report")["report"]["stale"] == "data"
    assert "data file has changed" in browser.get("/api/compare/rows", 400)["error"]["message"]
    assert "data file has changed" in browser.post("/api/compare/pair", 400, one="age", other="sex")["error"]["message"]
    assert "data file has changed" in browser.post("/api/publish", 400, folder="out")["error"]["message"]
    assert browser.opened("/api/package").status_code == 400


def test_a_signature_is_about_one_run_and_changes_nothing_in_it(browser: Browser, people: Path) -> None:
    reviewed = run(browser)
    package = browser.opened("/api/package").content
    browser.post("/api/sign-off", fingerprint=reviewed["fingerprint"], approved_by="Grace Hopper")
    version = browser.get("/api/recipe")["version"]
    browser.post("/api/recipe/section", key="about", value={"approved_by": "G. H."}, version=version)
    report = browser.get("/api/report")["report"]
    assert report["stale"] == ""
    assert report["signed"]["approved_by"] == "Grace Hopper"
    assert zipped(browser.opened("/api/package").content) == zipped(package)
    written = browser.post("/api/publish", folder="release")
    assert "Grace Hopper" in Path(written["private"], "report.html").read_text()
    assert json.loads(Path(written["private"], "sign-off.json").read_text())["fingerprint"] == reviewed["fingerprint"]
    assert not [path for path in Path(written["release"]).iterdir() if b"Grace" in path.read_bytes()]
    again = run(browser)
    assert again["signed"] is None
    browser.post("/api/sign-off", 409, fingerprint=reviewed["fingerprint"], approved_by="Grace Hopper")


def test_edits_change_the_file_and_stale_ones_are_refused(browser: Browser, people: Path) -> None:
    recipe = people.with_name("sfumato.yaml")
    seen = browser.get("/api/recipe")["version"]
    changed = browser.post("/api/recipe/column", column="age", key="kind", value="number", version=seen)
    assert changed["document"]["columns"]["age"]["kind"] == "number"
    assert "kind: number" in recipe.read_text()
    error = browser.post("/api/recipe/section", 409, key="seed", value=1, version=seen)["error"]
    assert "meanwhile" in error["message"]
    browser.post("/api/recipe/undo")
    assert recipe.read_text() == RECIPE
    assert browser.post("/api/recipe/redo")["redo"] is None
    decided = browser.post(
        "/api/recipe/decide", roles={"sex": "sensitive"}, by="Ann", version=browser.get("/api/recipe")["version"]
    )
    assert decided["document"]["columns"]["sex"] == {"role": "sensitive", "decided_by": "Ann"}
    browser.post("/api/recipe/branch", name="strict")
    preset = browser.post("/api/recipe/preset", name="public-use-file")
    assert preset["problems"] == []
    assert preset["document"]["limits"]["risk"] == 0.05
    lines = browser.post("/api/recipe/compare", one="main", other="strict")["lines"]
    assert any(line.startswith("+") and "risk: 0.05" in line for line in lines)
    assert "not been examined" in browser.post("/api/recipe/preset", 400, name="hipaa-safe-harbor")["error"]["message"]
    found = {"columns": [{"column": "age", "detector": "an age"}]}
    (people.parent / ".sfumato" / "sfumato" / "profile.json").write_text(json.dumps(found))
    harbor = browser.post("/api/recipe/preset", name="hipaa-safe-harbor")
    assert harbor["problems"] == []
    assert {"safe-harbor": {"ages": ["age"]}} in harbor["document"]["models"]
    assert harbor["document"]["columns"]["age"]["hierarchy"]["intervals"]["top"] == 90
    assert harbor["document"]["steps"][0]["generalize"]["lowest"] == {"age": 1}


def test_a_broken_recipe_is_kept_and_its_line_is_named(browser: Browser) -> None:
    state = browser.get("/api/recipe")
    text = RECIPE.replace("k: 3", "k: none")
    response = browser.client.put(
        "/api/recipe/text", json={"text": text, "version": state["version"]}, headers=browser.headers
    )
    [problem] = response.json()["problems"]
    assert problem["line"] == 10
    refused = browser.post("/api/jobs", 400, kind="protect")["error"]
    assert refused["problems"][0]["line"] == 10


def test_a_run_is_kept_published_when_its_limits_are_met_and_refused_otherwise(browser: Browser, people: Path) -> None:
    assert browser.get("/api/report")["report"] is None
    assert browser.post("/api/publish", 400, folder="release")["error"]["message"] == "There is no run yet."
    browser.post("/api/jobs", kind="protect", targets=50)
    job = browser.wait("protect")
    assert job["state"] == "done", job
    report = browser.get("/api/report")["report"]
    assert (report["stale"], report["unmet"]) == ("", [])
    pairs = browser.get("/api/compare/rows?offset=0&count=5")
    assert len(pairs["pairs"]) == 5
    number, before, _ = pairs["pairs"][0]
    row = pl.read_csv(people).row(number)
    assert before == [str(cell) for cell in row]
    assert browser.post("/api/compare/pair", one="age", other="sex")["after"]["cells"]
    for audience in ("internal", "external"):
        page = browser.opened(f"/report/{audience}")
        assert "sandbox" in page.headers["content-security-policy"]
        assert SECRET not in page.text
    written = browser.post("/api/publish", folder="release")
    assert Path(written["release"], "release.json").is_file()
    assert browser.post("/api/publish", 400, folder="release")["error"]["code"] == "SFU-107"
    browser.post("/api/publish", folder="release", replace=True)
    version = browser.get("/api/recipe")["version"]
    browser.post("/api/recipe/section", key="limits", value={"risk": 0.001}, version=version)
    assert browser.get("/api/report")["report"]["stale"]
    assert "changed since" in browser.post("/api/publish", 400, folder="other")["error"]["message"]
    assert browser.opened("/api/package").status_code == 400
    assert not (people.parent / "other").exists()
    browser.post("/api/jobs", kind="protect", targets=50)
    assert browser.wait("protect")["state"] == "done"
    assert browser.post("/api/publish", 400, folder="other")["error"]["code"] == "SFU-402"
    assert browser.opened("/api/package").status_code == 400
    assert not (people.parent / "other").exists()


def test_what_is_published_is_in_the_register_and_a_run_is_not(browser: Browser, people: Path) -> None:
    account = "sfumato: 1\ndataset: clinic\nledger: ledger.db\n"
    people.with_name("sfumato.yaml").write_text(RECIPE.replace("sfumato: 1\n", account))
    browser.post("/api/data/open", path=str(people))
    run(browser)

    def left() -> list[tuple[str, str]]:
        return [(line.kind, line.name) for line in register(Ledger.open(people.with_name("ledger.db")))]

    assert left() == []  # nobody but the owner has seen it
    browser.post("/api/publish", folder="out")
    assert left() == [("microdata", "out")]
    browser.opened("/api/package")
    assert left() == [("microdata", "out"), ("microdata", "release.zip")]
    [one, other] = register(Ledger.open(people.with_name("ledger.db")))
    assert one.sha256 == other.sha256  # the same files
    assert one.verdicts == ("k-anonymity: holds",)


def test_a_limit_that_any_columns_exceed_leaves_three_choices(browser: Browser) -> None:
    def changed(key: str, value: object) -> None:
        browser.post("/api/recipe/section", key=key, value=value, version=browser.get("/api/recipe")["version"])

    changed("attacks", [{"any-columns": {"most": "all"}}])
    changed("limits", {"risk": 0.3})
    browser.post("/api/recipe/preset", name="public-use-file")
    assert {"l-diversity": {"l": 3, "kind": "entropy"}} in browser.get("/api/recipe")["document"]["models"]
    browser.post("/api/recipe/undo")
    version = browser.get("/api/recipe")["version"]
    browser.post("/api/recipe/decide", roles={"age": "sensitive"}, by="Ann", version=version)
    browser.post("/api/jobs", kind="protect", targets=120)
    assert browser.wait("protect")["state"] == "done"
    report = browser.get("/api/report")["report"]
    drop, mask, accept = (way["roles"] for way in report["ways"])
    assert (drop["age"], mask["age"], accept) == ("drop", "quasi", {})
    assert "upper end of the interval of the risk" in report["limits"][0]["words"]
    version = browser.get("/api/recipe")["version"]
    accepted = browser.post("/api/recipe/decide", accept=True, by="Ann", reason="held in no register", version=version)
    assert accepted["document"]["limits"]["accepted"] == {"by": "Ann", "reason": "held in no register"}
    assert browser.post("/api/recipe/decide", 400, accept=True, by="Ann", version=accepted["version"])["error"]


def test_a_run_that_meets_no_model_leaves_choices_too(browser: Browser) -> None:
    def changed(key: str, value: object) -> None:
        browser.post("/api/recipe/section", key=key, value=value, version=browser.get("/api/recipe")["version"])

    changed("models", [{"k-anonymity": {"k": 3}}, {"l-diversity": {"l": 9}}])
    changed("steps", ["generalize"])
    browser.post("/api/jobs", kind="protect", targets=120)
    job = browser.wait("protect")
    assert job["state"] == "failed"
    assert "`ill`: l-diversity wants >= 9" in job["error"]["message"]
    assert [way["roles"] for way in job["error"]["ways"]] == [{"ill": "drop"}, {"ill": "quasi"}]
    version = browser.get("/api/recipe")["version"]
    browser.post("/api/recipe/decide", roles=job["error"]["ways"][0]["roles"], by="Ann", version=version)
    browser.post("/api/jobs", kind="protect", targets=120)
    assert browser.wait("protect")["state"] == "done"


def test_answers_are_counted_by_the_database(browser: Browser) -> None:
    frame = browser.post("/api/data/uniqueness", columns=["age", "sex"])
    assert frame["rows"] == 120
    assert sum(share for _, share in frame["sizes"]) == pytest.approx(1)
    [age] = browser.post("/api/data/summary", columns=["age"])
    assert sum(age["histogram"]) == 120
    assert browser.post("/api/data/uniqueness", 400, columns=["nobody"])["error"]["code"] == "SFU-201"
    assert browser.get("/api/data/rows?offset=0&count=100000", 400)["error"]
    levels = browser.post("/api/data/hierarchy", column="age", hierarchy={"intervals": [10, 50]})
    assert [level["level"] for level in levels["levels"]] == [0, 1, 2, 3]
    gaps = browser.post("/api/data/hierarchy", column="sex", hierarchy={"taxonomy": {"tree": {"known": ["f"]}}})
    assert gaps["missing"] == 1


def test_questions_are_explained_charged_and_refused_beyond_the_budget(browser: Browser) -> None:
    assert browser.get("/api/ask")["text"] is None
    state = browser.post("/api/ask/setup", unit="row", epsilon="0.5", by="Ann")
    assert state["problem"] == ""
    question = {"sql": "SELECT COUNT(*) FROM people", "epsilon": "0.3", "analyst": "ben"}
    assert "0.3" in browser.post("/api/ask/explain", **question)["text"]
    assert browser.get("/api/ask")["history"] == []
    answer = browser.post("/api/ask/answer", **question)
    assert len(answer["rows"]) == 1
    assert browser.post("/api/ask/answer", **question)["cached"]
    other = {**question, "sql": "SELECT COUNT(*) FROM people WHERE age > 30"}
    assert browser.post("/api/ask/answer", 400, **other)["error"]["code"] == "SFU-701"
    assert [one["text"] for one in browser.get("/api/ask")["history"]] == ["SELECT COUNT(*) FROM people"]


def test_an_auditor_answers_refuses_and_tells_its_owner_what_the_answers_give_away(browser: Browser) -> None:
    assert browser.get("/api/ask")["sensitive"] == ["ill"]
    browser.post("/api/ask/setup", 400, unit="row", epsilon="1", k=2, sensitive=["ill"], by="ada")
    browser.post("/api/ask/setup", unit="row", k=2, sensitive=["ill"], by="ada")
    count = "SELECT COUNT(*) FROM people WHERE ill = 'yes'"
    question = {"sql": count, "analyst": "ada"}
    assert browser.post("/api/ask/answer", **question)["rows"][0].popitem()[1]["value"] == 40
    alone = {"sql": "SELECT ill FROM people WHERE age = 24", "analyst": "ada"}
    refused = browser.post("/api/ask/answer", 400, **alone)["error"]
    assert "fewer than 2" in refused["message"]
    state = browser.get("/api/ask")
    assert [(one["text"], one["verdict"]) for one in state["history"]] == [
        (alone["sql"], "refused"),
        (count, "answered"),
    ]
    assert (state["policy"], state["budget"]) == ("audit", None)
    assert "at least 2 possible values" in state["promise"]
    [told] = browser.get("/api/ask/told")["columns"]
    assert (told["column"], told["exposed"], told["people_by_values_kept"]) == ("ill", [], {"2": 120})
    page = browser.opened("/api/ask/told/page")
    assert "sandbox" in page.headers["content-security-policy"]
    assert SECRET not in page.text


def test_a_sheet_and_a_delimiter_are_chosen_and_stay_in_the_recipe(browser: Browser, tmp_path: Path) -> None:
    import xlsxwriter

    with xlsxwriter.Workbook(tmp_path / "book.xlsx") as book:
        for sheet, columns in (("notes", ["remark", "day"]), ("patients", ["age", "sex", "ill"])):
            written = book.add_worksheet(sheet)
            for row in range(31):
                written.write_row(row, 0, columns if row == 0 else [row + number for number in range(len(columns))])
    browser.post("/api/data/open", path=str(tmp_path / "book.xlsx"))
    assert browser.wait("profile")["state"] == "done"
    reading = browser.get("/api/data/reading")
    assert (reading["format"], reading["schema"]["properties"]["sheet"]["enum"]) == ("excel", ["notes", "patients"])
    browser.post("/api/data/reading", 400, options={"sheet": "nobody"})
    browser.post("/api/data/reading", options={"sheet": "patients"})
    assert browser.wait("profile")["state"] == "done"
    assert browser.get("/api/data/table")["columns"] == ["age", "sex", "ill"]
    assert browser.get("/api/recipe")["document"]["data"] == {"file": "book.xlsx", "sheet": "patients"}
    browser.post("/api/recipe/undo")
    assert browser.get("/api/data/table")["columns"] == ["remark", "day"]

    (tmp_path / "bars.csv").write_text("a|b;c\n" + "1|2;3\n" * 20)
    browser.post("/api/data/open", path=str(tmp_path / "bars.csv"))
    browser.wait("profile")
    for delimiter, columns in ((";", ["a|b", "c"]), ("|", ["a", "b;c"])):
        browser.post("/api/data/reading", options={"delimiter": delimiter})
        assert browser.wait("profile")["state"] == "done"
        assert browser.get("/api/data/table")["columns"] == columns


def test_errors_show_no_value_and_files_that_cannot_be_read_are_named(browser: Browser, tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1" + SECRET.encode() * 10)
    browser.post("/api/data/open", path=str(broken))
    response = browser.client.get("/api/data/table", headers=browser.headers)
    assert response.status_code == 400
    assert SECRET not in response.text
    assert browser.post("/api/data/open", 400, path=str(tmp_path / "none.csv"))["error"]["fix"]
    listed = browser.post("/api/data/files", path=str(tmp_path))
    assert {entry["name"] for entry in listed["entries"]} >= {"people.csv", "broken.parquet", "sfumato.yaml"}


def test_the_lattice_of_levels_is_surveyed_and_goes_stale_with_the_models(people: Path) -> None:
    recipe = people.with_name("sfumato.yaml")
    recipe.write_text(RECIPE.replace("- mondrian", "- generalize: {lowest: {age: 1}}"))
    found = WORK["lattice"](SILENT, recipe=str(recipe))
    assert found["columns"] == ["age", "sex"]
    assert (found["low"], found["high"]) == ([0, 0], [4, 1])
    assert len(found["nodes"]) == 10
    assert found["words"]["sex"] == ["as it is", "all values removed (*)"]
    project = open_project(str(recipe))
    key = lattice_key(project)
    recipe.write_text(RECIPE.replace("- mondrian", "- generalize"))
    assert lattice_key(project) == key
    recipe.write_text(RECIPE.replace("- mondrian", "- generalize").replace("k: 3", "k: 4"))
    assert lattice_key(project) != key


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z" if Path("/proc").is_dir() else True
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.parametrize("way", ["cancel", "time"])
def test_a_cancelled_or_late_job_ends_its_process(way: str, people: Path) -> None:
    jobs = Jobs()
    plan = people.with_name("study.yaml")
    plan.write_text(
        RECIPE.replace("steps:\n  - mondrian\n", "study: {candidates: [mondrian, generalize], seeds: 50}\n")
    )
    arguments = {"plan": str(plan), "out": str(people.with_name("study")), "seconds": None}
    job = jobs.start("study", arguments, seconds=None if way == "cancel" else 1.0)
    if way == "cancel":
        jobs.cancel(job.number)
        jobs.cancel(job.number)
    for _ in range(1200):
        if job.state != "running" and not alive(job.process.pid):
            break
        time.sleep(0.05)
    assert job.state == ("cancelled" if way == "cancel" else "out of time")
    assert not alive(job.process.pid)
