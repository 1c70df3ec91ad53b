"""The right command with the wrong kind of file says which kind it is and which command goes with it."""

from pathlib import Path

import pytest

from sfumato.cli import main

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
    Path("misspelt.yaml").write_text(METADATA.replace("ledger", "leger"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["protect", "people.csv"], "`sfumato init people.csv` writes one"),
        (["protect", "umlaut.csv"], "`sfumato init umlaut.csv` writes one"),
        (["study", "people.csv"], "a data file, not a study"),
        (["protect", "metadata.yaml"], "The document is for `sfumato query`"),
        (["query", "recipe.yaml", "SELECT COUNT(*) FROM people"], "whose privacy is kept"),
        (["query", "misspelt.yaml", "SELECT COUNT(*) FROM people"], "Did you mean `ledger`"),
    ],
)
def test_the_wrong_kind_of_file(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err
