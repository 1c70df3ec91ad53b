"""Differentially private synthetic data from noisy marginals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
import polars as pl
from pydantic import ConfigDict, Field, model_validator

from sfumato.data.declared import refuse_found_types
from sfumato.dataset import Column, Data, RangeDomain, Role, Schema, ValuesDomain
from sfumato.dataset.domain import AnyDomain
from sfumato.dp.contribution_bounds import bound_rows
from sfumato.dp.loss import approximate
from sfumato.errors import BadParameter, NotApplicable
from sfumato.field_docs import DocumentedModel
from sfumato.ledger.charge import Charge, charge_run
from sfumato.ledger.ledger import Ledger
from sfumato.masking.base import Context, Step
from sfumato.progress import SILENT, Progress
from sfumato.rationals import rational
from sfumato.release import Change
from sfumato.release.guarantee import Guarantee
from sfumato.rng import Rng
from sfumato.synthesis.column_domain import ColumnCells, category_cells, range_cells
from sfumato.synthesis.constraints import check_constraints
from sfumato.synthesis.fit import FitRun, HouseholdPlan, SynthesisPlan, fit_households, fit_model
from sfumato.synthesis.household_model import HouseholdModel
from sfumato.synthesis.model import SynthesisModel
from sfumato.wording import did_you_mean

_PROOF = (
    "normal noise rounded to a grid, exponential mechanism by its bounded range (Dong, Durfee, Rogers 2020), adaptive "
    "composition in Gaussian differential privacy (Dong, Roth, Su 2022), conversion to (epsilon, delta) by Balle, Wang "
    "2018, Theorem 8"
)


class Households(DocumentedModel):
    """People in households: one row per member, and some columns that are equal for all members.

    The unit of privacy is a household. Its column is the one with the role ``household``, or the recipe's ``unit``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_members: Annotated[int, Field(ge=1, le=100)]
    """The largest number of members that is used; of larger households, so many at random."""
    columns: tuple[str, ...] = ()
    """Columns that are equal for all members, such as the region. Their domains are declared."""
    size: str | None = None
    """The column with the number of members; it is counted anew. Default: none is released."""
    share: Annotated[float, Field(gt=0, lt=1)] = 0.3
    """Share of the budget for the table of households."""


class PrivateSynthesis(Step):
    """Differentially private synthetic data: replace all rows by draws from a model of noisy marginals.

    The released rows satisfy (epsilon, delta)-differential privacy for one unit: a row, or with the recipe's ``unit``
    all rows of one person, of which at most ``max_rows`` are used. Neighbouring tables differ by adding or removing one
    unit. Noise is normal noise rounded to a grid, from the operating system; it cannot be repeated by a seed. The
    number of rows, the bins of numbers and everything else that is read off the data is noisy too.

    Preserves the marginals that were measured, and what follows from them; everything else is as random as they allow.
    Columns are modelled on public domains: those that the recipe declares, the ones in ``domains``, or ones that are
    learned with the share ``learn`` of the budget. Values outside a domain become missing, numbers are clipped to it.
    Identifiers, weights and columns that are not named are dropped. Must be the first step: the guarantee
    does not hold for steps before it, and covers all steps after it.

    In Python, :meth:`fit` returns the model itself, with intervals for its marginals.

    >>> from sfumato.data.table import Table
    >>> from sfumato.dataset import Schema
    >>> draw = np.random.default_rng(0)
    >>> smoker = draw.random(5000) < 0.3
    >>> ill = draw.random(5000) < 0.1 + 0.4 * smoker
    >>> people = Data.of(Table(frame=pl.DataFrame({"smoker": smoker, "ill": ill})), Schema(columns={}))
    >>> model = PrivateSynthesis(epsilon=1, delta=1e-6).fit(people)
    >>> rows = model.sample(random=np.random.default_rng(1))
    >>> 0.4 < rows.filter(pl.col("smoker"))["ill"].mean() < 0.6
    True
    """

    report_phrase = "replaced by differentially private synthetic values"
    simulable = False
    keeps_rows = False
    formal_guarantee = True
    stronger = {"epsilon": "less", "delta": "less"}
    exempt = {
        "repeatable by seed": "Noise that can be repeated can be subtracted.",
        "no data value in public": "Everything published is noisy.",
    }
    examples = (
        {"epsilon": 3, "delta": 1e-6, "learn": 0.3, "columns": ["age", "height", "income"]},
        {
            "epsilon": 1, "delta": 1e-6, "mechanism": "mst", "columns": ["age", "income"],
            "domains": {"age": {"low": 0, "high": 110}, "income": {"low": 0, "high": 200000}},
        },
    )  # fmt: skip
    synthetic = True
    reference = (
        "McKenna, Miklau, Sheldon: Winning the NIST contest (2021), doi:10.29012/jpc.778; McKenna, Mullins, Sheldon, "
        "Miklau: AIM (2022), doi:10.14778/3551793.3551817; Mullins et al.: Efficient and private marginal "
        "reconstruction (2024), doi:10.48550/arXiv.2410.01091"
    )

    epsilon: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
    """Privacy loss. There is no default."""
    delta: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
    """Probability with which the loss may be larger. Choose it far below one over the number of people."""
    mechanism: Literal["auto", "mst", "adaptive"] = "auto"
    """``mst``: a tree of pairs, in about a second. ``adaptive``: pairs are selected one after the other where the model
    is worst; more accurate. ``auto``: adaptive for up to 40 columns."""
    columns: tuple[str, ...] | None = None
    """Columns to synthesize. Default: all quasi-identifier, sensitive and plain columns."""
    domains: dict[str, AnyDomain] = {}
    """Public domains by column. Default: the ``domain`` of the column in the recipe."""
    learn: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the budget with which missing domains are learned. Default: columns without a domain are refused."""
    max_rows: Annotated[int, Field(ge=1)] | None = None
    """The largest number of rows of one person that is used; required if the recipe names a ``unit``. Default: the
    ``bounds`` of the document."""
    target: str | None = None
    """A column to predict: pairs with it are preferred in the selection."""
    workload: tuple[Annotated[tuple[str, ...], Field(min_length=2, max_length=3)], ...] | None = None
    """Combinations of two or three columns that the model may measure. Default: all pairs."""
    bins: Annotated[int, Field(ge=2, le=100)] | None = None
    """The largest number of bins per number or date. Their ends follow from noisy counts. Default: 5 to 64, as many as
    the noise of pairs allows."""
    rows: Annotated[int, Field(ge=1)] | None = None
    """Number of synthetic rows. Default: the noisy number of rows of the table."""
    constraints: tuple[str, ...] = ()
    """SQL conditions that every synthetic row meets, such as ``age >= 18 OR job IS NULL``."""
    households: Households | None = None
    """For people in households: every household is synthesized as a whole, and is the unit of privacy."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.households is not None and (self.rows is not None or self.max_rows is not None):
            raise ValueError("with `households`, `max_members` bounds the rows of a unit, and their number is noisy")
        for rule in self.constraints:
            try:
                pl.sql_expr(rule)
            except pl.exceptions.PolarsError:
                raise ValueError(f"`{rule}` is not an SQL condition") from None
        return self

    def apply(self, data: Data, context: Context) -> Change:
        if context.before:
            raise NotApplicable(
                "private-synthesis must be the first step: its guarantee does not hold for values that another step "
                "made from the data of several people.",
                fix="Move it to the front; later steps keep the guarantee.",
            )
        fit: Callable[..., SynthesisModel | HouseholdModel] = (
            self.fit if self.households is None else self.fit_households
        )
        ledger, dataset = context.account or (None, None)
        model = fit(data, ledger=ledger, dataset=dataset, rng=context.rng, progress=context.progress)
        frame = model.sample(self.rows, random=context.rng.child("rows").generator)
        guarantee = model.guarantee
        return Change(
            table=data.table.with_frame(frame),
            rows=np.full(frame.height, -1, dtype=np.int64),
            public={
                "columns": list(frame.columns),
                "mechanism": self._plan(data).chosen,
                "formal_guarantee": True,
                "guarantee": guarantee.to_dict(),
                **model.errors_by_level(),
            },
            verdicts=(guarantee.verdict(wanted=self.epsilon),),
        )

    def fit(
        self, data: Data, *, ledger: Ledger | str | Path | None = None, dataset: str | None = None,
        rng: Rng | None = None, progress: Progress = SILENT,
    ) -> SynthesisModel:  # fmt: skip
        """Fit a model and charge a ledger for it. Everything drawn from the model afterwards is free.

        Refusals that do not depend on the rows come before the charge. ``ledger`` is charged under the name
        ``dataset``; without them nobody adds up several models of the same people.
        """
        if self.households is not None:
            raise BadParameter("private-synthesis: `households` need two tables.", fix="Call `fit_households`.")
        kept, run = self._charged(data, ledger, dataset, rng, progress)
        return fit_model(kept, run)

    def fit_households(
        self, data: Data, *, ledger: Ledger | str | Path | None = None, dataset: str | None = None,
        rng: Rng | None = None, progress: Progress = SILENT,
    ) -> HouseholdModel:  # fmt: skip
        """Fit a model of people in households, as :meth:`fit` does for a single table."""
        if self.households is None:
            raise BadParameter("private-synthesis: `households` is not set.", fix="Set it, or call `fit`.")
        kept, run = self._charged(data, ledger, dataset, rng, progress)
        assert run.plan.households is not None
        return fit_households(kept, run, run.plan.households)

    def _charged(
        self, data: Data, ledger: Ledger | str | Path | None, dataset: str | None, rng: Rng | None, progress: Progress
    ) -> tuple[pl.DataFrame, FitRun]:
        """Rows with bounded contributions, and a run whose budget is paid."""
        refuse_found_types(data.table)
        plan = self._plan(data)
        cost = replace(approximate(rational(self.epsilon), rational(self.delta)), curve=plan.loss.curve)
        schema = data.schema
        column = plan.households.id if plan.households is not None else schema.unit or schema.key
        unit = schema.privacy_unit if plan.households is None else plan.households.id
        kept, cut = data.table.frame, None
        if column is not None:
            data.table.require([column])
            kept, cut = bound_rows(kept, column, plan.max_contribution, named=unit)
        run = Charge.of_run(cost, in_rho=plan.loss, unit=unit, name=self.part_name(), public=self.public(), bounds=cut)
        paid = charge_run(run, ledger=ledger, dataset=dataset)
        [receipt] = paid.split(plan.loss)
        guarantee = Guarantee(
            loss=plan.loss.at(plan.delta), unit=unit, max_rows=plan.max_contribution, proof=_PROOF
        ).charged(paid)
        return kept, FitRun(
            plan=plan, receipt=receipt, random=(rng or Rng()).child("fit").generator, progress=progress,
            guarantee=guarantee, constraints=self.constraints,
        )  # fmt: skip

    def chosen(self, data: Data) -> tuple[str, ...]:
        """The columns that are synthesized."""
        if self.columns is not None:
            data.table.require(self.columns)
            if len(set(self.columns)) != len(self.columns):
                raise BadParameter("private-synthesis: `columns` names a column twice.")
            return self.columns
        roles = (Role.QUASI, Role.SENSITIVE, Role.PLAIN)
        return tuple(
            name for name in data.table.columns if data.schema.column(name).role in roles and name != data.schema.unit
        )

    def _max_rows(self, schema: Schema) -> int | None:
        return self.max_rows if self.max_rows is not None or schema.unit is None else schema.max_rows

    def _plan(self, data: Data) -> SynthesisPlan:
        """Everything that is decided without looking at a row."""
        names, schema = self.chosen(data), data.schema
        households = self._households(data, names)
        if households is not None:
            names = tuple(name for name in names if name not in (households.id, households.released))
        elif schema.unit is not None and (self._max_rows(schema) is None or schema.unit in names):
            raise BadParameter(
                f"private-synthesis: one person may have many rows (unit `{schema.unit}`).",
                fix="Set `max_rows`, the number of rows per person to use, or `bounds: {rows: ...}` of the table, and "
                "leave the unit out of `columns`.",
            )
        if not names:
            raise BadParameter("private-synthesis: no column to synthesize.", fix="Name some with `columns`.")
        for name in (*self.domains, *(n for c in self.workload or () for n in c), *filter(None, [self.target])):
            if name not in names:
                raise BadParameter(
                    f"private-synthesis: `{name}` is not synthesized.", fix=did_you_mean(name, names), column=name
                )
        cells = {name: self._cells(data, name, schema.column(name)) for name in names}
        unknown = [name for name, one in cells.items() if one is None]
        if unknown and not self.learn:
            listed = ", ".join(f"`{name}`" for name in unknown)
            raise BadParameter(
                f"private-synthesis: no public domain is declared for {listed}.",
                fix="Declare `domain: {values: [...]}` or `{low: ..., high: ...}`, or set `learn`, the share of the "
                "budget with which domains are learned.",
            )
        types = data.table.frame.schema
        if self.constraints:
            counted = {} if households is None or households.released is None else {households.released: pl.Int64()}
            check_constraints(self.constraints, cells, {**{name: types[name] for name in names}, **counted})
        return SynthesisPlan(
            epsilon=rational(self.epsilon),
            delta=rational(self.delta),
            mechanism=self.mechanism,
            declared=cells,
            learned_categories=frozenset(
                name for name in unknown if not types[name].is_numeric() and not types[name].is_temporal()
            ),
            learn=rational(self.learn),
            bins=self.bins,
            max_contribution=self.households.max_members
            if self.households is not None
            else self._max_rows(schema) or 1,
            households=households,
            target=self.target,
            workload=self.workload,
        )

    def _households(self, data: Data, names: tuple[str, ...]) -> HouseholdPlan | None:
        """The two levels of the table, if the step has them."""
        if (home := self.households) is None:
            return None
        by = [name for name in data.table.columns if data.schema.column(name).role is Role.HOUSEHOLD]
        key = data.schema.unit or (by[0] if len(by) == 1 else None)
        if key is None or by not in ([], [key]):
            raise BadParameter(
                "private-synthesis: `households` needs one column that tells households apart.",
                fix="Give it the role `household`; a `unit` of the recipe must be the same column.",
            )
        for name in (*home.columns, *filter(None, [home.size])):
            data.table.require([name])
            if name not in names or name == key:
                raise BadParameter(
                    f"private-synthesis: `{name}` of `households` is not synthesized.", fix=did_you_mean(name, names)
                )
        for name in home.columns:
            if self._cells(data, name, data.schema.column(name)) is None or name == home.size:
                raise BadParameter(
                    f"private-synthesis: the household column `{name}` needs a declared domain.",
                    fix="Declare `domain: {values: [...]}` or `{low: ..., high: ...}`; name the size only as `size`.",
                    column=name,
                )
        size = home.size or next(name for n in range(99) if (name := "members" + n * "_") not in data.table.columns)
        return HouseholdPlan(id=key, columns=home.columns, size=size, released=home.size, share=rational(home.share))

    def _cells(self, data: Data, name: str, column: Column) -> ColumnCells | None:
        domain = self.domains.get(name) or column.domain
        dtype = data.table.frame.schema[name]
        if domain is None:
            return category_cells(name, dtype, (False, True)) if dtype == pl.Boolean else None
        if isinstance(domain, ValuesDomain):
            return category_cells(name, dtype, domain.values)
        if not dtype.is_numeric() and not dtype.is_temporal():
            raise BadParameter(
                f"private-synthesis: `{name}` is text; its domain needs `values`.", fix="List its values."
            )
        low, high = (domain.low, domain.high) if isinstance(domain, RangeDomain) else (domain.first, domain.last)
        return range_cells(name, dtype, low, high)
