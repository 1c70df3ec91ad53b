"""A folder of text files as a table: one row per file, and the same way back."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from sfumato.data.table import Table
from sfumato.errors import BadParameter, FileMissing, NotThatFormat
from sfumato.wording import counted

TEXT_FOLDER = "text-folder"
"""The origin of a table that was a folder."""
_SUFFIXES = (".txt", ".md")


def read_text_folder(path: Path, *, people: str | None = None, table: Table | None = None) -> Table:
    """Read all .txt and .md files below a folder into the columns ``file`` and ``text``.

    ``table`` says who each file is about: it has a column ``file`` with the path below the folder, and further columns
    that are joined. ``people`` is what it is called in messages.

    Symbolic links are refused: they would release texts that lie outside the folder. Files that are not UTF-8 are
    refused: a wrong guess of the encoding hides names from the rules. Messages give the position of a file, because its
    name may name a person.
    """
    below = sorted(one for one in path.rglob("*") if not _hidden(one.relative_to(path)))
    links = sum(one.is_symlink() for one in below)
    if links:
        raise BadParameter(
            f"{path} contains {counted(links, 'symbolic link')}.",
            fix="Copy the files that belong to the data into the folder, and remove the links (`find -type l`).",
        )
    files = [one for one in below if one.suffix.lower() in _SUFFIXES and one.is_file()]
    if not files:
        raise FileMissing(
            f"{path} is a folder without text files (.txt, .md).", fix="Name a file in it, or a folder of texts.",
            path=str(path),
        )  # fmt: skip
    texts = [_text(one, f"File {number} of {len(files)}") for number, one in enumerate(files, start=1)]
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


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _text(path: Path, which: str) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotThatFormat(
            f"{which} of the folder, in order of their paths, is not UTF-8 (byte {error.start + 1}).",
            fix="Convert it: `iconv -f WINDOWS-1252 -t UTF-8`, or the encoding it was written in.",
        ) from None
    if "\0" in text:
        raise NotThatFormat(
            f"{which} of the folder, in order of their paths, is not text.", fix="Remove it from the folder."
        )
    return text


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
