"""History of a recipe in the app: undo, redo and branches lose nothing and survive a restart."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sfumato.app.history import History
from sfumato.app.project import RecipeProject, open_project, text_version
from sfumato.errors import FileMissing, SfumatoError

RECIPE = "sfumato: 1\ndata: people.csv\ncolumns:\n  age: {role: quasi}\n"


def test_undo_and_redo_walk_the_whole_way_after_a_restart(tmp_path: Path) -> None:
    history = History(tmp_path / "history.json")
    for number in range(5):
        history.add(f"v: {number}", f"edit {number}")
    history.undo()
    history = History(tmp_path / "history.json")
    texts = [history.undo().text for _ in range(3)]
    assert texts == ["v: 2", "v: 1", "v: 0"]
    with pytest.raises(SfumatoError, match="nothing to undo"):
        history.undo()
    assert [history.redo().text for _ in range(4)] == ["v: 1", "v: 2", "v: 3", "v: 4"]
    with pytest.raises(SfumatoError, match="nothing to redo"):
        history.redo()


def test_an_edit_after_an_undo_keeps_what_was_undone(tmp_path: Path) -> None:
    history = History(tmp_path / "history.json")
    for text in ("a", "b", "c"):
        history.add(text, text)
    history.undo()
    history.add("d", "d")
    assert history.redo_target() is None
    assert {name: version.text for name, version in history.branches().items()} == {"main": "d", "main (2)": "c"}
    assert history.switch("main (2)").text == "c"
    assert history.undo().text == "b"


def test_branches_are_named_once_and_compared(tmp_path: Path) -> None:
    history = History(tmp_path / "history.json")
    with pytest.raises(SfumatoError, match="no recipe"):
        history.start_branch("x")
    history.add("a", "first")
    history.start_branch("strict")
    history.add("b", "second")
    assert (history.text_of("main"), history.text_of("strict")) == ("a", "b")
    for name in ("strict", " ", "a\nb"):
        with pytest.raises(SfumatoError):
            history.start_branch(name)
    with pytest.raises(SfumatoError, match="no branch"):
        history.switch("lax")


def test_a_project_notices_edits_by_other_programs_and_refuses_stale_ones(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n1\n")
    (tmp_path / "sfumato.yaml").write_text(RECIPE)
    project = open_project(str(tmp_path / "people.csv"))
    seen = text_version(RECIPE)
    (tmp_path / "sfumato.yaml").write_text(RECIPE + "seed: 1\n")
    with pytest.raises(SfumatoError, match="meanwhile"):
        project.edit("x", lambda text: text + "title: x\n", version=seen)
    assert (tmp_path / "sfumato.yaml").read_text() == RECIPE + "seed: 1\n"
    assert [version.change for version in project.history.recent()] == ["edited outside the app", "opened"]
    assert project.move(lambda history: history.undo()) == RECIPE
    assert stat.S_IMODE((tmp_path / ".sfumato").stat().st_mode) == 0o700
    assert stat.S_IMODE((project.folder / "history.json").stat().st_mode) == 0o600


def test_each_data_file_gets_a_recipe_of_its_own(tmp_path: Path) -> None:
    for name in ("people.csv", "others.csv"):
        (tmp_path / name).write_text("age\n1\n")
    (tmp_path / "sfumato.yaml").write_text(RECIPE)
    assert open_project(str(tmp_path / "people.csv")).recipe_path.name == "sfumato.yaml"
    assert open_project(str(tmp_path / "others.csv")).recipe_path.name == "others.sfumato.yaml"
    assert isinstance(open_project(str(tmp_path / "sfumato.yaml")), RecipeProject)
    (tmp_path / "other.yaml").write_text("a: 1\n")
    for source in ("missing.csv", "other.yaml"):
        with pytest.raises(SfumatoError):
            open_project(str(tmp_path / source))
    with pytest.raises(FileMissing):
        open_project(str(tmp_path))
