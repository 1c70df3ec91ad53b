"""A release on disk: a public folder, and beside it a private one.

``release/`` holds the data, ``release.json`` (the public manifest with the SHA-256 of every file) and the external
report. ``release-private/`` holds the secret row map, the internal report, the recipe, and the key that a seed needs to
repeat the run. It must not be published.
"""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import polars as pl

from sfumato.data import read
from sfumato.data.atomic import refuse_folder, sha256
from sfumato.data.format import Format, format_for
from sfumato.data.key_file import load_key
from sfumato.data.read_write import require_file
from sfumato.data.url import file_and_options, is_url
from sfumato.errors import BadParameter, FileMissing, NotThatFormat, OutputExists, ReleaseChanged, WriteFailed
from sfumato.registry import registry
from sfumato.release.change import Lineage
from sfumato.release.release import Release
from sfumato.secret import SecretValue

MANIFEST = "release.json"
MICRODATA = "microdata"
"""The kind of release of a table; a manifest that names no kind is of this one."""
PRIVATE = "report.json"
"""A file that every private folder contains; it marks the folder as such."""
BELONGS = "release.sha256"
"""The SHA-256 of the manifest of the release that a private folder belongs to, as ``sha256sum`` prints it."""
LINEAGE = "lineage.parquet"
KEY = "run.key"
"""The key of the random numbers of the run, in the private folder."""
TEXTS = "texts"
"""The folder of released text files, numbered by row, if the original was a folder of texts."""


def release_suffix(source: str) -> str:
    """The suffix of the released file: that of the source if the format can be written, else CSV."""
    name = file_and_options(source)[0].lower().removesuffix(".gz")
    for cls in registry("format"):
        assert issubclass(cls, Format)
        for suffix in cls.suffixes:
            if name.endswith(suffix) and suffix not in cls.read_only:
                return suffix
            if name.endswith(suffix):
                return cls.suffixes[0]
    return ".csv"


def private_folder(folder: Path) -> Path:
    """The private folder that belongs to a release folder."""
    named = folder.resolve() if folder.name in ("", "..") else folder
    if not named.name:
        raise BadParameter("The root of the file system cannot be a release folder.", fix="Name another folder.")
    return named.with_name(f"{named.name}-private")


def own_private_folder(folder: Path) -> Path:
    """The private folder of a release, for reading; there may be none. That of another release is refused.

    Two folders cannot be replaced at once: a run that is killed in between leaves a new release beside an old row map.
    """
    private = private_folder(folder)
    if private.is_dir() and (folder / MANIFEST).is_file():
        named = private / BELONGS
        if not named.is_file() or named.read_text(encoding="ascii") != _manifest_line(folder):
            raise ReleaseChanged(
                f"{private} does not belong to {folder}.",
                fix="Write the release again, replacing it, or pass the row map as `lineage`.",
                option="lineage",
                file=BELONGS,
            )
    return private


def write_belongs(public: Path, private: Path) -> None:
    """Name the finished release in its private folder."""
    (private / BELONGS).write_text(_manifest_line(public), encoding="ascii")


def _manifest_line(folder: Path) -> str:
    return f"{sha256(folder / MANIFEST)}  {MANIFEST}\n"


def refuse_existing(folder: Path, *, force: bool = False, kind: str) -> None:
    """Refuse existing folders before any work is done. A release of another kind is never replaced."""
    if folder.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise BadParameter(
            f"{folder} is the current folder or contains it; writing a release replaces its folder.",
            fix="Name another folder.",
        )
    refuse_folder(folder, force=force, marker=MANIFEST)
    refuse_folder(private_folder(folder), force=force, marker=PRIVATE)
    there = manifest_kind(folder)
    if there not in (None, kind):
        raise OutputExists(
            f"{folder} is a release of kind `{there}`, which a release of kind `{kind}` does not replace.",
            fix="Choose another folder.",
            path=str(folder),
        )
    place = private_folder(folder).resolve().parent
    if not os.access(place, os.W_OK | os.X_OK):  # before a budget is charged for what could not be written
        raise WriteFailed(f"{place} cannot be written to.", fix="Choose another place.", path=str(place))


def manifest_kind(folder: Path) -> str | None:
    """The kind of release that the manifest of a folder names; None without a manifest that can be read."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return str(manifest.get("kind", MICRODATA)) if isinstance(manifest, dict) else None


def load_manifest(place: Path) -> dict[str, Any]:
    """The manifest of a release folder of any kind. A file that is not the one it names is refused."""
    try:
        manifest = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileMissing(
            f"{place} holds no {MANIFEST}.", fix="Name a folder that `sfumato protect` wrote, or a data file."
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise NotThatFormat(f"{place / MANIFEST} is not a release manifest.") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict):
        raise NotThatFormat(f"{place / MANIFEST} is not a release manifest.")
    for name, digest in manifest["files"].items():
        parts = PurePosixPath(name).parts
        file = place.joinpath(*parts) if len(parts) == 2 and parts[0] == TEXTS else place / Path(name).name
        if not file.is_file() or sha256(file) != digest:
            raise ReleaseChanged(
                f"{file} is not the file that the manifest names.",
                fix="The file was changed or deleted after the release was written. Write the release again.",
                file=name,
            )
    return manifest


def private_document(folder: Path) -> dict[str, object]:
    """The report of a release for its owner as plain data, from the private folder."""
    file = own_private_folder(folder) / PRIVATE
    try:
        document: dict[str, object] = json.loads(file.read_text(encoding="utf-8"))
    except OSError:
        raise FileMissing(
            f"There is no {file}.", fix="Reports are made from the private folder beside the release."
        ) from None
    return document


def released_file(path: object) -> tuple[object, dict[str, Any], dict[str, object]]:
    """Where the rows of a release lie, the options to read them, and its manifest.

    ``path`` is a release folder, or any readable file, address or frame, which is a release without a manifest.
    """
    if not isinstance(path, str | Path) or not Path(path).is_dir():
        if isinstance(path, str | Path) and not is_url(str(path)) and str(path) != "-":
            require_file(Path(file_and_options(path)[0]))
        return path, {}, {}  # not a `Path`: it would collapse the slashes of a URL
    place = Path(path)
    manifest = load_manifest(place)
    data = next((name for name in manifest["files"] if name.startswith("data.")), None)
    if data is None:
        raise NotThatFormat(f"{place / MANIFEST} names no data file.")
    file = place / Path(data).name
    return file, {**written_with(file), **manifest.get("reading", {})}, manifest


def written_with(path: Path) -> dict[str, Any]:
    """The options of a file that sfumato wrote, which are not to be found by looking: delimited text has a header."""
    return {"header": True} if "header" in format_for(path).model_fields else {}


def load_release(path: object) -> Release:
    """Load a release folder with its manifest, or any readable file or frame as a release without a manifest."""
    location, options, manifest = released_file(path)
    return Release(table=read(location, **options), manifest=manifest)


def stored_key(folder: Path) -> SecretValue[bytes] | None:
    """The key of the run that wrote a release folder, from its private folder; None if there is none."""
    file = private_folder(folder) / KEY
    return load_key(file) if file.exists() else None


def write_lineage(lineage: Lineage, folder: Path) -> Path:
    """Store the secret row map in a private folder."""
    path = folder / LINEAGE
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # created without access for others
    with os.fdopen(number, "wb") as file:
        pl.DataFrame({"original_row": lineage.rows}).write_parquet(file)
    return path


def load_lineage(path: Path) -> Lineage | None:
    """The row map in the private folder of a release (or in that file), or None if there is none."""
    file = path if path.suffix == ".parquet" else own_private_folder(path) / LINEAGE
    if not file.is_file():
        return None
    return Lineage(pl.read_parquet(file)["original_row"].to_numpy().astype(np.int64))
