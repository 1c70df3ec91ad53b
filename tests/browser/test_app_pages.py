"""The pages of the app in a real browser, from the file to the release."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import Browser, Page, expect

from conftest import RunningApp, Visit
from sfumato.masking.methods.generalize import Generalize
from sfumato.recipe import Recipe
from sfumato.release.folder import load_release

pytestmark = pytest.mark.xdist_group("browser")

PAGES = ("data", "roles", "hierarchies", "protect", "compare", "attack", "report", "ask", "start")


def open_page(page: Page, app: RunningApp, name: str, heading: str | None = None) -> None:
    page.goto(f"{app.address}/{name}")
    page.get_by_role("heading", level=1, name=heading or name.capitalize()).wait_for()


def wait_for_edit(page: Page, change: str) -> None:
    """Wait until the last change of the recipe is this one."""
    undo = page.get_by_role("button", name=re.compile("Undo"))
    expect(undo).to_have_attribute("title", re.compile(change))


def recipe_of(app: RunningApp) -> str:
    return (app.folder / "sfumato.yaml").read_text(encoding="utf-8")


def test_data_shows_rows_and_corrections_change_the_recipe(page: Page, app: RunningApp) -> None:
    open_page(page, app, "data")
    expect(page.get_by_text("400 rows and 6 columns were read")).to_be_visible()
    grid = page.get_by_role("region", name="Rows of the table")
    expect(grid.get_by_role("row")).not_to_have_count(0)
    page.get_by_label("Kind of diagnosis").select_option("")
    expect(page.get_by_role("button", name=re.compile("Undo"))).to_be_enabled()
    codes = page.get_by_label("Codes of zip for no answer")
    codes.fill("99999, n/a")
    codes.press("Enter")
    wait_for_edit(page, "missing_codes")
    assert Recipe.load(app.folder / "sfumato.yaml").schema.columns["zip"].missing_codes == (99999, "n/a")


def test_roles_are_decided_with_reasons_and_the_share_of_unique_rows_is_live(page: Page, app: RunningApp) -> None:
    open_page(page, app, "roles")
    panel = page.get_by_role("region", name="What singles people out")
    expect(panel.locator(".big")).to_be_visible()
    before = panel.locator(".big").inner_text()
    for name in ("birth_date", "zip", "admitted"):
        panel.get_by_label(name, exact=True).set_checked(False)
    panel.get_by_label("sex", exact=True).set_checked(True)
    expect(panel.locator(".big")).not_to_have_text(before)
    frame = pl.read_csv(app.folder / "hospital.csv")
    alone = frame.select(pl.len().over("sex") == 1).to_series().mean()
    expect(panel.locator(".big")).to_have_text(f"{100 * float(alone):.1f}".removesuffix(".0") + "%")  # type: ignore[arg-type]
    page.get_by_label("Decided by").fill("A. Steward")
    page.get_by_label("Role of admitted").select_option("plain")
    page.get_by_label("Why can nobody use it").fill("synthetic")
    page.get_by_role("button", name="Decide plain").click()
    expect(page.get_by_text("decided by A. Steward: synthetic")).to_be_visible()
    page.get_by_label("Role of admitted").select_option("drop")
    expect(page.get_by_label("Role of admitted")).to_have_value("drop")
    page.keyboard.press("Control+z")
    expect(page.get_by_label("Role of admitted")).to_have_value("plain")
    page.keyboard.press("Control+y")
    expect(page.get_by_label("Role of admitted")).to_have_value("drop")
    undecided = page.get_by_role("button", name=re.compile("Decide all"))
    if undecided.count():
        page.get_by_label("Role of several columns").select_option("drop")
        undecided.click()
    expect(page.get_by_text(re.compile("○ [0-9]+ not confirmed"))).to_be_visible()  # proposals that nobody has decided
    page.get_by_role("button", name=re.compile("Confirm [0-9]+ proposed")).click()
    expect(page.get_by_text("✓ decided")).to_be_visible()
    columns = Recipe.load(app.folder / "sfumato.yaml").schema.columns
    assert (columns["admitted"].role.value, columns["admitted"].decided_by) == ("drop", "A. Steward")
    assert {column.decided_by for column in columns.values()} == {"A. Steward"}


def test_many_columns_are_decided_at_once_and_never_dropped_by_default(page: Page, app: RunningApp) -> None:
    open_page(page, app, "roles")
    page.get_by_label("Decided by").fill("B. Steward")
    page.get_by_label("Show columns whose name contains").fill("I")  # birth_date, zip, admitted, diagnosis
    expect(page.get_by_label("Role of sex")).to_have_count(0)
    page.get_by_label("Select zip").check()
    page.get_by_label("Select admitted").check()
    button = page.get_by_role("button", name="Decide 2 selected")
    expect(button).to_be_disabled()
    page.get_by_label("Role of several columns").select_option("quasi")
    button.click()
    expect(page.get_by_label("Role of admitted")).to_have_value("quasi")
    expect(page.get_by_label("Select admitted")).not_to_be_checked()
    columns = Recipe.load(app.folder / "sfumato.yaml").schema.columns
    for name in ("zip", "admitted"):
        assert (columns[name].role.value, columns[name].decided_by) == ("quasi", "B. Steward")
    assert columns["sex"].decided_by != "B. Steward"


def test_the_text_and_the_form_edit_the_same_recipe(page: Page, app: RunningApp, visit: Visit) -> None:
    open_page(page, app, "data")
    page.get_by_role("button", name="Recipe", exact=True).click()
    area = page.get_by_label("Text of the recipe")
    text = area.input_value()
    area.fill(text.replace("role: quasi", "role: quazi", 1))
    page.keyboard.press("Control+s")
    expect(page.locator(".problems")).to_contain_text("quasi")
    page.get_by_role("button", name=re.compile("Undo")).click()
    expect(area).to_have_value(text)
    # two tabs: the one that edited an old text is refused and loses nothing
    area.fill(text + "\ntitle: mine\n")
    other = visit.tab()
    open_page(other, app, "roles")
    other.get_by_label("Role of admitted").select_option("identifier")
    expect(other.get_by_text("decided by").first).to_be_visible()
    wait_for_edit(other, "decided admitted")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("changed meanwhile")
    expect(area).to_have_value(re.compile("title: mine"))
    assert "title: mine" not in recipe_of(app)
    page.get_by_role("button", name="Discard").click()
    other.get_by_label("Role of admitted").select_option("drop")
    wait_for_edit(other, "admitted")
    other.close()
    page.get_by_text("Branches").click()
    page.get_by_label("Name of a new branch").fill("strict")
    page.get_by_role("button", name="Branch here").click()
    expect(page.locator(".branches")).to_contain_text("strict (current)")


def test_a_refused_run_offers_buttons_that_decide_and_run_again(chromium: Browser, tmp_path: Path) -> None:
    """No release has nine well-represented values of a column of three."""
    ages, answers = [20 + n % 40 for n in range(120)], [["yes", "no", "maybe"][n % 3] for n in range(120)]
    pl.DataFrame({"age": ages, "ill": answers}).write_csv(tmp_path / "patients.csv")
    (tmp_path / "sfumato.yaml").write_text(
        "sfumato: 1\ndata: patients.csv\ncolumns:\n  age: {role: quasi, kind: integer}\n  ill: {role: sensitive}\n"
        "models: [{k-anonymity: {k: 3}}, {l-diversity: {l: 9}}]\nsteps: [generalize]\n",
        encoding="utf-8",
    )
    app = RunningApp(tmp_path, tmp_path / "patients.csv")
    visit = Visit(chromium, app)
    try:
        page = visit.tab()
        page.goto(app.link)
        page.get_by_role("heading", name="Data", exact=True).wait_for()
        open_page(page, app, "protect")
        page.get_by_role("button", name="Run the recipe").click()
        choices = page.get_by_role("group", name=re.compile("What must give"))
        expect(choices).to_be_visible()
        refusal = page.locator(".notice.bad").first
        expect(refusal.locator("code").filter(has_text=re.compile("^ill$"))).to_have_count(1)
        expect(refusal).not_to_contain_text("`")
        drop = choices.get_by_role("button", name="Drop ill")
        choices.get_by_label("Decided by").fill("")
        expect(drop).to_be_disabled()
        choices.get_by_label("Decided by").fill("A. Steward")
        drop.click()
        expect(page.get_by_text("All models are met.")).to_be_visible()
        expect(choices).to_have_count(0)
        assert visit.elsewhere == visit.errors == []
    finally:
        visit.context.close()
        app.stop()
    ill = Recipe.load(tmp_path / "sfumato.yaml").schema.columns["ill"]
    assert (ill.role.value, ill.decided_by) == ("drop", "A. Steward")


def test_undo_survives_a_restart(app: RunningApp, chromium: Browser) -> None:
    before = recipe_of(app)
    app.stop()
    app.start()
    visit = Visit(chromium, app)
    page = visit.tab()
    page.goto(app.link)
    undo = page.get_by_role("button", name=re.compile("Undo"))
    undo.click()
    expect(page.get_by_role("button", name=re.compile("Redo"))).to_be_enabled()
    assert recipe_of(app) != before
    page.get_by_role("button", name=re.compile("Redo")).click()
    expect(page.get_by_role("button", name=re.compile("Redo"))).to_be_disabled()
    assert recipe_of(app) == before
    page.goto(f"{app.address}/#sign-in=guess")
    stranger = Visit(chromium, app)
    outside = stranger.tab()
    outside.goto(app.link)  # the link was used
    expect(outside.get_by_text("Open the link that the command line printed")).to_be_visible()
    assert visit.elsewhere == stranger.elsewhere == []
    stranger.context.close()
    visit.context.close()


@pytest.fixture(scope="module")
def signed_in(app: RunningApp, chromium: Browser) -> Visit:
    """A browser that signed in after the restart, by the newest link that the app printed."""
    newest = [line for line in app.lines if "#sign-in=" in line][-1]
    visit = Visit(chromium, app)
    page = visit.tab()
    page.goto(newest.split()[-1])
    page.get_by_role("heading", level=1).wait_for()
    return visit


def test_a_recipe_is_built_run_attacked_and_released(signed_in: Visit, app: RunningApp) -> None:
    page = signed_in.tab()
    open_page(page, app, "attack")
    expect(page.get_by_text("There is no release to attack yet")).to_be_visible()
    open_page(page, app, "hierarchies")
    page.get_by_role("button", name=re.compile("^sex")).click()
    page.get_by_role("button", name="Edit as a tree").click()
    page.get_by_label("New group").fill("known")
    page.get_by_role("button", name="Add group").click()
    page.get_by_label("Move F to").select_option(label="known")
    known = page.get_by_role("group", name="known")
    page.locator(".leaf").filter(has_text="M").drag_to(known.locator(".leaves"), source_position={"x": 8, "y": 8})
    expect(known.locator(".leaf")).to_have_count(2)
    expect(page.get_by_role("region", name="Values and their labels at each level")).to_contain_text("known")
    page.get_by_role("button", name="Save", exact=True).click()
    wait_for_edit(page, "hierarchy of sex")
    hierarchy = Recipe.load(app.folder / "sfumato.yaml").schema.columns["sex"].hierarchy
    assert hierarchy is not None
    assert hierarchy.part_name() == "taxonomy"

    open_page(page, app, "protect")
    page.get_by_role("button", name="Use research-file").click()
    expect(page.get_by_role("region", name="Models").get_by_role("heading", name="k-anonymity")).to_be_visible()
    # a form made from the fields of a part
    page.get_by_label("Add a step").select_option("rank-swap")
    page.get_by_label("Add a step").select_option("")
    k = page.get_by_role("region", name="Models").get_by_label("k (required)").first
    k.fill("3")
    k.press("Enter")
    wait_for_edit(page, "models")
    page.get_by_label("Targets per attack").fill("100")
    page.get_by_role("button", name="Run the recipe").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text(re.compile("cancelled after"))).to_be_visible()
    page.get_by_role("button", name="Run the recipe").click()
    page.reload()  # a reload loses nothing
    expect(page.get_by_role("status")).to_be_visible()
    expect(page.get_by_text(re.compile("models and limits are met|Not met"))).to_be_visible(timeout=180_000)

    open_page(page, app, "attack")
    expect(page.get_by_text("looks up the matching rows").first).to_be_visible()
    expect(page.locator(".chart svg").first).to_be_visible()
    names = pl.read_csv(app.folder / "hospital.csv")["name"].to_list()
    assert not any(name in page.content() for name in names)
    page.get_by_role("button", name="Show values").click()
    expect(page.get_by_role("region", name="Records at most risk").first).to_contain_text(re.compile("[A-Z][.] "))

    open_page(page, app, "compare")
    expect(page.get_by_role("region", name="Rows before and after").locator("ins").first).to_be_visible()
    expect(page.locator(".heat").first).to_be_visible()

    open_page(page, app, "report")
    expect(page.frame_locator("iframe").get_by_role("heading", level=1)).to_be_visible()
    accept = page.get_by_label("write it although limits are not met")
    if accept.count():
        expect(page.get_by_role("button", name="Write the release")).to_be_disabled()
        accept.check()
    page.get_by_role("button", name="Write the release").click()
    expect(page.get_by_text("Keep private:")).to_be_visible()
    release = load_release(app.folder / "release")  # verifies the hash of every file
    assert "name" not in release.table.columns
    assert (app.folder / "release-private" / "report.html").is_file()
    assert signed_in.elsewhere == []
    assert signed_in.errors == []
    page.close()


def test_questions_show_their_cost_before_they_are_asked(signed_in: Visit, app: RunningApp) -> None:
    page = signed_in.tab()
    open_page(page, app, "ask")
    page.get_by_label("Who is protected").select_option("row")
    page.get_by_label("Budget: total ε").fill("1")
    page.get_by_role("button", name="Set up").click()
    page.get_by_role("button", name="Explain (free)").click()
    expect(page.get_by_label("Cost and expected error")).to_contain_text("0.1")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_role("region", name="Answer").last).to_contain_text(" to ")
    expect(page.get_by_role("region", name="History")).to_contain_text("SELECT COUNT(*)")
    page.get_by_label("SQL question").fill("SELECT name FROM hospital")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".notice.bad")).to_be_visible()
    assert "ledger" in recipe_of(app)
    page.close()


def test_the_tour_marks_a_part_of_every_page(signed_in: Visit, app: RunningApp) -> None:
    page = signed_in.tab()
    open_page(page, app, "start", "Choose a file")
    expect(page.get_by_role("button", name="Start the tour")).to_be_visible()
    page.goto(f"{app.address}/data#tour=0")
    card = page.get_by_role("region", name="Tour")
    for number in range(1, 11):
        expect(card).to_contain_text(f"Tour, {number} of 10")
        expect(page.locator(".panel.tour-mark")).to_have_count(1)
        if number == 7:
            page.reload()  # keeps the stop
            expect(card).to_contain_text("✓ done")
        card.get_by_role("button", name="Finish" if number == 10 else "Next", exact=True).click()
    expect(card).to_have_count(0)
    expect(page.locator(".tour-mark")).to_have_count(0)
    assert signed_in.errors == []
    page.close()


def test_answers_branches_and_a_candidate_of_the_map_change_the_recipe(signed_in: Visit, app: RunningApp) -> None:
    page = signed_in.tab()
    open_page(page, app, "report")
    before = recipe_of(app)
    page.get_by_text(re.compile("^WP216, Opinion")).click()
    answer = page.get_by_label("Are there other releases or registers")
    answer.fill("none")
    answer.press("Enter")
    wait_for_edit(page, "about")
    assert Recipe.load(app.folder / "sfumato.yaml").about.answers == {"wp216.linkability": "none"}

    page.get_by_role("button", name="Recipe", exact=True).click()
    panel = page.get_by_role("complementary", name="Recipe")
    panel.get_by_text(re.compile("^Branches")).click()
    branch = panel.locator(".branches strong").inner_text()
    panel.get_by_placeholder("name of a new branch").fill("bold")
    panel.get_by_role("button", name="Branch here").click()
    panel.get_by_text("bold (current)").wait_for()
    candidates = [
        {"candidate": name, "risk": risk, "risk_high": risk, "loss": 0.2, "holds": True, "efficient": True,
         "steps": [{name: {}}]}
        for name, risk in (("generalize", 0.1), ("mondrian", 0.05))
    ]  # fmt: skip
    map_of = {"risk": "identity", "utility": "ncp", "candidates": candidates, "limit": 0.2, "recommended": "mondrian"}
    (app.folder / ".sfumato" / "sfumato" / "study.json").write_text(json.dumps(map_of))
    open_page(page, app, "protect")
    page.locator("svg.map circle").last.click()
    wait_for_edit(page, "steps")
    assert [step.part_name() for step in Recipe.load(app.folder / "sfumato.yaml").steps] == ["mondrian"]
    page.get_by_role("button", name="Recipe", exact=True).click()
    panel.get_by_text(re.compile("^Branches")).click()
    panel.get_by_role("button", name=f"Compare with {branch}", exact=True).click()
    expect(panel.get_by_label("Differences")).to_contain_text("mondrian")
    panel.get_by_role("button", name=f"Switch to {branch}", exact=True).click()
    panel.get_by_text(f"{branch} (current)", exact=True).wait_for()
    page.get_by_role("button", name=re.compile("Undo")).click()
    expect(page.get_by_role("button", name=re.compile("Redo"))).to_be_enabled()
    assert recipe_of(app) == before
    page.close()


def test_the_lattice_is_explored_and_a_combination_of_levels_is_taken(signed_in: Visit, app: RunningApp) -> None:
    page = signed_in.tab()
    open_page(page, app, "protect")
    before, undo = recipe_of(app), page.get_by_role("button", name=re.compile("Undo"))
    last = undo.get_attribute("title") or ""
    page.get_by_role("button", name="Take generalize").click()
    page.get_by_role("button", name="Evaluate all combinations").click()
    expect(page.get_by_text(re.compile("combinations meet the models"))).to_be_visible(timeout=120_000)
    levels = page.get_by_role("region", name="Levels")
    levels.get_by_role("button", name=re.compile("holds")).last.click()
    page.get_by_role("button", name="Take these levels").click()
    expect(page.get_by_text("The recipe fixes or limits the levels of this step.")).to_be_visible()
    [step] = [one for one in Recipe.load(app.folder / "sfumato.yaml").steps if isinstance(one, Generalize)]
    assert step.lowest == step.highest != {}
    undo.click()
    undo.click()
    expect(undo).to_have_attribute("title", last)
    assert recipe_of(app) == before
    page.close()


def test_a_dropped_file_is_opened_where_it_lies(signed_in: Visit, app: RunningApp) -> None:
    page = signed_in.tab()
    for name, size in (("elsewhere.csv", 10), ("hospital.csv", (app.folder / "hospital.csv").stat().st_size)):
        open_page(page, app, "start", "Choose a file")
        page.get_by_role("button", name="hospital.csv").wait_for()
        file = f"new File([new Uint8Array({size})], '{name}')"
        dropped = page.evaluate_handle(f"(() => {{ const t = new DataTransfer(); t.items.add({file}); return t; }})()")
        page.dispatch_event(".drop", "drop", {"dataTransfer": dropped})
        if name == "elsewhere.csv":
            expect(page.get_by_text("A browser does not tell where elsewhere.csv lies")).to_be_visible()
    page.get_by_role("heading", level=1, name="Data").wait_for()
    expect(page.get_by_text("400 rows and 6 columns were read")).to_be_visible()
    assert signed_in.elsewhere == signed_in.errors == []
    page.close()


def test_pages_have_no_serious_violation_of_accessibility(signed_in: Visit, app: RunningApp) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = signed_in.tab()
    found = []
    for name in PAGES:
        page.emulate_media(color_scheme="light")
        open_page(page, app, name, "Choose a file" if name == "start" else None)
        page.wait_for_load_state("networkidle") if name == "start" else page.wait_for_timeout(700)
        light = Axe().run(page).response["violations"]
        page.emulate_media(color_scheme="dark")
        page.wait_for_timeout(300)
        dark = Axe().run(page, options={"runOnly": ["color-contrast"]}).response["violations"]  # only colours differ
        found += [
            (name, rule["id"], node["target"], node["failureSummary"])
            for rule in light + dark
            if rule["impact"] in ("serious", "critical")
            for node in rule["nodes"]
        ]
    page.close()
    assert found == []


def test_pages_fit_a_phone(signed_in: Visit, app: RunningApp) -> None:
    page = signed_in.tab()
    page.set_viewport_size({"width": 390, "height": 844})
    for name in PAGES:
        open_page(page, app, name, "Choose a file" if name == "start" else None)
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
    page.close()


def test_a_file_that_cannot_be_read_and_one_of_a_million_rows(signed_in: Visit, app: RunningApp) -> None:
    (app.folder / "broken.parquet").write_bytes(b"PAR1 this is not a table")
    rows = 1_000_000
    frame = pl.DataFrame({"number": range(rows), "group": [i % 7 for i in range(rows)]})
    frame.write_parquet(app.folder / "large.parquet")
    page = signed_in.tab()
    open_page(page, app, "start", "Choose a file")
    page.get_by_role("button", name="broken.parquet").click()
    expect(page.locator(".notice.bad").first).to_be_visible()
    open_page(page, app, "start", "Choose a file")
    page.get_by_role("button", name="large.parquet").click()
    expect(page.get_by_text("1,000,000 rows and 2 columns were read")).to_be_visible()
    grid = page.get_by_role("region", name="Rows of the table")
    grid.evaluate("box => box.scrollTo(0, box.scrollHeight)")
    expect(grid.get_by_role("row", name=re.compile("^1,000,000 999999 0"))).to_be_visible()
    assert grid.get_by_role("row").count() < 60  # only rows in view exist
    page.close()


def test_the_address_and_the_terminal_show_no_value(app: RunningApp) -> None:
    names = pl.read_csv(app.folder / "hospital.csv")["name"].to_list()
    assert not any(name in line for line in app.lines for name in names)
    assert Path(app.folder / ".sfumato").stat().st_mode & 0o077 == 0
