"""History of a recipe: undo, redo and named branches, stored beside the recipe and kept across restarts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from sfumato.data import replacing
from sfumato.errors import BadParameter
from sfumato.wording import did_you_mean

_MAIN = "main"


@dataclass(frozen=True, kw_only=True)
class Version:
    """One state of the recipe."""

    number: int
    parent: int | None
    text: str
    change: str
    """What was changed, in words."""
    at: float
    """When, in seconds since 1970."""


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A line of versions: where it stands, and the last version that redo leads to."""

    here: int
    tip: int


class History:
    """All versions of one recipe. Nothing is ever lost: an edit after an undo keeps the undone versions as a branch.

    >>> import tempfile
    >>> history = History(Path(tempfile.mkdtemp()) / "history.json")
    >>> history.add("a: 1", "first"); history.add("a: 2", "second")
    >>> history.undo().text, history.redo().text
    ('a: 1', 'a: 2')
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._versions: list[Version] = []
        self._branches: dict[str, Branch] = {}
        self._current = _MAIN
        if path.is_file():
            stored = json.loads(path.read_text(encoding="utf-8"))
            self._versions = [Version(**version) for version in stored["versions"]]
            self._branches = {name: Branch(**branch) for name, branch in stored["branches"].items()}
            self._current = stored["current"]

    @property
    def current(self) -> Version | None:
        """The version that the recipe file should contain; None before the first."""
        return self._versions[self._branches[self._current].here] if self._branches else None

    @property
    def branch(self) -> str:
        """Name of the current branch."""
        return self._current

    def branches(self) -> dict[str, Version]:
        """Branches by name, with the version at which each stands."""
        return {name: self._versions[branch.here] for name, branch in self._branches.items()}

    def add(self, text: str, change: str) -> None:
        """Record an edit. The same text again is not recorded."""
        if self.current is not None and self.current.text == text:
            return
        number = len(self._versions)
        branch = self._branches.get(self._current)
        if branch is not None and branch.here != branch.tip:
            self._branches[self._free_name(self._current)] = Branch(here=branch.tip, tip=branch.tip)
        parent = branch.here if branch is not None else None
        version = Version(number=number, parent=parent, text=text, change=change, at=self._clock())
        self._versions.append(version)
        self._branches[self._current] = Branch(here=number, tip=number)
        self._save()

    def undo(self) -> Version:
        """Step back; refused at the first version."""
        target = self.undo_target()
        if target is None:
            raise BadParameter("There is nothing to undo.")
        return self._move(target)

    def redo(self) -> Version:
        """Step forward again; refused at the last version."""
        target = self.redo_target()
        if target is None:
            raise BadParameter("There is nothing to redo.")
        return self._move(target)

    def undo_target(self) -> Version | None:
        """The version before the current one."""
        here = self.current
        return self._versions[here.parent] if here is not None and here.parent is not None else None

    def redo_target(self) -> Version | None:
        """The next version on the way to the tip of the branch."""
        if not self._branches:
            return None
        branch = self._branches[self._current]
        version = self._versions[branch.tip]
        while version.number != branch.here:
            if version.parent is None:
                return None
            if version.parent == branch.here:
                return version
            version = self._versions[version.parent]
        return None

    def start_branch(self, name: str) -> None:
        """Start a branch at the current version and switch to it."""
        name = name.strip()
        here = self.current
        if not name or len(name) > 60 or not name.isprintable():
            raise BadParameter("The name of a branch has 1 to 60 printable characters.")
        if name in self._branches:
            raise BadParameter(f"There is a branch `{name}` already.", fix="Choose another name.")
        if here is None:
            raise BadParameter("There is no recipe yet.")
        self._branches[name] = Branch(here=here.number, tip=here.number)
        self._current = name
        self._save()

    def switch(self, name: str) -> Version:
        """Switch to another branch and return its version."""
        self._known(name)
        self._current = name
        self._save()
        return self._versions[self._branches[name].here]

    def text_of(self, name: str) -> str:
        """The recipe of a branch."""
        self._known(name)
        return self._versions[self._branches[name].here].text

    def recent(self, most: int = 50) -> list[Version]:
        """The current version and those before it, newest first."""
        found: list[Version] = []
        version = self.current
        while version is not None and len(found) < most:
            found.append(version)
            version = self._versions[version.parent] if version.parent is not None else None
        return found

    def _known(self, name: str) -> None:
        if name not in self._branches:
            raise BadParameter(f"There is no branch `{name}`.", fix=did_you_mean(name, self._branches))

    def _free_name(self, base: str) -> str:
        number = 2
        while f"{base} ({number})" in self._branches:
            number += 1
        return f"{base} ({number})"

    def _move(self, version: Version) -> Version:
        branch = self._branches[self._current]
        self._branches[self._current] = Branch(here=version.number, tip=branch.tip)
        self._save()
        return version

    def _save(self) -> None:
        document: dict[str, object] = {
            "versions": [asdict(version) for version in self._versions],
            "branches": {name: asdict(branch) for name, branch in self._branches.items()},
            "current": self._current,
        }
        with replacing(self._path, force=True) as temporary:
            temporary.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
            temporary.chmod(0o600)
