"""A recipe run over a file that does not fit into memory.

One GROUP BY gives the compressed table, the search runs on that, and the engine applies what was chosen. Nothing else
of the rows is ever held here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from sfumato.data.atomic import replacing
from sfumato.data.table import Table
from sfumato.engines.choice import masking_engine
from sfumato.engines.engine import Engine
from sfumato.engines.workspace import Workspace
from sfumato.errors import BadParameter, EmptyTable, NotApplicable, UnknownColumn, WrongKind, did_you_mean
from sfumato.masking.base import Context, Step
from sfumato.masking.equivalence_classes import TrackedColumn
from sfumato.masking.evaluate import judge_classes
from sfumato.masking.methods.generalize import Generalize
from sfumato.masking.methods.pseudonymize import Pseudonymize
from sfumato.masking.methods.remove import Remove
from sfumato.masking.metric import metric_of
from sfumato.masking.model import PrivacyModel
from sfumato.masking.out_of_core import sqlgen as statements
from sfumato.masking.out_of_core.counts import (
    CodedColumn,
    Counted,
    compressed,
    packed,
    refuse_overlap,
    shown,
    tracked_columns,
)
from sfumato.masking.out_of_core.planning import Identifiers, laid_out
from sfumato.masking.population import shared_population
from sfumato.progress import SILENT, Progress
from sfumato.release import State, Verdict
from sfumato.rng import Rng
from sfumato.schema import Column, Dataset, Kind, Role, Schema
from sfumato.secret import Permit

__all__ = ["ProtectedFile", "check_file", "protect_file"]

MEMORY = "4GB"
"""How much memory an engine may take unless told otherwise."""
COMBINATIONS = 30_000_000
"""Distinct combinations of quasi-identifiers that are searched at once unless told otherwise: about 3 GB."""


@dataclass(frozen=True, kw_only=True)
class ProtectedFile:
    """A large release that was written: what was done, and what the models say of the file itself."""

    path: Path
    rows: int
    steps: tuple[dict[str, Any], ...]
    """For the release: name, parameters and public outcome of each step."""
    private: tuple[dict[str, Any], ...]
    """For the owner: the same with everything else."""
    verdicts: tuple[Verdict, ...]
    """From a second GROUP BY, over the file that was written."""

    @property
    def holds(self) -> bool:
        return all(verdict.holds for verdict in self.verdicts)


@dataclass(frozen=True, kw_only=True)
class _Source:
    """The source as the statements see it."""

    engine: Workspace
    columns: tuple[str, ...]
    base: str

    @classmethod
    def of(cls, engine: Workspace, schema: Schema, *, complete: bool) -> _Source:
        sample = engine.query(f"SELECT * FROM {engine.source} AS t LIMIT 0", "looking at the columns")
        names = tuple(sample.columns)
        missing = [name for name in schema.columns if name not in names]
        if missing and complete:
            raise UnknownColumn(
                f"The source has no column `{missing[0]}`.", fix=did_you_mean(missing[0], names), columns=tuple(missing)
            )
        kinds = {name: Kind.of(kind) for name, kind in sample.schema.items()}
        casts = {
            name: column.kind
            for name, column in schema.columns.items()
            if complete and column.kind is not None and column.kind is not kinds[name]
        }
        codes = {n: c.missing_codes for n, c in schema.columns.items() if complete and c.missing_codes}
        source = statements.blanked(engine.source, kinds, codes)
        if casts:
            failed = engine.query(statements.failed_casts(source, casts), "checking the kinds").row(0)
            for name, bad in zip(casts, failed, strict=True):
                if bad:
                    raise WrongKind(
                        f"Column `{name}` is declared {casts[name]}, but {bad} of its values are not.",
                        fix="Change its kind in the recipe, or clean the file.",
                        column=name,
                    )
        floats = {name for name in names if casts.get(name, kinds[name]) is Kind.NUMBER}
        return cls(engine=engine, columns=names, base=statements.base(source, names, casts, floats))

    def coded(self, name: str, schema: Schema, *, level: int = 0, plain: bool = False) -> CodedColumn:
        """A column with its distinct values; ``plain`` leaves its hierarchy aside."""
        number = self.columns.index(name)
        values = self.engine.query(statements.distinct(self.base, number), "listing values").get_column("value")
        column = schema.column(name)
        role = Column(role=Role.PLAIN, hierarchy=None if plain else column.hierarchy)
        single = Dataset(table=Table(frame=values.alias(name).to_frame()), schema=Schema(columns={name: role}))
        hierarchy = single.bound_hierarchy(name)
        if level > hierarchy.height:
            raise BadParameter(
                f"generalize: level {level} of `{name}` is not within its hierarchy (0 to {hierarchy.height}).",
                column=name,
            )
        return CodedColumn(name=name, number=number, values=values.alias(name), hierarchy=hierarchy, lowest=level)

    def count(self, schema: Schema, quasi: Sequence[CodedColumn], track: Sequence[CodedColumn]) -> Counted:
        """Count the combinations of the quasi-identifiers, once for each tracked column or once in all."""
        frames: dict[CodedColumn | None, pl.DataFrame] = {}
        for beside in track or (None,):
            runs = self._runs((*quasi, *(() if beside is None else (beside,))))
            frames[beside] = self.engine.query(statements.counted(self.base, runs), "counting classes")
        return Counted.of(schema, quasi, frames)

    def _runs(self, columns: Sequence[CodedColumn]) -> list[list[tuple[int, int, int]]]:
        """The columns as the statements name them; the engine is given their numbers."""
        for column in columns:
            self.engine.put(f"code_{column.number}", column.table())
        return [[(column.number, column.width, column.empty) for column in run] for run in packed(columns)]

    def narrowed(
        self, coded: list[CodedColumn], highest: Mapping[str, int], most: int
    ) -> tuple[list[CodedColumn], dict[str, int]]:
        """Coarser numbers for the widest columns until there are about ``most`` combinations; and where they start."""
        raised: dict[str, int] = {}
        while math.prod(column.groups for column in coded) > most:
            runs = self._runs(coded)
            if self.engine.query(statements.estimated(self.base, runs), "estimating classes").item() <= most:
                break
            able = [c for c in coded if c.lowest < highest.get(c.name, c.hierarchy.height)]
            if not able:
                break
            widest = max(able, key=lambda column: column.groups)
            place = coded.index(widest)
            coded = [*coded]
            coded[place] = replace(widest, lowest=widest.lowest + 1)
            raised[widest.name] = widest.lowest + 1
        return coded, raised


def protect_file(
    *,
    schema: Schema,
    steps: Sequence[Step],
    models: Sequence[PrivacyModel],
    source: str | Path,
    target: str | Path,
    rng: Rng,
    options: Mapping[str, Any] | None = None,
    engine: Engine | str = "duckdb",
    order: Literal["shuffled", "kept"] = "shuffled",
    memory: str = MEMORY,
    threads: int | None = None,
    temporary: Path | None = None,
    force: bool = False,
    combinations: int = COMBINATIONS,
    progress: Progress = SILENT,
) -> ProtectedFile:
    """Generalize a file of any size and write the release, with the memory of its distinct combinations alone.

    The steps may be one ``generalize``, and ``remove`` and ``pseudonymize`` for identifiers; others need all rows at
    hand and are refused. The levels, the suppressed classes and the values of the release are the same as in memory.
    Rows are ordered by a keyed hash of the whole original row (``order: kept`` leaves the order to the engine, which
    is often that of the source: whoever holds both could link them row by row). No secret row map is made, so attacks
    that need one take a sample that fits into memory.

    ``options`` are those of the source's format, a delimiter for example. ``memory`` is the engine's limit; it spills
    to ``temporary`` beyond it. The compressed table comes on top, about 100 bytes for each distinct combination. Where
    there are more than about ``combinations`` of them, the columns with most values start at a coarser level; the
    outcome names these levels (``raised``) and does not claim to be optimal.
    """
    backend = masking_engine(engine, memory=memory, threads=threads)
    with backend.keep_open():
        return _protect(
            schema=schema, steps=steps, models=models, source=source, options=options, target=Path(target), rng=rng,
            backend=backend, order=order, temporary=temporary, force=force, combinations=combinations,
            progress=progress,
        )  # fmt: skip


def _protect(
    *,
    schema: Schema,
    steps: Sequence[Step],
    models: Sequence[PrivacyModel],
    source: str | Path,
    options: Mapping[str, Any] | None,
    target: Path,
    rng: Rng,
    backend: Engine,
    order: str,
    temporary: Path | None,
    force: bool,
    combinations: int,
    progress: Progress,
) -> ProtectedFile:
    place = target
    general, others = _supported(steps)
    with (
        replacing(place, force=force) as written,
        backend.workspace(source, options=options, writes=written, temporary=temporary, progress=progress) as opened,
    ):
        found = _Source.of(opened, schema, complete=True)
        _refuse_bad_weights(found, schema)
        quasi = schema.names(Role.QUASI)
        if not quasi:
            raise NotApplicable("No column has the role `quasi`.", fix="Give the columns outsiders know that role.")
        metric = metric_of(general.metric)
        track = tracked_columns(models, schema.names(Role.SENSITIVE), metric.target)
        coded = [found.coded(name, schema, level=general.lowest.get(name, 0)) for name in quasi]
        if not len(coded[0].values):
            raise EmptyTable("The source has no rows.", fix="There is nobody in it to protect.")
        coded, raised = found.narrowed(coded, general.highest, combinations)
        counts = found.count(schema, coded, [found.coded(name, schema) for name in track])
        refuse_overlap(counts)
        table = compressed(counts, shared_population(models, counts.sample()))
        position = list(steps).index(general)
        context = Context(rng=rng.child(position, general.part_name()), models=tuple(models), progress=progress)
        chosen = general.model_copy(update={"lowest": {**general.lowest, **raised}})
        space, best, public, private = chosen.decide(table, context)
        if raised:
            public |= {"optimal": False, "raised": raised}
        whole, partly = general.fates(space, best)
        identifiers = _identifiers(schema, others)
        plan, tables = laid_out(
            found.columns, coded, general, table, best.levels, whole, partly, identifiers, order=order
        )
        for name, frame in tables.items():
            opened.put(name, frame)
        opened.put("secret", _secret(rng, table.rows, identifiers))
        opened.write(statements.transformed(found.base, plan, order=opened.order), written, place.suffix.lower())
        suppressed = int(table.sizes[whole].sum())
        gone = suppressed if plan.drop else 0
    verdicts = _judged(
        place, schema=schema, models=models, backend=backend, temporary=temporary, progress=progress,
        original=table.tracked,
    )  # fmt: skip
    outcomes = [
        (general, public, {**private, "suppressed_whole": suppressed}),
        *((step, {"columns": list(columns)}, {}) for step, columns in identifiers.told),
    ]
    return ProtectedFile(
        path=place,
        rows=table.rows - gone,
        steps=tuple(
            {"step": step.part_name(), "parameters": step.public(), "truthful": step.truthful, **said}
            for step, said, _ in outcomes
        ),
        private=tuple({"step": step.part_name(), **said, **kept} for step, said, kept in outcomes),
        verdicts=verdicts,
    )


def check_file(
    path: str | Path,
    *,
    schema: Schema,
    models: Sequence[PrivacyModel],
    engine: Engine | str = "duckdb",
    memory: str = MEMORY,
    threads: int | None = None,
    temporary: Path | None = None,
    progress: Progress = SILENT,
) -> tuple[Verdict, ...]:
    """Judge a file of any size by a plain GROUP BY over what it shows; nothing of the search is used.

    Models that compare with the distribution of a whole table take that of this file.
    """
    return _judged(
        path, schema=schema, models=models, backend=masking_engine(engine, memory=memory, threads=threads),
        temporary=temporary, progress=progress, original={},
    )  # fmt: skip


def _judged(
    path: str | Path,
    *,
    schema: Schema,
    models: Sequence[PrivacyModel],
    backend: Engine,
    temporary: Path | None,
    progress: Progress,
    original: Mapping[str, TrackedColumn],
) -> tuple[Verdict, ...]:
    """The verdicts on a file. Of the original only how often each sensitive value occurs in it is used."""
    with backend.workspace(path, temporary=temporary, progress=progress) as opened:
        found = _Source.of(opened, schema, complete=False)
        quasi = tuple(name for name in schema.names(Role.QUASI) if name in found.columns)
        if not quasi:
            reason = "The table has no quasi-identifier column."
            return tuple(Verdict(model=m.part_name(), state=State.NOT_CHECKED, reason=reason) for m in models)
        sensitive = [name for name in schema.names(Role.SENSITIVE) if name in found.columns]
        track = [name for name in tracked_columns(models, sensitive, None) if name in found.columns]
        coded = [found.coded(name, schema, plain=True) for name in quasi]
        beside = [found.coded(name, schema) for name in track]
        beside = [
            replace(one, hierarchy=original[one.name].hierarchy) if one.name in original else one for one in beside
        ]
        counts = found.count(schema, coded, beside)
    references = {name: one.totals for name, one in original.items()}
    counts = replace(
        counts, tracked={name: replace(one, reference=references.get(name)) for name, one in counts.tracked.items()}
    )
    sample = counts.sample()
    verdicts = []
    for model in models:
        try:
            table = shown(counts, model.population_frame(sample))
        except NotApplicable as refusal:
            verdicts.append(Verdict(model=model.part_name(), state=State.NOT_CHECKED, reason=str(refusal)))
            continue
        verdicts.append(judge_classes(model, table, sample))
    return tuple(verdicts)


def _supported(steps: Sequence[Step]) -> tuple[Generalize, tuple[Step, ...]]:
    general = [step for step in steps if isinstance(step, Generalize)]
    others = tuple(step for step in steps if not isinstance(step, Generalize))
    for step in others:
        if not isinstance(step, Remove | Pseudonymize) or (isinstance(step, Pseudonymize) and step.map is not None):
            raise NotApplicable(
                f"The step {step.part_name()} needs all rows in memory"
                + (" to write its map." if isinstance(step, Pseudonymize) else "."),
                fix="Large files take `generalize`, `remove` and `pseudonymize`. Take a sample for other steps.",
                step=step.part_name(),
            )
    if len(general) != 1:
        raise BadParameter(
            f"A large file needs exactly one `generalize` step; the recipe has {len(general)}.",
            fix="Add `- generalize: {suppression: 0.05}` to the steps.",
        )
    return general[0], others


def _identifiers(schema: Schema, steps: Sequence[Step]) -> Identifiers:
    """What becomes of the columns that name people: replaced or removed, whatever is left removed."""
    names = schema.names(Role.IDENTIFIER)
    removed: set[str] = set()
    replaced: dict[str, Pseudonymize] = {}
    told: list[tuple[Step, tuple[str, ...]]] = []
    for step in steps:
        assert isinstance(step, Remove | Pseudonymize)
        chosen = tuple(step.columns) if step.columns is not None else tuple(n for n in names if n not in removed)
        if isinstance(step, Remove):
            removed.update(chosen)
        else:
            replaced.update(dict.fromkeys(chosen, step))
        told.append((step, chosen))
    left = tuple(name for name in names if name not in removed and name not in replaced)
    if left:
        removed.update(left)
        told.append((Remove(columns=left), left))
    keys = {id(step): step for step in replaced.values()}
    if len(keys) > 1:
        raise NotApplicable("Large files take one `pseudonymize` step.", fix="Name all columns in one step.")
    return Identifiers(removed=frozenset(removed), replaced=replaced, told=tuple(told))


def _secret(rng: Rng, rows: int, identifiers: Identifiers) -> pl.DataFrame:
    """One row with the keys: of the order of rows, and of the pseudonyms (HMAC's inner and outer pad)."""
    import hashlib

    key = b""
    for step in identifiers.replaced.values():
        key = step.secret()[0].open(Permit("pseudonymizing a column"))
    key = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    pads = np.frombuffer(key, dtype=np.uint8)
    return pl.DataFrame(
        {
            # the number of rows goes in, so that the same seed gives next month's file another order
            "shuffle": [rng.child("order", rows).generator.bytes(16).hex()],
            "ipad": [(pads ^ 0x36).tobytes()],
            "opad": [(pads ^ 0x5C).tobytes()],
        }
    )


def _refuse_bad_weights(source: _Source, schema: Schema) -> None:
    for name in schema.names(Role.WEIGHT):
        i = source.columns.index(name)
        # NaN and infinity times nothing is no number; a comparison would be left out by the file's own statistics
        sound = f"c{i} > 0 AND c{i} * 0 = 0"
        asked = f"SELECT COUNT(*) AS n FROM ({source.base}) AS b WHERE c{i} IS NULL OR NOT ({sound})"
        if source.engine.query(asked, "checking the weights").item():
            raise BadParameter(f"Weight column `{name}` must hold positive numbers and no gaps.", column=name)
