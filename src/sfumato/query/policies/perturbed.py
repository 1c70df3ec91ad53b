"""Answers from a perturbed copy of the data."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.data import read
from sfumato.errors import BadParameter
from sfumato.params import InputFile
from sfumato.query.policies.exact import ExactResponder
from sfumato.query.policy import Policy, Responder
from sfumato.rng import Rng

__all__ = ["Perturbed"]


class Perturbed(Policy):
    """Every question is answered exactly, from a copy that was masked once.

    Questions can reveal no more than the whole copy would: its risk is that of releasing it. Any recipe makes one
    (with ``order: kept``, so that rows still stand for the same people); name its file and column. Without a file, a
    share of the values is exchanged at random among the people.
    """

    main = "swap"
    examples = ({"swap": 0.4},)
    kept = True
    reference = "Traub, Yemini, Wozniakowski (1984), doi:10.1145/1994.383392"

    swap: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of people whose values are exchanged among them at random."""
    file: InputFile | None = None
    """A masked copy of the table, rows in the original's order."""
    column: str | None = None
    """The column of the copy to answer from."""

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
