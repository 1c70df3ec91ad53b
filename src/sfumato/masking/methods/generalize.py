"""Full-domain generalization: one hierarchy level per quasi-identifier, chosen so that the privacy models hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.data.row_codes import number_rows
from sfumato.dataset import Column, Data, Schema
from sfumato.dataset.hierarchy import ROOT
from sfumato.errors import BadParameter, NotApplicable, TooFewRows, UnknownColumn, Unmet
from sfumato.masking.base import Context, Step, StoredChange
from sfumato.masking.equivalence_classes import EquivalenceClasses, compress
from sfumato.masking.metric import LossMetric, MetricName, metric_of
from sfumato.masking.population import shared_population
from sfumato.masking.search.lattice.level_range import LevelRange
from sfumato.masking.search.lattice.space import LatticeSpace, Node
from sfumato.masking.search.partition_check import columns_with_gaps, refuse_overlap
from sfumato.rationals import floor_share
from sfumato.release import Change
from sfumato.wording import counted, did_you_mean

if TYPE_CHECKING:
    from sfumato.engines.stored_table import StoredTable
    from sfumato.masking.search.lattice.survey import LatticeSurvey

Share = Annotated[float, Field(ge=0, le=1)]
Level = Annotated[int, Field(ge=0)]


class Generalize(Step):
    """Replace every value of a quasi-identifier by its label at one level of the column's hierarchy.

    All models of the recipe hold in the result. Of all combinations of levels with this property, the one with the
    lowest information loss is chosen: proven by ``search: optimal``, else with a stated gap to a lower bound. Rows in
    equivalence classes that fail the models are suppressed, up to a limit.

    Truthful: values are coarsened, never altered. The step protects only as far as the models do: k-anonymity alone
    does not prevent all rows of a class from sharing a sensitive value.
    """

    truthful: ClassVar[bool] = True
    simulable = False
    keeps_rows = False
    coarsens = True
    minimal_labels = True
    out_of_core = True
    examples = (
        {"search": "optimal", "suppression": 0.05, "metric": "loss"},
        {"search": "heuristic", "seconds": 1, "suppression": 0.2, "suppressed": "star"},
    )
    reference: ClassVar[str] = (
        "Samarati (2001), doi:10.1109/69.971193; Kohlmayer et al. (2012), doi:10.1109/SocialCom-PASSAT.2012.52"
    )

    search: Literal["optimal", "heuristic", "auto"] = "optimal"
    """``optimal`` proves the best levels; ``heuristic`` searches for good ones within ``seconds``; ``auto`` proves them
    if there are at most 20 million combinations of levels, else it searches. The outcome says which."""
    suppression: Share = 0.0
    """Largest share of the rows that may be suppressed."""
    metric: MetricName = "loss"
    """Loss metric to minimize: a name, or a name with parameters."""
    weights: dict[str, Annotated[float, Field(ge=0, le=1e9)]] = {}
    """Weight of each column in the metric. Default: 1."""
    lowest: dict[str, Level] = {}
    """Lowest allowed level, by column. Default: 0."""
    highest: dict[str, Level] = {}
    """Highest allowed level, by column. Default: the root."""
    suppressed: Literal["remove", "star"] = "remove"
    """Remove suppressed rows, or keep them with ``*`` in the quasi-identifiers."""
    only: tuple[str, ...] | None = None
    """Suppress only these columns of a row if that is enough; rows that still fail are suppressed completely."""
    minimal: bool = False
    """Also report all minimal combinations of levels: those that meet the models while no lower combination does."""
    seconds: Annotated[float, Field(gt=0)] | None = None
    """Time limit. The search then returns the best result so far and its gap to the lower bound. Default: no limit for
    a proof, 30 seconds for a heuristic search without ``evaluations``."""
    evaluations: Annotated[int, Field(gt=0)] | None = None
    """Largest number of combinations of levels to evaluate: a limit that is the same on every machine."""

    @classmethod
    def column_in_words(cls, published: Mapping[str, Any], column: str, declared: Column) -> str:
        level = published.get("levels", {}).get(column)
        if not level:
            return ""
        return declared.hierarchy.level_in_words(level) if declared.hierarchy is not None else "all values removed (*)"

    def apply(self, data: Data, context: Context) -> Change:
        table = _compressed(data, context, metric_of(self.metric))
        space, best, public, private = self.decide(table, context)
        frame, rows, whole = self._transform(data, space, best)
        return Change(
            table=data.table.with_frame(frame),
            rows=rows,
            public=public,
            private={**private, "suppressed_whole": whole},
        )

    def apply_stored(self, table: StoredTable, context: Context) -> StoredChange:
        from sfumato.masking.methods._stored_generalization import generalize_stored

        return generalize_stored(self, table, context)

    def decide(
        self, table: EquivalenceClasses, context: Context
    ) -> tuple[LatticeSpace, Node, dict[str, Any], dict[str, Any]]:
        """Search a compressed table: the space, the chosen levels, and their public and private outcome."""
        from sfumato.masking.search.lattice.minimal import minimal_nodes
        from sfumato.masking.search.lattice.optimal import LARGEST
        from sfumato.masking.search.lattice.optimal import search as prove

        space = self._space(table, context)
        within = self._range(table)
        _refuse_unreachable(space)
        if self.search == "optimal" or (self.search == "auto" and within.nodes <= LARGEST):
            if within.nodes > LARGEST:
                raise BadParameter(
                    f"generalize: {within.nodes:,} combinations of levels are too many to prove the best one "
                    f"(at most {LARGEST:,}).",
                    fix="Use `search: auto`, or narrow `lowest` and `highest`.",
                )
            result = prove(space, within, seconds=self.seconds, evaluations=self.evaluations, progress=context.progress)
        else:
            from sfumato.masking.search.lattice.heuristic import search as look

            seconds = self.seconds or (30.0 if self.evaluations is None else math.inf)
            result = look(
                space,
                within,
                seconds=seconds,
                evaluations=self.evaluations,
                rng=context.rng,
                progress=context.progress,
            )
        if result.best is None:
            raise _unmet(space, within, self.suppression, result.optimal)
        best = result.best
        public: dict[str, Any] = {
            "levels": dict(zip(table.columns, best.levels, strict=True)),
            "metric": metric_of(self.metric).part_name(),
            "optimal": result.optimal,
        }
        if self.minimal:
            nodes = minimal_nodes(space, within)
            public["minimal"] = [dict(zip(table.columns, levels, strict=True)) for levels in nodes]
        private = {
            # the score is private: with the score of the released records it would reveal the number of suppressed ones
            "score": best.score,
            **({} if result.optimal else {"bound": result.bound}),
            "suppressed": best.shape.suppressed,
            "classes": best.shape.classes,
            "smallest": best.smallest,
            "nodes": result.nodes,
            "nodes_checked": result.evaluated,
        }
        return space, best, public, private

    def survey(self, data: Data, context: Context) -> LatticeSurvey:
        """Evaluate every combination of levels, for people who want to look at the lattice before they choose."""
        from sfumato.masking.search.lattice.survey import survey

        table = _compressed(data, context, metric_of(self.metric))
        space = self._space(table, context)
        _refuse_unreachable(space)
        return survey(space, self._range(table), context.progress)

    def _space(self, table: EquivalenceClasses, context: Context) -> LatticeSpace:
        return LatticeSpace(
            table,
            tuple(model.bind(table) for model in context.class_models),
            metric_of(self.metric),
            limit=floor_share(self.suppression, table.rows),
            weights=self.weights,
        )

    def _range(self, table: EquivalenceClasses) -> LevelRange:
        for name in (*self.lowest, *self.highest, *self.weights, *(self.only or ())):
            if name not in table.columns:
                raise UnknownColumn(
                    f"generalize: `{name}` is not a quasi-identifier.",
                    fix=did_you_mean(name, table.columns),
                    column=name,
                )
        low = tuple(self.lowest.get(name, 0) for name in table.columns)
        high = tuple(self.highest.get(name, top) for name, top in zip(table.columns, table.heights, strict=True))
        for name, least, most, top in zip(table.columns, low, high, table.heights, strict=True):
            if least > most or most > top:
                raise BadParameter(
                    f"generalize: levels {least} to {most} of `{name}` are not within its hierarchy (0 to {top}).",
                    fix="Correct `lowest` or `highest`.",
                    column=name,
                )
        return LevelRange(low=low, high=high)

    def fates(self, space: LatticeSpace, best: Node) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which combinations are suppressed completely, and which only in the columns of ``only``."""
        of, kept = space.assign(best.levels)
        released = kept[of]
        partly = np.zeros_like(released)
        if self.only is not None and not released.all():
            partly = _passing_with_stars(space, best, ~released, self.only)
        return ~released & ~partly, partly

    def _transform(
        self, data: Data, space: LatticeSpace, best: Node
    ) -> tuple[pl.DataFrame, npt.NDArray[np.int64] | None, int]:
        """The frame at the chosen levels, its row map, and the number of completely suppressed rows."""
        table = space.table
        assert table.of_row is not None
        whole, partly = (fate[table.of_row] for fate in self.fates(space, best))
        columns = [
            hierarchy.decode(table.codes[table.of_row, i], level) if level else data.table.column(hierarchy.column)
            for i, (hierarchy, level) in enumerate(zip(table.hierarchies, best.levels, strict=True))
        ]
        for i, name in enumerate(table.columns):
            starred = (whole | partly) if name in (self.only or ()) else whole
            if self.suppressed == "remove":
                starred = starred & partly
            if starred.any():
                text = columns[i].cast(pl.String)
                columns[i] = text.zip_with(pl.Series(~starred), pl.Series([ROOT])).alias(name)
        frame = data.table.frame.with_columns(columns)
        gone = int(whole.sum())
        if self.suppressed == "star" or gone == 0:
            return frame, None, gone
        return frame.filter(pl.Series(~whole)), np.flatnonzero(~whole), gone


def refuse_unsearchable(schema: Schema, quasi: Sequence[str], gaps: Iterable[str], context: Context) -> None:
    """Refuse a search without columns or models, or of classes that overlap. ``gaps`` are quasi-identifiers with
    missing values."""
    if not quasi:
        raise NotApplicable(
            "generalize: no column has the role `quasi`.", fix="Give the columns outsiders know that role."
        )
    if not context.class_models:
        raise BadParameter(
            "generalize: the recipe has no privacy model.",
            fix="Add for example `models: [k-anonymity: 5]`.",
        )
    refuse_overlap(schema, gaps, "generalize", matching=("wildcard", "suppressed"))


def _compressed(data: Data, context: Context, metric: LossMetric) -> EquivalenceClasses:
    refuse_unsearchable(data.schema, data.quasi, columns_with_gaps(data), context)
    track = tuple(dict.fromkeys((*data.sensitive, *([metric.target] if metric.target is not None else []))))
    return compress(data, track=track, population=shared_population(context.class_models, data))


def _passing_with_stars(
    space: LatticeSpace, best: Node, failed: npt.NDArray[np.bool_], only: tuple[str, ...]
) -> npt.NDArray[np.bool_]:
    """Which failed combinations pass among themselves once the columns of ``only`` are ``*``."""
    table = space.table
    if any(rule.about_table or rule.about_absent for rule in space.rules):
        return np.zeros(len(table), dtype=np.bool_)
    part = _only(table, failed)
    others = [i for i, name in enumerate(table.columns) if name not in only]
    of, count = np.zeros(len(part), dtype=np.intp), 1
    if others:
        levels = [table.hierarchies[i].levels[best.levels[i]] for i in others]
        codes = [level.codes[part.codes[:, i]] for i, level in zip(others, levels, strict=True)]
        of, count = number_rows(codes, [level.size for level in levels])
    good = np.zeros(count, dtype=np.bool_)
    columns = tuple(dict.fromkeys(name for rule in space.rules for name in rule.columns))
    for numbers, groups in part.in_blocks(of, np.ones(count, dtype=np.bool_), columns):
        good[numbers] = groups.sizes >= max(1, space.least)
        for rule in space.rules:
            good[numbers] &= rule.passes(groups)
    partly = np.zeros(len(table), dtype=np.bool_)
    partly[np.flatnonzero(failed)] = good[of]
    return partly


def _only(table: EquivalenceClasses, chosen: npt.NDArray[np.bool_]) -> EquivalenceClasses:
    """Select combinations as a table; the reference distribution stays that of the whole table."""
    place = np.cumsum(chosen) - 1
    tracked = {}
    for name, column in table.tracked.items():
        inside = chosen[column.cells]
        tracked[name] = replace(
            column,
            cells=place[column.cells[inside]].astype(np.int32),
            values=column.values[inside],
            counts=column.counts[inside],
            reference=column.totals,
        )
    population = None if table.population is None else table.population[chosen]
    return replace(
        table, codes=table.codes[chosen], sizes=table.sizes[chosen], tracked=tracked, population=population, of_row=None
    )


def _refuse_unreachable(space: LatticeSpace) -> None:
    if space.least > space.rows:
        raise TooFewRows(
            f"The table has {counted(space.rows, 'row')}, but the models require equivalence classes of at least "
            f"{space.least}.",
            fix=f"At most k = {space.rows} can be reached, with all rows in one class.",
            rows=space.rows,
            least=space.least,
        )


def _unmet(space: LatticeSpace, within: LevelRange, share: float, finished: bool) -> Unmet:
    """The error for an infeasible search: which models fail on the coarsest table, about which columns, by how much.

    Where all hold on it, too many rows have to be suppressed for them: all are named then.
    """
    facts: dict[str, object] = {}
    failing: list[str] = []
    holding: list[str] = []
    columns: list[str] = []
    for rule in space.rules:
        worst = space.worst(rule, within.high)
        facts[rule.name] = worst
        sign, slack = "<=" if rule.smaller_is_better else ">=", 1e-9 * max(1.0, abs(rule.wanted))
        holds = worst <= rule.wanted + slack if rule.smaller_is_better else worst >= rule.wanted - slack
        about = "".join(f"`{name}`: " for name in rule.columns[:1])
        words = f"{about}{rule.name} wants {sign} {rule.wanted:g} and the coarsest table gives {worst:.4g}"
        (holding if holds else failing).append(words)
        columns += [] if holds else rule.columns
    if not finished and not failing:
        return Unmet(
            "No combination of levels that meets the models was found within the time limit.",
            fix="Increase `seconds` or `suppression`.",
            closest=facts,
        )
    found = "meets" if finished else "was found that meets"
    return Unmet(
        f"No combination of levels {found} the models with at most {share:.1%} of the rows suppressed: "
        + "; ".join(failing or holding)
        + ".",
        fix="Relax the model, or increase `highest` or `suppression`.",
        closest=facts,
        columns=tuple(dict.fromkeys(columns)),
    )
