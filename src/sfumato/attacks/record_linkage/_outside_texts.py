"""What an outside file says about the people of a table with several rows per person."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.data import read
from sfumato.errors import BadParameter


def outside_rows(
    part: str, file: Path, original: pl.DataFrame, owner: npt.NDArray[np.int64], *,
    identity: str | None, columns: tuple[str, ...] = (),
) -> pl.DataFrame:  # fmt: skip
    """Rows of an outside file about people of the original: ``who`` (their number) and the columns named, as text.

    Default: all columns but ``identity``, which identifies a person in both files.
    """
    table = read(file)
    if identity is None:
        raise BadParameter(
            f"{part}: `identity` is required with an outside file.",
            fix="Name the column that identifies a person in both files; without it no guess can be checked.",
        )
    names = columns or tuple(name for name in table.columns if name != identity)
    table.require([identity, *names])
    if identity not in original.columns:
        raise BadParameter(
            f"{part}: the original has no column `{identity}`.",
            fix="Name the column that identifies a person in both the outside file and the original.",
        )
    numbers = pl.DataFrame({"id": original[identity].cast(pl.String), "who": owner}).unique()
    rows = table.frame.select(
        pl.col(identity).cast(pl.String).alias("id"), *(pl.col(name).cast(pl.String) for name in names)
    )
    return rows.join(numbers, on="id", maintain_order="left").select("who", *names)
