"""The first release: each preset with a limit ends in one, or says before the run what must give."""

import shlex

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.errors import PolicyNotMet, Unmet
from sfumato.recipe import Recipe


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    """3,000 people with an age, a sex, a diagnosis of eight, and a laboratory value that almost nobody shares."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "age": rng.integers(18, 90, 3000),
            "sex": rng.choice(["F", "M"], 3000),
            "diagnosis": rng.choice(list("abcdefgh"), 3000),
        }
    )
    frame.write_csv("clinic.csv")
    income = pl.Series("income", (rng.lognormal(10, 1, 3000)).round(2))
    frame.with_columns(income).write_csv("incomes.csv")
    return tmp_path


@pytest.mark.parametrize("preset", ["research-file", "public-use-file", "ema-0070"])
def test_a_preset_raises_k_until_its_limit_is_met(clinic, preset, capsys):
    assert main(["init", "clinic.csv", "--preset", preset, "--out", "r.yaml"]) == 0
    assert "Rehearsed:" in capsys.readouterr().err
    assert main(["protect", "r.yaml", "--out", "release", "--targets", "1000"]) == 0
    assert (clinic / "release" / "data.csv").exists()


@pytest.mark.parametrize("way", [0, 1, 2])
def test_every_printed_way_out_ends_in_a_release(clinic, way, capsys):
    assert main(["init", "incomes.csv", "--preset", "research-file", "--out", "r.yaml"]) == 0
    told = capsys.readouterr().err
    assert "no k up to" in told
    assert "Review them." in told
    assert "Choose one, then: sfumato protect r.yaml" in told
    ways = [line.strip() for line in told.splitlines() if line.startswith("    sfumato decide")]
    assert len(ways) == 3
    assert main(["protect", "r.yaml", "--out", "release", "--targets", "1000"]) == 1
    again = capsys.readouterr().err
    assert all(line in again for line in ways)
    assert "--unmet" not in again
    assert not (clinic / "release").exists()
    assert main(shlex.split(ways[way])[1:]) == 0
    assert main(["protect", "r.yaml", "--out", "release", "--targets", "1000"]) == 0
    assert (clinic / "release" / "data.csv").exists()


@pytest.mark.parametrize("way", [0, 1])
def test_a_model_that_no_release_can_meet_is_said_before_the_run(clinic, way, capsys):
    """A column of two values has no three well-represented ones, whatever is generalized."""
    frame = pl.read_csv("clinic.csv").drop("diagnosis")
    frame.with_columns(hiv=pl.Series(["yes", "no", "no"] * 1000)).write_csv("two.csv")
    assert main(["init", "two.csv", "--preset", "public-use-file", "--out", "r.yaml"]) == 0
    assert "hiv: {role: sensitive" in (clinic / "r.yaml").read_text()
    told = capsys.readouterr().err
    assert "Rehearsed: No combination of levels meets the models" in told
    ways = [line.strip() for line in told.splitlines() if line.startswith("    sfumato decide")]
    assert [line.split()[3] for line in ways] == ["hiv=drop", "hiv=quasi"]
    assert main(["protect", "r.yaml", "--out", "release", "--targets", "500"]) == 1
    assert main(shlex.split(ways[way])[1:]) == 0
    assert main(["protect", "r.yaml", "--out", "release", "--targets", "500"]) == 0
    assert (clinic / "release" / "data.csv").exists()


@pytest.fixture
def survey(tmp_path, monkeypatch):
    """545 people in 18 groups of 30: one in 30 is found, but the interval of that ends at 5.2%."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    number = np.arange(545)
    pl.DataFrame(
        {
            "sex": np.array(["male", "female"])[number % 2],
            "region": np.array(["North", "South", "Coast"])[number // 2 % 3],
            "educ": np.array(["primary", "secondary", "tertiary"])[number // 6 % 3],
            "income": rng.lognormal(7.5, 0.5, 545).round(0).astype(int),
        }
    ).write_csv("survey.csv")
    return tmp_path


@pytest.mark.parametrize("way", [0, 1, 2])
def test_a_choice_raises_k_where_the_quasi_identifiers_exceed_the_limit_too(survey, way, capsys):
    assert main(["init", "survey.csv", "--preset", "public-use-file", "--out", "r.yaml"]) == 0
    ways = [line.strip() for line in capsys.readouterr().err.splitlines() if line.startswith("    sfumato decide")]
    assert len(ways) == 3
    assert all("--k 40" in line for line in ways)
    assert main(["protect", "r.yaml", "--out", "release", "--targets", "1000"]) == 1
    again = capsys.readouterr().err
    assert all(line in again for line in ways)
    assert main(shlex.split(ways[way])[1:]) == 0
    assert "k-anonymity: k = 40." in capsys.readouterr().out
    assert "  - k-anonymity: {k: 40}" in (survey / "r.yaml").read_text()
    assert main(["protect", "r.yaml", "--out", "release", "--targets", "1000"]) == 0


def test_a_run_that_only_the_quasi_identifiers_exceed_offers_a_larger_k(survey, capsys):
    assert main(["init", "survey.csv", "--preset", "public-use-file", "--out", "r.yaml"]) == 0
    assert main(["decide", "r.yaml", "income=drop", "--by", "Ann"]) == 0
    capsys.readouterr()
    assert main(["protect", "r.yaml", "--out", "release", "--targets", "1000"]) == 1
    told = capsys.readouterr().err
    assert "linkage may be as high as 0.052" in told
    ways = [line.strip() for line in told.splitlines() if line.startswith("    sfumato decide")]
    assert ways == ["sfumato decide r.yaml --k 40 --by YOUR-NAME"]
    with pytest.raises(PolicyNotMet, match="linkage") as refusal:
        _ = sfumato.protect("r.yaml", n_targets=1000).data
    assert "raise k to 40: sfumato.decide(recipe, k=40, by=...)" in refusal.value.fix
    assert main(["decide", "r.yaml", "--k", "40", "--by", "Ann"]) == 0
    assert main(["protect", "r.yaml", "--out", "release", "--targets", "1000"]) == 0


def test_k_is_decided_only_where_the_recipe_has_k_anonymity(clinic, capsys):
    (clinic / "r.yaml").write_text("sfumato: 1\ncolumns: {age: quasi}\nmodels: [{l-diversity: {l: 2}}]\n")
    assert main(["decide", "r.yaml", "--k", "7", "--by", "Ann"]) == 2
    assert "The recipe has no model `k-anonymity`." in capsys.readouterr().err


@pytest.mark.parametrize("way", [0, 1])
def test_a_choice_decides_the_columns_that_nobody_has_decided_too(clinic, way, capsys):
    """`init` offers one command, not one for the undecided columns and one for the limit."""
    frame = pl.read_csv("incomes.csv")
    frame.with_columns(xq7=pl.Series([1, 2, 3] * 1000)).write_csv("odd.csv")
    assert main(["init", "odd.csv", "--preset", "research-file", "--out", "r.yaml"]) == 0
    told = capsys.readouterr().err
    assert "1 column is undecided: xq7" in told
    assert "Each choice also masks the undecided columns" in told
    ways = [line.strip() for line in told.splitlines() if line.startswith("    sfumato decide")]
    assert "YOUR-NAME\n  sfumato decide" not in told
    assert all("--rest quasi" in line for line in ways)
    assert main(shlex.split(ways[way])[1:]) == 0
    assert main(["protect", "r.yaml", "--out", "release", "--targets", "500"]) == 0


def test_a_run_that_meets_no_model_offers_the_choices_again(clinic, capsys):
    frame = pl.read_csv("clinic.csv").drop("diagnosis")
    frame.with_columns(hiv=pl.Series(["yes", "no", "no"] * 1000)).write_csv("two.csv")
    assert main(["init", "two.csv", "--preset", "public-use-file", "--out", "r.yaml"]) == 0
    capsys.readouterr()
    assert main(["protect", "r.yaml", "--out", "release", "--targets", "500"]) == 1
    told = capsys.readouterr().err
    assert "`hiv`: l-diversity wants >= 3" in told
    assert "k-anonymity wants" not in told, "only what fails is named"
    ways = [line.strip() for line in told.splitlines() if line.startswith("    sfumato decide")]
    assert [line.split()[3] for line in ways] == ["hiv=drop", "hiv=quasi"]
    with pytest.raises(Unmet) as refusal:
        sfumato.protect("r.yaml", n_targets=100)
    assert "Choose one" in refusal.value.fix
    assert "sfumato.decide(recipe, {'hiv': 'drop'}, by=...)" in refusal.value.fix
    assert refusal.value.to_dict()["error"]["ways"][0] == {
        "does": "drop hiv", "roles": {"hiv": "drop"}, "unit": None, "accepts": False, "k": None,
    }  # fmt: skip


@pytest.mark.parametrize("way", [0, 1])
def test_a_repeated_identifier_is_asked_about_before_the_run_and_after(clinic, way, capsys):
    """A street of several people: nobody has said whether its rows are one person."""
    frame = pl.read_csv("clinic.csv")
    street = pl.Series([f"Mill Street {n % 400}" for n in range(3000)])
    frame.with_columns(street=street).write_csv("streets.csv")
    assert main(["init", "streets.csv", "--k", "5", "--no-compare", "--out", "r.yaml"]) == 0
    told = capsys.readouterr().err
    assert "Several rows have the same `street`. Say whose they are, then: sfumato protect r.yaml" in told
    assert "Review them, then" not in told
    ways = [line.strip() for line in told.splitlines() if line.startswith("    sfumato decide")]
    assert [line.split()[3:5] for line in ways] == [["--unit", "row"], ["--unit", "street"]]
    assert main(["protect", "r.yaml", "--out", "release", "--targets", "200"]) == 1
    again = capsys.readouterr().err
    assert all(line in again for line in ways)
    assert main(shlex.split(ways[way])[1:]) == 0
    assert Recipe.load("r.yaml").schema.declared_unit == ["row", "street"][way]
    if way == 0:
        assert main(["protect", "r.yaml", "--out", "release", "--targets", "200"]) == 0
    assert main(["decide", "r.yaml", "--unit", "stret", "--by", "Ann"]) == 2
    assert "Did you mean `street`" in capsys.readouterr().err


def test_whose_rows_they_are_is_asked_only_of_identifiers_that_repeat(clinic, capsys):
    frame = pl.read_csv("clinic.csv").with_columns(street=pl.Series([f"Mill Street {n}" for n in range(3000)]))
    frame.write_csv("streets.csv")
    assert main(["init", "streets.csv", "--k", "5", "--no-compare", "--out", "r.yaml"]) == 0
    assert "Review them, then: sfumato protect r.yaml" in capsys.readouterr().err
    assert main(["init", "streets.csv", "--k", "5", "--no-compare", "--unit", "row", "--out", "s.yaml"]) == 0
    assert "Several rows" not in capsys.readouterr().err


def test_without_k_nothing_says_that_protect_comes_next(clinic, capsys):
    assert main(["init", "clinic.csv", "--out", "r.yaml"]) == 0
    told = capsys.readouterr().err
    assert "`k` has no value yet" in told
    assert "then: sfumato protect" not in told


def test_a_combination_is_printed_once_and_persons_with_several_rows_are_named(clinic, capsys):
    """Age and sex are all quasi-identifiers, and those of registers too."""
    frame = pl.read_csv("clinic.csv")
    pl.concat([frame.with_row_index("patient_id", 100_000)] * 2).write_csv("visits.csv")
    assert main(["init", "visits.csv", "--k", "5", "--no-compare", "--details", "--out", "v.yaml"]) == 0
    shown = capsys.readouterr().out
    assert "6,000 rows; several of one person, whom `patient_id` names" in " ".join(shown.split())
    assert shown.count("columns of external registers") == 1
    assert "all proposed quasi-identifiers" not in shown
    assert "all proposed quasi-identifiers" not in (clinic / "v.yaml").read_text()
