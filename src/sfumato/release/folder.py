"""A release on disk: one folder that may leave the house, and beside it one that may not.

``release/`` holds the data, ``release.json`` (the public manifest with the SHA-256 of every file) and the external
report. ``release-private/`` holds what its owner needs to defend it: the secret row map, internal report and recipe.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.data import read
from sfumato.data.atomic import refuse_folder, sha256
from sfumato.data.format import Format
from sfumato.data.url import file_and_options
from sfumato.errors import BadParameter, FileMissing, NotThatFormat, ReleaseChanged
from sfumato.registry import registry
from sfumato.release.change import Lineage
from sfumato.release.release import Release

__all__ = [
    "LINEAGE",
    "MANIFEST",
    "PRIVATE",
    "load_lineage",
    "load_release",
    "private_folder",
    "refuse_existing",
    "release_suffix",
    "write_lineage",
    "write_manifest",
]

MANIFEST = "release.json"
PRIVATE = "report.json"
"""A file that every private folder holds: the mark by which it is known."""
LINEAGE = "lineage.parquet"


def release_suffix(source: str) -> str:
    """The ending of the released file: that of the source where it can be written, CSV otherwise."""
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
    """The folder beside a release that must never be handed out."""
    named = folder.resolve() if folder.name in ("", "..") else folder
    if not named.name:
        raise BadParameter("The root of the file system is no folder of a release.", fix="Name another folder.")
    return named.with_name(f"{named.name}-private")


def refuse_existing(folder: Path, *, force: bool = False) -> None:
    """Refuse before any work is done, rather than after it."""
    if folder.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise BadParameter(
            f"{folder} is the folder you are in, or holds it; a release takes the place of its folder.",
            fix="Name a folder of its own with --out.",
        )
    refuse_folder(folder, force=force, marker=MANIFEST)
    refuse_folder(private_folder(folder), force=force, marker=PRIVATE)


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Write the manifest last: it names every file that is in the folder with its SHA-256, data first."""
    names = sorted((path.name for path in folder.iterdir()), key=lambda name: (not name.startswith("data."), name))
    full = {**manifest, "files": {name: sha256(folder / name) for name in names if name != MANIFEST}}
    text = json.dumps(full, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")
    return full


def load_release(path: Any) -> Release:
    """A release of ours (a folder with a manifest), or anybody's: any readable file or frame, with nothing known."""
    if not isinstance(path, str | Path):
        return Release(table=read(path), manifest={})
    place = Path(path)
    if not place.is_dir():
        return Release(table=read(path), manifest={})  # as it was written: a path would swallow slashes of a URL
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
        file = place / Path(name).name
        if not file.is_file() or sha256(file) != digest:
            raise ReleaseChanged(
                f"{file} is not the file that the manifest names.",
                fix="It was changed or lost after the release was made. Make the release again.",
                file=name,
            )
    data = next((name for name in manifest["files"] if name.startswith("data.")), None)
    if data is None:
        raise NotThatFormat(f"{place / MANIFEST} names no data file.")
    return Release(table=read(place / Path(data).name, **manifest.get("reading", {})), manifest=manifest)


def write_lineage(lineage: Lineage, folder: Path) -> Path:
    """Store the secret row map in a private folder."""
    path = folder / LINEAGE
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # closed to others from the first byte on
    with os.fdopen(number, "wb") as file:
        pl.DataFrame({"original_row": lineage.rows}).write_parquet(file)
    return path


def load_lineage(path: Path) -> Lineage | None:
    """The row map stored beside a release folder (or in that very file), or None when there is none."""
    file = path if path.suffix == ".parquet" else private_folder(path) / LINEAGE
    if not file.is_file():
        return None
    return Lineage(pl.read_parquet(file)["original_row"].to_numpy().astype(np.int64))
