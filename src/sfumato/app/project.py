"""A project of the app: a recipe file, its history, and a hidden folder for results."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfumato.app.history import History, Version
from sfumato.data import replacing
from sfumato.data.format import format_for
from sfumato.data.url import file_and_options, is_url
from sfumato.data.yaml_documents import parse_yaml, read_text_file
from sfumato.errors import BadParameter, FileMissing, InvalidRecipe, Problem, SfumatoError, UnknownFormat
from sfumato.recipe import Recipe

FOLDER = ".sfumato"
"""The hidden folder beside the recipe: history, profile and the last run. Private, like the data."""


def changed_meanwhile(what: str) -> BadParameter:
    """The refusal of an edit of a text that another tab or program has changed; ``facts["stale"]`` marks it."""
    return BadParameter(
        f"The {what} was changed meanwhile, in another tab or by another program.",
        fix=f"Nothing was overwritten. Make your change again on the current {what}.",
        stale=True,
    )


def text_version(text: str) -> str:
    """A short name of a text, by which a page says what it edited."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class RecipeProject:
    """One recipe file and what belongs to it. Every edit goes through :meth:`edit`."""

    def __init__(self, recipe: Path, data: str) -> None:
        self.recipe_path = recipe
        self._data = data
        self.folder = recipe.parent / FOLDER / re.sub(r"[^A-Za-z0-9_.-]", "_", recipe.stem)
        self.folder.mkdir(parents=True, exist_ok=True)
        os.chmod(self.folder.parent, 0o700)
        self.history = History(self.folder / "history.json")
        self._lock = threading.RLock()
        self.text()

    @property
    def name(self) -> str:
        """Name of the data file, for titles."""
        return Path(file_and_options(self.source()[0])[0]).name if not is_url(self._data) else self.recipe_path.stem

    def text(self) -> str | None:
        """The recipe as it is on disk; None before the first profile. An edit by another program is recorded."""
        with self._lock:
            if not self.recipe_path.is_file():
                return None
            text = read_text_file(self.recipe_path, kind="recipe", fix="Open the data file again.")
            current = self.history.current
            if current is None or current.text != text:
                self.history.add(text, "edited outside the app" if current is not None else "opened")
            return text

    def edit(self, change: str, make: Callable[[str], str], *, version: str | None = None) -> str:
        """Apply an edit to the text, write the file and record it. ``version`` is the text that the page edited."""
        with self._lock:
            text = self.text()
            if version is not None and version != text_version(text or ""):
                raise changed_meanwhile("recipe")
            new = make(text or "")
            self._write(new)
            self.history.add(new, change)
            return new

    def move(self, step: Callable[[History], Version]) -> str:
        """Undo, redo or switch branches: the file gets the text of that version."""
        with self._lock:
            self.text()
            version = step(self.history)
            self._write(version.text)
            return version.text

    def _write(self, text: str) -> None:
        mode = stat.S_IMODE(self.recipe_path.stat().st_mode) if self.recipe_path.exists() else None
        with replacing(self.recipe_path, force=True) as temporary:
            temporary.write_text(text, encoding="utf-8")
            if mode is not None:
                os.chmod(temporary, mode)

    def source(self) -> tuple[str, dict[str, Any]]:
        """Location of the data and options of its format: those of the recipe, or the file that was opened."""
        try:
            recipe = self.recipe()
        except SfumatoError:
            recipe = None
        if recipe is not None and recipe.source is not None:
            return recipe.source.location, dict(recipe.source.options)
        path, options = file_and_options(self._data)
        return path, dict(options)

    def recipe(self) -> Recipe | None:
        """The validated recipe, or None if there is no text yet; problems are raised with their lines."""
        text = self.text()
        return Recipe.parse(text, base=self.recipe_path.parent) if text is not None else None

    def problems(self) -> list[Problem]:
        """What is wrong with the recipe, with line numbers."""
        try:
            self.recipe()
        except InvalidRecipe as refusal:
            return list(refusal.problems)
        except SfumatoError as refusal:
            return [Problem(where="", line=None, message=str(refusal))]
        return []

    def document(self) -> dict[str, Any]:
        """The recipe as plain data, valid or not; empty if it cannot be parsed."""
        try:
            value = parse_yaml(self.text() or "").value
        except SfumatoError:
            return {}
        return value if isinstance(value, dict) else {}

    def store(self, name: str, document: Any) -> None:
        """Keep a result in the hidden folder, for the next start."""
        with replacing(self.folder / name, force=True) as temporary:
            temporary.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
            temporary.chmod(0o600)

    def stored(self, name: str) -> Any:
        """A result that was kept; None if there is none or it cannot be read."""
        try:
            return json.loads((self.folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None


def open_project(source: str) -> RecipeProject:
    """Open a data file, a database URL or a recipe. A data file gets ``sfumato.yaml`` in its folder as its recipe.

    If that name is taken by the recipe of another file, the recipe is called ``NAME.sfumato.yaml``; if the folder of
    the data cannot be written, it lies in the current folder.
    """
    if is_url(source):
        return RecipeProject(Path.cwd() / "sfumato.yaml", source)
    path = Path(file_and_options(source)[0]).expanduser().absolute()
    if path.is_dir():
        raise FileMissing(
            f"{source} is a folder; the app opens files and recipes.",
            fix=f"For a folder of texts, run `sfumato init {source}` and open the recipe that it writes.",
        )
    if not path.is_file():
        raise FileMissing(f"There is no file {source}.", fix="Check the name, or choose the file in the list.")
    if path.suffix.lower() in (".yaml", ".yml"):
        project = RecipeProject(path, "")
        if not {"columns", "tables", "dataset"} & set(project.document()):
            raise UnknownFormat(f"{path.name} is not a recipe.", fix="Open a data file, or a recipe with `columns`.")
        return project
    format_for(path)  # an unknown format is refused
    folder = path.parent if os.access(path.parent, os.W_OK) else Path.cwd()
    options = source[len(str(Path(file_and_options(source)[0]))) :] if "?" in source else ""
    return RecipeProject(_recipe_for(path, folder), f"{path}{options}")


def _recipe_for(data: Path, folder: Path) -> Path:
    usual = folder / "sfumato.yaml"
    if not usual.exists() or _names(usual, data):
        return usual
    return folder / f"{data.stem}.sfumato.yaml"


def _names(recipe: Path, data: Path) -> bool:
    """Whether a recipe is about this data file."""
    try:
        source = Recipe.load(recipe).source
    except SfumatoError:
        named = _document(recipe).get("data")
        return isinstance(named, str) and Path(recipe.parent, named).resolve() == data.resolve()
    return source is not None and Path(source.location).resolve() == data.resolve()


def _document(recipe: Path) -> dict[str, object]:
    try:
        value = parse_yaml(recipe.read_text(encoding="utf-8")).value
    except (SfumatoError, OSError, UnicodeDecodeError):
        return {}
    return value if isinstance(value, dict) else {}
