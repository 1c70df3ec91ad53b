"""Runs of the app: one folder each, with its release, recipe, data and verdict, put in place as a whole.

A run is written into a folder of its own. The file ``current`` names the run that the pages show, and it is replaced
only after everything else is on disk. So a process that is killed leaves the run before, never a verdict beside other
data.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sfumato.data import replacing
from sfumato.data.atomic import sha256
from sfumato.data.url import is_url
from sfumato.data.yaml_documents import parse_yaml
from sfumato.errors import BadParameter, SfumatoError
from sfumato.recipe.about import INTERNAL
from sfumato.release.folder import load_manifest, private_folder
from sfumato.release.public_folder import promised

RUNS, CURRENT, FACTS, SIGNED = "runs", "current", "run.json", "sign-off.json"


@dataclass(frozen=True, kw_only=True)
class SignOff:
    """Who prepared and who approved one run. It names the run by its fingerprint, so it is about no other."""

    fingerprint: str
    prepared_by: str = ""
    approved_by: str = ""
    notes: str = ""
    at: float


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished run."""

    folder: Path
    recipe: str
    """:func:`run_version` of the recipe that ran."""
    data: str | None
    """SHA-256 of the data file; None for a database."""
    stamp: Sequence[int] | None
    """:func:`stamp_of` the data file when it was read."""
    unmet: Sequence[str]
    at: float

    @property
    def release(self) -> Path:
        return self.folder / "release"

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the manifest, which names every released file with its own."""
        return sha256(self.release / "release.json")

    @property
    def manifest(self) -> dict[str, Any]:
        """The public manifest of its release."""
        return load_manifest(self.release)

    @property
    def promise(self) -> bool:
        """Whether its release promises differential privacy."""
        return promised(self.manifest)

    @property
    def signed(self) -> SignOff | None:
        """The sign-off of this run."""
        try:
            found = SignOff(**json.loads((self.folder / SIGNED).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return found if found.fingerprint == self.fingerprint else None

    def sign(self, signed: SignOff) -> None:
        """Keep a sign-off with the run. Refused if it is about another run."""
        if signed.fingerprint != self.fingerprint:
            raise BadParameter("There is a newer run.", fix="Review that one, then sign it.", stale=True)
        with replacing(self.folder / SIGNED, force=True) as temporary:
            temporary.write_text(json.dumps(asdict(signed), ensure_ascii=False), encoding="utf-8")
            temporary.chmod(0o600)

    def data_changed(self, location: str) -> bool:
        """Whether the data file is another one than the run read. Hashed only if its size or time has changed."""
        if self.data is None or list(stamp_of(location) or ()) == list(self.stamp or ()):
            return False
        return data_of(location) != self.data


def run_version(text: str) -> str:
    """What a run depends on: the recipe without its comments, and without who prepared and approved it.

    >>> run_version("sfumato: 1 # first") == run_version("sfumato: 1\\nabout: {approved_by: A. Steward}")
    True
    """
    try:
        document = parse_yaml(text).value
    except SfumatoError:
        document = text
    if isinstance(document, Mapping):
        about = document.get("about")
        kept = {k: v for k, v in about.items() if k not in INTERNAL} if isinstance(about, Mapping) else about
        document = {k: v for k, v in {**document, "about": kept}.items() if k != "about" or kept}
    plain = json.dumps(document, sort_keys=True, default=str)
    return hashlib.sha256(plain.encode()).hexdigest()[:16]


def stamp_of(location: str) -> tuple[int, int, int] | None:
    """Size, time and number of a file; None if there is none."""
    try:
        facts = Path(location).stat()
    except OSError:
        return None
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


def new_run(project: Path) -> Path:
    """An empty folder for a run of the project in the folder ``project``."""
    folder = project / RUNS / secrets.token_hex(8)
    folder.mkdir(parents=True, mode=0o700)
    return folder


def finish_run(folder: Path, *, recipe: str, location: str, data: str | None, unmet: Sequence[str]) -> None:
    """Put a run in place. ``data`` is the hash of the data file before the run; refused if it is another one now."""
    stamp = stamp_of(location)
    if data_of(location) != data:
        raise BadParameter("The data file changed while the recipe ran.", fix="Run it again.")
    document = {"recipe": recipe, "data": data, "stamp": stamp, "unmet": list(unmet), "at": time.time()}
    with replacing(folder / FACTS) as temporary:
        temporary.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    with replacing(folder.parent / CURRENT, force=True) as temporary:
        temporary.write_text(folder.name, encoding="utf-8")


def data_of(location: str) -> str | None:
    """SHA-256 of a data file; None for a database."""
    return None if is_url(location) or not Path(location).is_file() else sha256(location)


def current_run(project: Path) -> Run | None:
    """The run that the pages show, or None."""
    try:
        folder = project / RUNS / (project / RUNS / CURRENT).read_text(encoding="utf-8").strip()
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        return Run(folder=folder, **facts) if private_folder(folder / "release").is_dir() else None
    except (OSError, ValueError, TypeError):
        return None


def remove_other_runs(project: Path, *, keep: Path | None = None) -> None:
    """Remove runs that were replaced or did not finish. ``keep`` is one that is running."""
    current = current_run(project)
    kept = {current.folder if current is not None else None, keep}
    for folder in (project / RUNS).glob("*/"):
        if folder not in kept:
            shutil.rmtree(folder, ignore_errors=True)
