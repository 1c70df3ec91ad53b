"""The right command with the wrong kind of file says which kind it is and which command goes with it."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sfumato.cli import cli, main

RECIPE = "sfumato: 1\ndata: people.csv\ncolumns: {age: quasi}\nmodels: [k-anonymity: 2]\nsteps: [generalize]\n"
METADATA = (
    "sfumato: 1\ndataset: d\nledger: book.db\nperson: row\ntables:\n  people:\n    data: people.csv\n"
    "    columns: {age: {kind: integer}}\n"
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("age\n1\n2\n", encoding="utf-8")
    Path("umlaut.csv").write_bytes("größe\n1\n2\n".encode("cp1252"))
    Path("recipe.yaml").write_text(RECIPE)
    Path("metadata.yaml").write_text(METADATA)
    Path("survey.yaml").write_text("survey: s\nepsilon: 1\npeople: 9\nquestions: {a: {domain: {values: [x, y]}}}\n")
    percent = "steps: [{generalize: {suppression: 2.5%}}]\nlimits: {risk: 5%}\n"
    Path("percent.yaml").write_text(RECIPE.replace("steps: [generalize]\n", percent))
    Path("misspelt.yaml").write_text(METADATA.replace("ledger", "leger"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["protect", "people.csv"], "`sfumato init people.csv` writes one"),
        (["protect", "umlaut.csv"], "`sfumato init umlaut.csv` writes one"),
        (["study", "people.csv"], "a data file, not a study"),
        (["protect", "metadata.yaml"], "The document is for `sfumato query`"),
        (["query", "recipe.yaml", "SELECT COUNT(*) FROM people"], "whose privacy is kept"),
        (["protect", "survey.yaml"], "line 4: questions: the file is a survey. `sfumato collect design` takes it."),
        (["decide", "survey.yaml", "a=quasi", "--by", "me"], "`sfumato collect design` takes it."),
        (["study", "survey.yaml"], "`sfumato collect design` takes it."),
        (["check", "recipe.yaml"], "recipe.yaml is a recipe and no release. `sfumato protect recipe.yaml` makes"),
        (["attack", "recipe.yaml", "--original", "people.csv"], "recipe.yaml is a recipe and no release."),
        (["measure", "recipe.yaml", "--original", "people.csv"], "recipe.yaml is a recipe and no release."),
        (["report", "recipe.yaml"], "recipe.yaml is a recipe and no release."),
        (["collect", "design", "recipe.yaml"], "the file is a recipe. `sfumato protect` takes it."),
        (["party", "serve", "recipe.yaml"], "the file is a recipe. `sfumato protect` takes it."),
        (["protect", "percent.yaml"], "limits.risk: must be a share between 0 and 1: write 0.05"),
        (["protect", "percent.yaml"], "not '2.5%': write 0.025"),
        (["query", "misspelt.yaml", "SELECT COUNT(*) FROM people"], "Did you mean `ledger`"),
    ],
)
def test_the_wrong_kind_of_file(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_a_wrong_kind_is_one_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", "design", "recipe.yaml"]) == 2
    assert "1 problem" in capsys.readouterr().err
    Path("survey.yaml").write_text("survey: s\nepsilon: 1\nquestions: {a: {domain: {values: [x, y]}}}\ncolumns: {}\n")
    assert main(["collect", "design", "survey.yaml"]) == 2
    said = capsys.readouterr().err
    assert "people: is required" in said
    assert "columns: unknown field" in said


def groups(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(command, click.Group):
        yield words
        context = click.Context(command)
        for name in command.list_commands(context):
            if (inner := command.get_command(context, name)) is not None:
                yield from groups(inner, (*words, name))


def test_help_cuts_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [words for words in groups(cli) if words]
    assert ("party",) in asked
    assert ("collect", "rappor") in asked
    for words in asked:
        assert main([*words, "--help"]) == 0
        commands = capsys.readouterr().out.partition("Commands:")[2]
        assert not [line for line in commands.splitlines() if line.endswith("...")], words


def test_a_percentage_for_a_budget_is_answered_with_the_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", "none.yaml", "SELECT COUNT(*) FROM t", "--epsilon", "5%"]) == 2
    assert "is not a number: write 0.05." in capsys.readouterr().err
