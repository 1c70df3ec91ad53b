"""Every command and every piece of Python in the docs runs as it stands, page by page, in a folder with the files that
the page speaks of; recipes in them are recipes.

A ``console`` block holds commands behind ``$`` and, where it helps, what they print. A command whose printed answer
begins with an error's code must end with an error. Demos have tests of their own: here they must only exist. Pages of
*The field in examples* run in an empty folder, block by block, and must print what they show.
"""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from ruamel.yaml import YAML

from sfumato.cli import main
from sfumato.demos.corpora.synthetic_friends import synthetic_friends
from sfumato.recipe import Recipe
from sfumato.registry import registry
from sfumato.rng import Rng
from sfumato.studies import StudyPlan

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    page.relative_to(DOCS).with_suffix("").as_posix(): page.read_text(encoding="utf-8")
    for page in sorted(DOCS.rglob("*.md"))
    if page.relative_to(DOCS).parts[0] != "reference"
}
ELSEWHERE = {
    "app": "its commands open a browser; tests/browser drives it",
    "add-a-part": "followed to the letter by test_add_a_part.py",
    "query-utility": "needs the other libraries, and a quarter of an hour",
    "server": "its commands need a running server; test_server_process.py and the demo start one",
    "server-operations": "its commands need a running server; test_server_backup.py and others start one",
    "tutorial": "run by test_tutorial.py, with the files that its own commands write",
}
DEMOS = registry("demo").names()
FIELD = [page for page in PAGES if page.startswith("field/")]
RUNNING = [
    page
    for page, text in PAGES.items()
    if page not in (*ELSEWHERE, *FIELD) and re.search("```(console|python)\n", text)
]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES[page], flags=re.DOTALL | re.MULTILINE)


def commands(page: str) -> list[tuple[str, bool]]:
    """Commands of a page, and whether each is said to be refused."""
    found: list[tuple[str, bool]] = []
    for text in blocks(page, "console"):
        lines = text.splitlines()
        for number, line in enumerate(lines):
            if line.startswith("$ "):
                below = lines[number + 1] if number + 1 < len(lines) else ""
                found.append((line[2:], below.startswith("SFU-")))
    return found


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the docs speak of."""
    import xlsxwriter

    folder = tmp_path_factory.mktemp("docs")
    draw = np.random.default_rng(3)
    size = 400
    people = pl.DataFrame(
        {
            "id": range(size),
            "name": [f"Ann Nr {i}" for i in range(size)],
            "zip": [f"0{code}" for code in draw.integers(2138, 2142, size)],
            "age": draw.integers(20, 70, size),
            "birth": [f"{year}-05-17" for year in draw.integers(1950, 2000, size)],
            "diagnosis": draw.choice(["flu", "asthma", "none", "cancer"], size),
        }
    )
    people.write_csv(folder / "people.csv")
    people.write_parquet(folder / "people.parquet")
    (folder / "export.csv").write_text(people.write_csv(separator=";"), encoding="cp850")
    people.rename({"birth": "birth_date"}).write_csv(folder / "hospital.csv")
    people.select("name", "zip", "age").write_csv(folder / "voters.csv")
    people.sample(fraction=1.0, shuffle=True, seed=2).drop("name").write_csv(folder / "theirs.csv")
    with xlsxwriter.Workbook(str(folder / "people.xlsx")) as book:
        sheet = book.add_worksheet("2024")
        sheet.write(0, 0, "Export")
        for number, row in enumerate([people.columns, *people.rows()]):
            sheet.write_row(number + 3, 0, list(map(str, row)))
    recipe = """
sfumato: 1
data: people.csv
columns:
  id: identifier
  name: identifier
  zip: {role: quasi, hierarchy: {mask: right}}
  age: {role: quasi, hierarchy: {intervals: [5, 10, 20]}}
  birth: {role: plain, decided_by: A. Steward, reason: synthetic}
  diagnosis: sensitive
models: [k-anonymity: 5]
steps: [{generalize: {suppression: 0.2}}]
"""
    for name in ("sfumato.yaml", "roles.yaml"):
        (folder / name).write_text(recipe)
    patients = "zip,age,disease,bill\n1301,21,Flu,10.5\n1301,22,Cold,20\n1301,23,Flu,3\n1302,24,Cold,8\n"
    (folder / "patients.csv").write_text(patients)
    (folder / "log.sql").write_text("SELECT disease FROM patients WHERE zip = 1301;\n")
    persons = draw.integers(0, 3000, 9000)
    visits = {"person": persons, "ward": draw.choice(["east", "west"], 9000), "age": persons % 90}
    pl.DataFrame({**visits, "bill": draw.gamma(2, 100, 9000)}).write_parquet(folder / "visits.parquet")
    stays = {"patient": draw.integers(0, size, 900), "ward": draw.choice(["east", "west"], 900)}
    pl.DataFrame(stays).write_csv(folder / "visits.csv")
    (folder / "wards.csv").write_text("ward,side\neast,sunny\nwest,shady\n")
    workers = draw.integers(1, 300, 90)
    firms = {"employees": workers, "turnover": workers * draw.uniform(50, 90, 90), "wages": workers * 30.5}
    pl.DataFrame({**firms, "profit": draw.normal(5, 3, 90)}).write_csv(folder / "companies.csv")
    (folder / "spill").mkdir()
    assert main(["protect", str(folder / "sfumato.yaml"), "--out", str(folder / "release"), "--targets", "50"]) == 0
    for name in ("release-2024", "release-2025", "release-2026", "demo/hospital/release"):
        shutil.copytree(folder / "release", folder / name)
        shutil.copytree(folder / "release-private", folder / f"{name}-private")
    return folder


def prepare(page: str, folder: Path) -> None:
    """Files that a page itself shows are taken from it."""
    shown = [text for text in blocks(page, "yaml") if text.startswith("sfumato: 1")]
    for text in blocks(page, "yaml"):
        if named := re.match(r"# ([\w-]+\.yaml)\n", text):
            (folder / named[1]).write_text(text)
    match page:
        case "query":
            (folder / "hospital.yaml").write_text(shown[0])
        case "query-policies":
            ward = next(text for text in blocks("audit", "yaml") if text.startswith("sfumato: 1"))
            rounding = "answering: {policy: {rounding: {base: 5, smallest: 2}}}"
            (folder / "ward.yaml").write_text(re.sub("answering:.*", rounding, ward))
        case "how-to/analyst" | "concepts/budget" | "proof":
            (folder / "hospital.yaml").write_text(
                next(t for t in blocks("query", "yaml") if t.startswith("sfumato: 1"))
            )
            assert main(["ledger", "cap", str(folder / "ledger.db"), "--dataset", "hospital", "--epsilon", "9"]) == 0
        case "audit":
            (folder / "ward.yaml").write_text(shown[0])
        case "reconstruction":
            ward = next(text for text in blocks("audit", "yaml") if text.startswith("sfumato: 1"))
            (folder / "ward.yaml").write_text(ward)
            private = "answering: {policy: differential-privacy}"
            (folder / "private.yaml").write_text(re.sub("answering:.*", private, ward))
        case "collecting":
            (folder / "survey.yaml").write_text(next(t for t in blocks(page, "yaml") if t.startswith("# survey.yaml")))
            draw, size = np.random.default_rng(1), 2000
            answers = {"smoker": draw.choice(["never", "former", "daily"], size), "cigarettes": draw.poisson(6, size)}
            pl.DataFrame({**answers, "income": draw.uniform(20, 90, size) * 1000}).write_csv(folder / "answers.csv")
        case "parties":
            draw, names = np.random.default_rng(1), [f"{a} {b}" for a in ("ann", "bo", "cy") for b in ("hall", "wood")]
            for name in ("ours", "theirs", "public_names"):
                one = {"id": range(40), "name": draw.choice(names, 40), "birth_year": draw.integers(1950, 1953, 40)}
                pl.DataFrame(one).write_csv(folder / f"{name}.csv")
            (folder / "shared.key").write_text("0123456789abcdef" * 4)
            where = np.argwhere(draw.random((60, 4)) < 0.5)
            sites = [f"h{site}" for site in where[:, 1]]
            pl.DataFrame({"name": where[:, 0], "hospital": sites}).write_csv(folder / "patients.csv")
            pl.DataFrame({"sample": 60 - where[:, 0], "hospital": sites}).write_csv(folder / "samples.csv")
        case "learning":
            (folder / "learn.yaml").write_text(next(t for t in blocks(page, "yaml") if t.startswith("# learn.yaml")))
        case "model-attacks":
            from sklearn.tree import DecisionTreeClassifier
            from skops.io import dump

            draw = np.random.default_rng(2)
            for name in ("train", "others"):
                ill = {
                    "age": draw.integers(20, 80, 120),
                    "weight": draw.normal(70, 9, 120),
                    "ill": draw.integers(0, 2, 120),
                }
                pl.DataFrame(ill).write_csv(folder / f"{name}.csv")
            train = pl.read_csv(folder / "train.csv")
            dump(DecisionTreeClassifier().fit(train.select("age", "weight"), train["ill"]), folder / "model.skops")
        case "graphs":
            graph = synthetic_friends(200, Rng(1))
            names, ends = graph.nodes["node"], graph.edges()
            graph.nodes.select(pl.col("node").alias("member"), "age", "vote").write_csv(folder / "members.csv")
            pair = {"a": names.gather(ends[:, 0]), "b": names.gather(ends[:, 1])}
            pl.DataFrame(pair).write_csv(folder / "friends.csv")
        case "how-to/researcher" | "utility":  # the last value of each grid, under one seed
            quick = re.sub(r"(try: \[)[^]]*, ([^]]*\])", r"\1\2", shown[0])
            (folder / "study.yaml").write_text(re.sub(r"seeds: \d", "seeds: 1", quick))
        case "init":
            (folder / "sfumato.yaml").unlink()
            undecided = "  waist: {role: undecided, kind: integer}\n  weight_kg: {role: undecided, kind: integer}\n"
            text = (folder / "roles.yaml").read_text().replace("data: people.csv", "data: measurements.csv")
            (folder / "measurements.yaml").write_text(text.replace("columns:\n", f"columns:\n{undecided}"))
            more = [((pl.col("age") * 7) % 31).alias("waist"), ((pl.col("age") * 3) % 17).alias("weight_kg")]
            pl.read_csv(folder / "people.csv").with_columns(more).write_csv(folder / "measurements.csv")
        case "data":  # its Python writes the files anew
            for name in ("sfumato.yaml", "people.csv", "people.parquet"):
                (folder / name).unlink()


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNING)
def test_a_page_runs(
    page: str, stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "here"
    shutil.copytree(stage, folder)
    prepare(page, folder)
    monkeypatch.chdir(folder)
    for line, refused in commands(page):
        words = shlex.split(line, comments=True)
        assert words[0] == "sfumato", line
        if words[1] == "demo":
            assert words[2:] in ([], *([name] for name in DEMOS)), line
            continue
        for place, word in enumerate(words):
            if word.startswith("$(sfumato "):  # what a command prints is an argument of another
                assert main(shlex.split(word[2:-1])[1:]) == 0, line
                words[place] = capsys.readouterr().out.strip()
        code = main(words[1:])
        said = capsys.readouterr().err
        # Synthetic people may be found more often than the example allows; trails are unique before suppression.
        met = "--limit" not in words and words[1:] != ["attack", "trails.yaml"]
        assert (code != 0) == refused if met else code in (0, 1), f"{line}\n{said}"
    script = "\n".join(blocks(page, "python"))
    if script:
        (folder / "page.py").write_text(script, encoding="utf-8")
        done = subprocess.run([sys.executable, "page.py"], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]


def one_line(text: str) -> str:
    return " ".join(re.sub("[─━│┃]+", " ", text).split())


def runs(text: str) -> list[tuple[str, list[str]]]:
    """Commands of a ``console`` block, each with the lines shown below it; ``...`` stands for lines left out."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif one_line(line) not in ("", "..."):
            found[-1][1].append(one_line(line))
    return found


@pytest.mark.parametrize("page", FIELD)
def test_a_page_of_the_field_prints_what_it_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shown lines of a command occur in its output, in this order; Python blocks are doctests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    names: dict[str, object] = {}
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```", PAGES[page], flags=re.DOTALL | re.MULTILINE):
        if language == "yaml":
            named = re.match(r"# ([\w-]+\.yaml)\n", text)
            assert named, f"{page}: name the file in the first line"
            Path(named[1]).write_text(text, encoding="utf-8")
        elif language == "python":
            example = doctest.DocTestParser().get_doctest(text, names, page, page, 0)
            assert example.examples, f"{page}: write Python as `>>>` with its output"
            said: list[str] = []
            doctest.DocTestRunner(optionflags=flags).run(example, out=said.append, clear_globs=False)
            assert not said, "".join(said)
            names = example.globs
        for line, shown in runs(text) if language == "console" else ():
            words = shlex.split(line, comments=True)
            assert words[0] == "sfumato", line
            code = main(words[1:])
            printed = capsys.readouterr()
            rest = one_line(printed.out + printed.err)
            refused = any(part.startswith("SFU-") for part in shown)
            assert code in ((1, 2) if refused else (0, 1)), f"{line}\n{rest}"
            for part in shown:
                # whole words and numbers: a command that prints `answered 240` does not print `answered 24`
                found = re.search(rf"(?<![\w.]){re.escape(part)}(?![\w%]|[.,]\d)", rest)
                assert found, f"{line}\nnot printed: {part}\nprinted: {rest}"
                rest = rest[found.end() :]


def test_every_page_of_the_field_shows_output_and_a_source() -> None:
    for page in FIELD:
        if page != "field/index":
            assert re.search(r"^(\$ |>>> )", PAGES[page], re.MULTILINE), page
            assert re.search(r"doi:|arXiv:|http", PAGES[page]), f"{page}: name the source"
    site = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    assert not [page for page in FIELD if f"{page}.md" not in site]


def test_the_index_of_the_field_leads_to_every_page_and_names_parts_that_exist() -> None:
    index = PAGES["field/index"]
    linked = set(re.findall(r"\]\((\w[\w-]*)\.md[)#]", index))
    assert linked == {page.removeprefix("field/") for page in FIELD} - {"index"}
    assert set(re.findall(r"sfumato demo ([\w-]+)", index)) <= set(DEMOS)
    for line in re.findall(r"^\|.*\|$", index, re.MULTILINE):
        for kind, names in re.findall(r"\b(attack|model|measure|mechanism)s? ((?:\[?`[\w-]+`(?:, | and )?)+)", line):
            kinds = [kind, "graph-attack"] if kind == "attack" else [kind]
            known = {name for one in kinds for name in registry(one).names()}
            assert set(re.findall(r"`([\w-]+)`", names)) <= known, line


def test_every_table_is_used_by_a_page_or_a_demo() -> None:
    from sfumato import datasets

    text = "".join(PAGES[page] for page in FIELD)
    text += "".join(
        path.read_text(encoding="utf-8") for path in (DOCS.parent / "src" / "sfumato").rglob("demos/**/*.py")
    )
    assert not [name for name in datasets.names() if name not in text]


def test_no_command_is_hidden_from_this_test() -> None:
    for page, text in PAGES.items():
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
            if language not in ("console", "python") and page not in ELSEWHERE:
                assert not re.search(r"^(\$ |sfumato |python )", block, re.MULTILINE), f"{page}: write it as `console`"
    assert len(RUNNING) >= 12
    assert sum(len(commands(page)) for page in RUNNING) >= 30


RECIPES = [
    (page, number, text)
    for page in PAGES
    if page not in ("audit", "add-a-part", "tutorial") and not page.startswith(("query", "field/"))
    for number, text in enumerate(blocks(page, "yaml"))
    if not text.startswith("#")
]


@pytest.mark.parametrize(("page", "number", "text"), RECIPES, ids=[f"{page}-{number}" for page, number, _ in RECIPES])
def test_a_recipe_is_a_recipe(page: str, number: int, text: str, stage: Path) -> None:
    """Pieces of recipes are completed to whole ones by what every recipe has."""
    if text.startswith(" "):
        text = "columns:\n" + text
    plain = YAML(typ="safe").load(text)
    if isinstance(plain, list):
        kind = next(kind for kind in ("method", "model") if next(iter(plain[0])) in registry(kind))
        plain = {"steps" if kind == "method" else "models": plain}
    whole = {"sfumato": 1, "columns": {"x": "plain"}, **plain}
    if "study" in whole:
        assert StudyPlan.parse(whole).candidates
        return
    made = Recipe.parse(whole)
    assert made.schema.columns.keys() == whole["columns"].keys()


def test_codes_of_errors_exist() -> None:
    """A page that names the code of an error names one that is raised."""
    reference = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    for page, text in PAGES.items():
        assert set(re.findall(r"SFU-\w+", text)) <= set(re.findall(r"SFU-\d{3}", reference)), page


def slug(heading: str) -> str:
    """The anchor that the website gives a heading, as Python-Markdown makes it."""
    plain = re.sub(r"[`*\[]|\]\([^)]*\)", "", heading)
    ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())


def test_links_lead_to_files_and_headings() -> None:
    broken = []
    for page, text in PAGES.items():
        here = DOCS / f"{page}.md"
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)):
            file, _, anchor = target.partition("#")
            place = (here.parent / file).resolve() if file else here
            if re.match(r"\w+:", target) or (place.exists() and not anchor):
                continue
            headings = re.findall(r"^#+ (.+)$", place.read_text(), re.MULTILINE) if place.exists() else []
            if anchor not in map(slug, headings):
                broken.append(f"{page}: {target}")
    assert not broken
