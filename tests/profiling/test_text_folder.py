"""A folder of text files in, a folder of text files out; and what `sfumato init` says about texts and logs."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import sfumato
from sfumato.data import preview, read
from sfumato.demos.corpora import search_log, synthetic_notes
from sfumato.errors import BadParameter, FileMissing, NotThatFormat, ReleaseChanged
from sfumato.profiling import propose, to_yaml
from sfumato.recipe import Recipe
from sfumato.release.folder import load_release

RECIPE = """
sfumato: 1
data: {data}
unit: file
columns:
  file: {{role: identifier}}
  text: {{role: sensitive}}
  clerk: {{role: identifier}}
steps:
  - pseudonymize: {{columns: [file], key: pseudonyms.key}}
  - deidentify-text: {{columns: [text], days: 30, signed_by: Privacy office}}
attacks:
  - rare-terms: {{item: text}}
measures:
  - text-recall: {{column: text}}
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "ward").mkdir(parents=True)
    for number, note in enumerate(synthetic_notes(30, seed=5)):
        place = folder / "ward" / f"{note.known[0][1]} {number}.md" if number % 2 else folder / f"{number}.txt"
        place.write_text(f"{note.text}\nSigned Quorlwen", encoding="utf-8")
    (folder / ".hidden.txt").write_text("not part of it", encoding="utf-8")
    files = sorted(one.relative_to(folder).as_posix() for one in folder.rglob("*.[mt][dx]*") if one.name[0] != ".")
    pl.DataFrame({"file": files, "clerk": ["Ada Quorlwen"] * 30}).write_csv(tmp_path / "people.csv")
    return folder


def test_a_folder_is_a_table_of_files(notes: Path) -> None:
    table = read(f"{notes}?people=people.csv")
    assert table.columns == ("file", "text", "clerk")
    assert table.rows == preview(notes, most=1000).rows == 30
    assert not any("hidden" in name for name in table.frame["file"])


def test_folders_that_are_no_texts_are_refused(notes: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileMissing, match="without text files"):
        read(tmp_path / "empty")
    with pytest.raises(BadParameter, match="no option `sheet`"):
        read(f"{notes}?sheet=1")
    people = pl.read_csv(tmp_path / "people.csv")
    for table, words in ((people.head(28), "no row for 2 files"), (pl.concat([people, people]), "several rows")):
        table.write_csv(tmp_path / "people.csv")
        with pytest.raises(BadParameter, match=words):
            read(f"{notes}?people=people.csv")
    (notes / "scan.txt").write_bytes(b"\x00\x01\x02" * 50)
    with pytest.raises(NotThatFormat, match="not text"):
        read(notes)


def test_files_that_are_not_utf_8_are_refused_by_their_position(notes: Path) -> None:
    (notes / "Zoë Muñoz.txt").write_bytes("Zoë Muñoz was here.".encode("cp1252"))
    with pytest.raises(NotThatFormat, match=r"File 16 of 31 of the folder.*not UTF-8 \(byte 3\)") as refused:
        read(notes)
    assert "Mu" not in str(refused.value)
    (notes / "Zoë Muñoz.txt").write_bytes("Zoë was here.".encode("utf-8-sig"))
    assert "Zoë was here." in read(notes).frame["text"].to_list()


@pytest.mark.parametrize("kind", ["file", "folder", "dangling"])
def test_symbolic_links_are_refused(notes: Path, tmp_path: Path, kind: str) -> None:
    outside = tmp_path / "Quentin Private"
    outside.mkdir()
    (outside / "diary.txt").write_text("not part of the data", encoding="utf-8")
    target = {"file": outside / "diary.txt", "folder": outside, "dangling": outside / "gone"}[kind]
    (notes / "Quentin.txt").symlink_to(target)
    with pytest.raises(BadParameter, match="contains 1 symbolic link") as refused:
        read(notes)
    assert "Quentin" not in str(refused.value)


def test_a_folder_goes_out_as_a_folder(notes: Path, tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE.format(data=f"{{file: {notes.name}, people: people.csv}}"), encoding="utf-8")
    done = sfumato.protect(Recipe.load(path), seed=1)
    done.save(tmp_path / "release")
    texts = sorted((tmp_path / "release" / "texts").iterdir())
    assert [one.name for one in texts] == [f"{number:04d}.txt" for number in range(1, 31)]
    released = load_release(tmp_path / "release")
    assert [one.read_text(encoding="utf-8") for one in texts] == released.table.frame["text"].to_list()
    assert not any("Quorlwen" in one.read_text(encoding="utf-8") for one in texts)
    assert done.evaluation.measures[0].columns == {"clerk": 1.0}
    listed = json.loads((tmp_path / "release" / "release.json").read_text(encoding="utf-8"))["files"]
    assert {f"texts/{one.name}" for one in texts} < set(listed)
    texts[3].write_text("changed", encoding="utf-8")
    with pytest.raises(ReleaseChanged, match=r"0004\.txt"):
        load_release(tmp_path / "release")


def test_proposals_name_the_steps_for_texts_and_logs(notes: Path) -> None:
    text = to_yaml(propose(read(notes)), "notes")
    assert "#  - deidentify-text: {columns: [text], days: 180}" in text
    assert Recipe.parse(text).schema.columns["text"].role.value == "identifier"
    log = to_yaml(propose(read(search_log(200, 4000, seed=1).events)), "log.csv")
    assert "unit: user" in log
    assert "#  - suppress-items: {item: query, k: , m: 2}" in log
    assert "deidentify-text" not in log


def test_the_app_refuses_a_folder_in_words(notes: Path) -> None:
    pytest.importorskip("fastapi")
    from sfumato.app.project import open_project

    with pytest.raises(FileMissing, match="is a folder; the app opens files and recipes"):
        open_project(str(notes))
