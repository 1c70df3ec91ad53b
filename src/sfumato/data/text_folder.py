"""A folder of text files as a table: one row per file, and the same way back."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from sfumato.data.table import Table
from sfumato.data.text_files import decode, to_utf8
from sfumato.errors import BadParameter, FileMissing
from sfumato.wording import counted

__all__ = ["TEXT_FOLDER", "read_text_folder", "write_text_folder"]

TEXT_FOLDER = "text-folder"
"""The origin of a table that was a folder."""
_SUFFIXES = (".txt", ".md")


def read_text_folder(path: Path, *, people: str | None = None, table: Table | None = None) -> Table:
    """Read all .txt and .md files below a folder into the columns ``file`` and ``text``.

    ``table`` says who each file is about: it has a column ``file`` with the path below the folder, and further columns
    that are joined. ``people`` is what it is called in messages.
    """
    files = sorted(one for one in path.rglob("*") if one.suffix.lower() in _SUFFIXES and one.is_file())
    files = [one for one in files if not any(part.startswith(".") for part in one.relative_to(path).parts)]
    if not files:
        raise FileMissing(
            f"{path} is a folder without text files (.txt, .md).", fix="Name a file in it, or a folder of texts.",
            path=str(path),
        )  # fmt: skip
    texts = [_text(one) for one in files]
    frame = pl.DataFrame({"file": [one.relative_to(path).as_posix() for one in files], "text": texts})
    if table is not None:
        frame = _with_people(frame, table, people or "the table")
    return Table(frame=frame, origin=TEXT_FOLDER)


def write_text_folder(texts: pl.Series, folder: Path) -> None:
    """Write one file per text, numbered by row from 1: file names of the original may name people."""
    folder.mkdir()
    width = max(4, len(str(len(texts))))
    for number, text in enumerate(texts, start=1):
        (folder / f"{number:0{width}d}.txt").write_text(text or "", encoding="utf-8")


def _text(path: Path) -> str:
    data = path.read_bytes()
    return bytes(to_utf8(data, decode(data), path.name)).decode("utf-8") if data else ""


def _with_people(frame: pl.DataFrame, table: Table, name: str) -> pl.DataFrame:
    table.require(["file"])
    known = table.frame.with_columns(pl.col("file").cast(pl.String))
    if known["file"].is_duplicated().any():
        raise BadParameter(f"{name} has several rows for a file.", fix="Give each file one row.")
    if "text" in known.columns:
        raise BadParameter(f"{name} has a column `text`, which is the name of the text itself.", fix="Rename it.")
    missing = frame.join(known, on="file", how="anti").height
    if missing:
        raise BadParameter(
            f"{name} has no row for {counted(missing, 'file')} of the folder.",
            fix="Add a row for every file: `file` is its path below the folder.",
        )
    return frame.join(known, on="file", how="left", maintain_order="left")
