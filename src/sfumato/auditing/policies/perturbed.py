"""Answers from a perturbed copy of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.auditing.set_policy import SetPolicy
from sfumato.data import read
from sfumato.errors import BadParameter
from sfumato.params import InputFile
from sfumato.query.policy.base import ExactResponder, Responder
from sfumato.rng import Rng

if TYPE_CHECKING:
    import polars as pl


class Perturbed(SetPolicy):
    """Every query is answered exactly, from a copy that was masked once.

    Queries can reveal no more than the whole copy would: its risk is that of releasing it. Any recipe makes one
    (with ``order: kept``, so that rows still stand for the same people); name its file and column. Without a file, a
    share of the values is exchanged at random among the people.
    """

    main = "swap"
    examples = ({"swap": 0.4},)
    keeps_randomness = True
    masks_table = True
    promise = "Queries are answered exactly from a masked copy of the table."
    reference = "Traub, Yemini, Wozniakowski (1984), doi:10.1145/1994.383392"

    swap: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of people whose values are exchanged among them at random."""
    file: InputFile | None = None
    """A masked copy of the table, rows in the original's order."""
    column: str | None = None
    """The column of the copy to answer from."""

    @property
    def needs_sensitive(self) -> bool:
        return self.file is None

    def table_problem(self) -> str:
        if (self.file is None) == (self.swap is None):
            return "give a `file`, or a share to `swap`"
        return "" if self.column is None else "the query names the columns of the copy; leave out `column`"

    def source(self, data: Any) -> Any:
        return data if self.file is None else self.file

    def recorded(self, frame: pl.DataFrame, sensitive: tuple[str, ...]) -> dict[str, object]:
        return self.model_dump(mode="json", exclude={"file"})  # the register knows the copy by its content

    def mask_table(self, frame: pl.DataFrame, sensitive: tuple[str, ...], rng: Rng) -> pl.DataFrame:
        """The table with the values of each sensitive column exchanged among some people."""
        if self.file is not None:
            return frame
        for name in sensitive:
            responder = self.open(np.arange(frame.height), rng.child(name))
            assert isinstance(responder, ExactResponder)
            frame = frame.with_columns(frame[name].gather(responder.values.tolist()))
        return frame

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        true = np.asarray(values)
        if self.file is not None:
            if self.column is None:
                raise BadParameter("perturbed: name the `column` of the copy to answer from.")
            copy = read(self.file).column(self.column).to_numpy()
            if len(copy) != len(true) or copy.dtype.kind not in "iufb":
                raise BadParameter("perturbed: the copy has one number for each row of the data, in the same order.")
            return ExactResponder(copy)
        if self.swap is None:
            raise BadParameter("perturbed: give a `file` with its `column`, or a share to `swap`.")
        generator = rng.child("perturbed").generator
        chosen = np.flatnonzero(generator.random(len(true)) < self.swap)
        copy = true.copy()
        copy[chosen] = true[generator.permutation(chosen)]
        return ExactResponder(copy)
