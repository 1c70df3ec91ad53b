"""Post-randomization."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import ConfigDict, Field, model_validator

from sfumato.arrays import Floats
from sfumato.dataset import Column, Data, Kind
from sfumato.errors import BadParameter, ColumnsDiffer
from sfumato.masking.base import Context
from sfumato.masking.channel import IMPOSSIBLE, PublicKnowledge, StepChannel, TableChannel
from sfumato.masking.methods._masking import Masking, fitting, split
from sfumato.masking.methods._pram_matrix import TransitionMatrix, published_transitions
from sfumato.release import Change

_TICK = "\x1f"


class Pram(Masking):
    """Post-randomization method (PRAM): change categories at random by a published transition matrix.

    Preserves frequencies in expectation if ``invariant``; otherwise users estimate unbiased frequencies from the
    release and the published matrix (``TransitionMatrix.estimate``, with standard errors). Does not preserve
    dependencies between columns that are masked separately (``joint`` does) and can create impossible combinations.
    Rare categories stay in the file, and an attacker can compute the probability that a person really has one. It is
    local differential privacy only if no entry of the matrix is zero.

    Missing values stay missing. A column with one category is unchanged.

    >>> import polars as pl
    >>> from sfumato.data.table import Table
    >>> from sfumato.rng import Rng
    >>> from sfumato.dataset import Column, Schema
    >>> people = Data.of(Table(frame=pl.DataFrame({"ill": ["no"] * 900 + ["yes"] * 100})),
    ...                     Schema(columns={"ill": Column(role="sensitive")}))
    >>> change = Pram(keep=0.8).apply(people, Context(rng=Rng(1)))
    >>> matrix = TransitionMatrix.generated(["no", "yes"], keep=0.8)
    >>> change.public["transitions"]["ill"]["matrix"] == matrix.probabilities.tolist()
    True
    >>> bool(abs(matrix.estimate(change.table.frame["ill"]).counts[1] - 100) < 60)
    True
    """

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["keep"]}, {"required": ["matrix"]}]})

    kinds = frozenset({Kind.CATEGORY, Kind.BOOLEAN})
    simulable = True
    stronger = {"keep": "less"}
    main = "keep"
    examples = (
        {"keep": 0.8},
        {"keep": 0.7, "invariant": True},
        {"keep": 0.8, "joint": True},
        {"keep": 0.8, "columns": ["region"], "groups": {"region": [["north", "south"], ["east", "west"]]}},
    )
    exempt: ClassVar[Mapping[str, str]] = {
        "no data value in public": "users need the categories of the published matrix to estimate frequencies"
    }
    reference = (
        "Gouweleeuw, Kooiman, Willenborg, de Wolf: Post randomisation for statistical disclosure control: theory and "
        "implementation. Journal of Official Statistics 14 (1998); van den Hout, van der Heijden (2002), "
        "doi:10.1111/j.1751-5823.2002.tb00363.x"
    )

    keep: Annotated[float, Field(ge=0, le=1)] | None = None
    """Probability that a category stays; the others of its group share the rest equally. With ``invariant``: the share
    of values that stay, to about a hundredth. Required for columns without a ``matrix``."""
    matrix: dict[str, dict[str, dict[str, float]]] = {}
    """Transition matrices by column: ``{sex: {F: {F: 0.9, M: 0.1}, M: {F: 0.2, M: 0.8}}}``; each row sums to 1, an
    entry left out is 0."""
    invariant: bool = False
    """Whether to make the matrix invariant, so that frequencies (of each stratum) are preserved in expectation. A
    second stage draws back; the first is chosen such that ``keep`` holds after both. The release publishes the matrix
    of the first stage: the invariant one would reveal the exact original frequencies."""
    joint: bool = False
    """Whether columns change together, as one variable of all combinations that occur."""
    groups: dict[str, tuple[tuple[str, ...], ...]] = {}
    """By column, groups of categories; a category becomes only another of its group:
    ``{region: [[north, south], [east, west]]}``. Categories in no group stay."""

    @model_validator(mode="after")
    def _fits(self) -> Pram:
        for name, rows in self.matrix.items():
            for row in rows.values():
                if not all(p >= 0 for p in row.values()) or not abs(sum(row.values()) - 1) <= 1e-9:
                    raise ValueError(f"a row of the matrix of `{name}` does not sum to 1 or holds a negative number")
                if set(row) - set(rows):
                    raise ValueError(f"the matrix of `{name}` leads to a category that has no row")
        if self.joint and (self.matrix or self.groups):
            raise ValueError("with `joint` a matrix is generated from `keep`; leave `matrix` and `groups` out")
        if self.keep is None and not self.matrix:
            raise ValueError("give `keep` (to generate matrices) or `matrix`")
        return self

    def chosen(self, data: Data) -> tuple[str, ...]:
        named = self.columns if self.columns is not None or self.keep is not None else tuple(self.matrix)
        kinds = self.kinds if named is None else self.kinds | {Kind.INTEGER}
        return fitting(data, named, kinds, self.part_name(), self.strata)

    @classmethod
    def column_in_words(cls, published: Mapping[str, Any], column: str, declared: Column) -> str:
        if column not in published.get("columns", ()):
            return ""
        keep = published.get("parameters", {}).get("keep")
        stays = "" if keep is None else f", kept with probability {keep:g}"
        return f"categories changed at random (PRAM{stays})"

    def apply(self, data: Data, context: Context) -> Change:
        names, frame = self.chosen(data), data.table.frame
        data.table.require(self.strata)
        strata = split(frame, self.strata)
        masked: list[pl.Series] = []
        published: dict[str, object] = {}
        for series in [_joined(frame, names)] if self.joint else [frame.get_column(name) for name in names]:
            base = self._matrix(series)
            codes = base.encode(series)
            if self.invariant and series.name not in self.matrix:
                base = self._kept_after_both_stages(series.name, base, [_counts(base, codes[rows]) for rows in strata])
            released = codes.copy()
            for number, rows in enumerate(strata):
                here = base
                if self.invariant:
                    here = base.invariant(_counts(base, codes[rows]))
                random = context.rng.child(series.name, number).generator
                released[rows] = here.draw(codes[rows], random)
            columns = base.decode(released, series)
            masked.extend(_separated(columns, frame, names) if self.joint else [columns])
            labels = [c.split(_TICK) if self.joint else c for c in base.categories]
            published[" × ".join(names) if self.joint else series.name] = {
                "categories": labels,
                "matrix": base.probabilities.tolist(),
            }
        table = data.table.with_frame(frame.with_columns(masked))
        return Change(table=table, public={**self.public_columns(names), "transitions": published})

    @classmethod
    def channels(cls, published: Mapping[str, Any], knowledge: PublicKnowledge) -> tuple[StepChannel, ...]:
        """The published matrix; under ``invariant`` followed by the second stage, which needs all known people."""
        step = cls.build(dict(published["parameters"]))
        if step.joint or (step.invariant and (step.strata or not knowledge.complete)):
            return ()
        channels: list[StepChannel] = []
        for name, matrix in published_transitions(published).items():
            if name not in knowledge.targets.columns:
                continue
            known, people, released = (
                frame[name] for frame in (knowledge.targets, knowledge.people, knowledge.released)
            )
            try:
                codes = matrix.encode(people)
                here = matrix.invariant(_counts(matrix, codes)) if step.invariant else matrix
                size = len(matrix.categories)
                log = np.full((size + 1, size + 1), IMPOSSIBLE)
                log[:-1, :-1] = np.log(np.maximum(here.probabilities, np.exp(IMPOSSIBLE)))
                log[-1, -1] = 0.0
                weight = np.bincount(np.minimum(codes, size), minlength=size + 1) / len(codes)
                channels.append(
                    TableChannel(
                        columns=(name,),
                        known=np.minimum(matrix.encode(known), size).astype(np.int64),
                        released=np.minimum(matrix.encode(released), size).astype(np.int64),
                        log=log,
                        weight=weight,
                    )
                )
            except ColumnsDiffer:
                continue  # another step changed the values again
        return tuple(channels)

    def _matrix(self, series: pl.Series) -> TransitionMatrix:
        categories = series.drop_nulls().unique().sort().to_list()
        transitions = self.matrix.get(series.name)
        if transitions is None:
            if self.keep is None:
                raise BadParameter(f"pram: `{series.name}` has neither a matrix nor `keep`.")
            return TransitionMatrix.generated(categories, keep=self.keep, groups=self._groups(series.name, categories))
        known = {_text(value): value for value in categories}
        absent = [_parsed(label, series) for label in transitions if label not in known]
        categories = sorted({*categories, *absent})
        labels = [_text(value) for value in categories]
        if set(labels) - set(transitions):
            raise BadParameter(
                f"pram: {len(set(labels) - set(transitions))} categories of `{series.name}` have no row in its matrix.",
                fix="Give a row for every category.",
            )
        rows = [[transitions[row].get(column, 0.0) for column in labels] for row in labels]
        return TransitionMatrix(categories=tuple(categories), probabilities=np.array(rows, dtype=np.float64))

    def _kept_after_both_stages(self, name: str, base: TransitionMatrix, counts: Sequence[Floats]) -> TransitionMatrix:
        """The first-stage matrix whose invariant matrix keeps the share ``keep`` of the values that may change.

        It is a mixture of staying and an equal draw from the group. The weight is rounded to a hundredth: it is
        published, and an exact one would tell a function of the exact original frequencies.
        """
        assert self.keep is not None
        groups = self._groups(name, list(base.categories))
        linked = TransitionMatrix.generated(base.categories, keep=0.5, groups=groups).probabilities > 0
        equal = linked / linked.sum(axis=1, keepdims=True)
        movable = linked.sum(axis=1) > 1
        total = sum(float(count[movable].sum()) for count in counts)

        def mixture(weight: float) -> TransitionMatrix:
            matrix = (1 - weight) * np.eye(len(equal)) + weight * equal
            return TransitionMatrix(categories=base.categories, probabilities=matrix)

        def kept(weight: float) -> float:
            stays = [mixture(weight).invariant(count).probabilities.diagonal() @ (count * movable) for count in counts]
            return float(sum(stays)) / total

        if total == 0:
            return base
        weights = np.arange(101) / 100
        shares = np.array([kept(weight) for weight in weights])
        if self.keep < shares[-1] - 0.01:
            raise BadParameter(
                "pram: an invariant matrix keeps a larger share of these values than `keep`, because frequent "
                "categories are often drawn again.",
                fix="Raise `keep`, or leave `invariant` out.",
            )
        return mixture(float(weights[np.argmin(np.abs(shares - self.keep))]))

    def _groups(self, name: str, categories: list[object]) -> list[list[int]] | None:
        if name not in self.groups:
            return None
        place = {_text(value): number for number, value in enumerate(categories)}
        groups = [[place[label] for label in group if label in place] for group in self.groups[name]]
        grouped = {number for group in groups for number in group}
        return [group for group in groups if group] + [[n] for n in place.values() if n not in grouped]


def _counts(matrix: TransitionMatrix, codes: npt.NDArray[np.uint32]) -> Floats:
    """Rows per category, without missing values."""
    size = len(matrix.categories)
    return np.bincount(codes[codes < size], minlength=size).astype(np.float64)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parsed(label: str, series: pl.Series) -> Any:
    """A category of the matrix that does not occur in the column, in the column's type."""
    if series.dtype == pl.Boolean and label in ("true", "false"):
        return label == "true"
    if series.dtype.is_integer() and re.fullmatch(r"-?\d+", label):
        return int(label)
    if series.dtype == pl.Boolean or series.dtype.is_integer():
        kind = "true or false" if series.dtype == pl.Boolean else "whole numbers"
        raise BadParameter(f"pram: the matrix of `{series.name}` has a category that is not of its kind, {kind}.")
    return label


def _joined(frame: pl.DataFrame, names: tuple[str, ...]) -> pl.Series:
    """All combinations as one text column; missing if any of the columns is."""
    return frame.select(pl.concat_str([pl.col(n).cast(pl.String) for n in names], separator=_TICK).alias("joint"))[
        "joint"
    ]


def _separated(joined: pl.Series, frame: pl.DataFrame, names: tuple[str, ...]) -> list[pl.Series]:
    fields = joined.str.split_exact(_TICK, len(names) - 1).struct.fields
    split_up = joined.str.split_exact(_TICK, len(names) - 1).struct.unnest()
    answer = []
    for field, name in zip(fields, names, strict=True):
        original = frame.get_column(name)
        text = split_up[field]
        parsed = text == "true" if original.dtype == pl.Boolean else text.cast(original.dtype)
        answer.append(pl.select(pl.when(joined.is_null()).then(original).otherwise(parsed)).to_series().alias(name))
    return answer
