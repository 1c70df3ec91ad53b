"""A recipe run over a file that does not fit into memory.

One GROUP BY gives the compressed table, the search runs on that, and the engine applies what was chosen. Nothing else
of the rows is ever held here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from tacit.data.atomic import replacing
from tacit.errors import BadParameter, EmptyTable, NotApplicable, UnknownColumn, WrongKind, did_you_mean
from tacit.progress import SILENT, Progress
from tacit.protect.judge import judge_classes
from tacit.protect.methods.generalize import Generalize
from tacit.protect.methods.pseudonymize import Pseudonymize
from tacit.protect.methods.remove import Remove
from tacit.protect.model import PrivacyModel
from tacit.protect.scale import statements
from tacit.protect.scale.counted import Counted, compressed, refuse_overlap, shown, tracked_columns
from tacit.protect.scale.engine import Engine, open_engine
from tacit.protect.scale.planning import Identifiers, laid_out
from tacit.protect.step import Context, Step
from tacit.release import State, Verdict
from tacit.rng import Rng
from tacit.schema import Kind, Role, Schema
from tacit.sealed import Permit

__all__ = ["ProtectedFile", "check_file", "protect_file"]

MEMORY = "4GB"
"""How much memory an engine may take unless told otherwise."""


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

    engine: Engine
    columns: tuple[str, ...]
    base: str

    @classmethod
    def of(cls, engine: Engine, schema: Schema, *, complete: bool) -> _Source:
        sample = engine.query(f"SELECT * FROM {engine.source} AS t LIMIT 0", "looking at the columns")
        names = tuple(sample.columns)
        missing = [name for name in schema.columns if name not in names]
        if missing and complete:
            raise UnknownColumn(
                f"The source has no column `{missing[0]}`.", fix=did_you_mean(missing[0], names), columns=tuple(missing)
            )
        casts = {
            name: column.kind
            for name, column in schema.columns.items()
            if complete and column.kind is not None and column.kind is not Kind.of(sample.schema[name])
        }
        if casts:
            failed = engine.query(statements.failed_casts(engine.source, casts), "checking the kinds").row(0)
            for name, bad in zip(casts, failed, strict=True):
                if bad:
                    raise WrongKind(
                        f"Column `{name}` is declared {casts[name]}, but {bad} of its values are not.",
                        fix="Change its kind in the recipe, or clean the file.",
                        column=name,
                    )
        return cls(engine=engine, columns=names, base=statements.base(engine.source, names, casts))

    def count(self, schema: Schema, quasi: Sequence[str], track: Sequence[str]) -> Counted:
        """Count the combinations of the quasi-identifiers, once for each tracked column or once in all."""
        tally = _free("rows", (*quasi, *track))
        frames: dict[str | None, pl.DataFrame] = {}
        for name in track or (None,):
            wanted = tuple(dict.fromkeys((*quasi, *(() if name is None else (name,)))))
            numbers = [self.columns.index(column) for column in wanted]
            found = self.engine.query(statements.counted(self.base, numbers), "counting classes")
            frames[name] = found.rename({f"c{i}": column for i, column in zip(numbers, wanted, strict=True)}).rename(
                {"n": tally}
            )
        return Counted(schema, quasi, frames, tally)


def _free(wanted: str, taken: Sequence[str]) -> str:
    while wanted in taken:
        wanted += "_"
    return wanted


def protect_file(
    *,
    schema: Schema,
    steps: Sequence[Step],
    models: Sequence[PrivacyModel],
    source: str | Path,
    target: str | Path,
    rng: Rng,
    engine: str = "duckdb",
    order: Literal["shuffled", "kept"] = "shuffled",
    memory: str = MEMORY,
    threads: int | None = None,
    temporary: Path | None = None,
    force: bool = False,
    session: Any = None,
    progress: Progress = SILENT,
) -> ProtectedFile:
    """Generalize a file of any size and write the release, with the memory of its distinct combinations alone.

    The steps may be one ``generalize``, and ``remove`` and ``pseudonymize`` for identifiers; others need all rows at
    hand and are refused. The levels, the suppressed classes and the values of the release are the same as in memory.
    Rows are ordered by a keyed hash of the whole original row (``order: kept`` leaves the order to the engine, which
    is often that of the source: whoever holds both could link them row by row). No secret row map is made, so attacks
    that need one take a sample that fits into memory.

    ``memory`` is the engine's limit; it spills to ``temporary`` beyond it. The compressed table comes on top.
    """
    place = Path(target)
    general, others = _supported(steps)
    with (
        replacing(place, force=force) as written,
        open_engine(
            engine,
            source,
            writes=written,
            memory=memory,
            threads=threads,
            temporary=temporary,
            progress=progress,
            session=session,
        ) as opened,
    ):
        found = _Source.of(opened, schema, complete=True)
        _refuse_bad_weights(found, schema)
        quasi = schema.names(Role.QUASI)
        if not quasi:
            raise NotApplicable("No column has the role `quasi`.", fix="Give the columns outsiders know that role.")
        metric = general.loss_metric()
        track = tracked_columns(models, schema.names(Role.SENSITIVE), metric.target)
        counts = found.count(schema, quasi, track)
        data = counts.data(next(iter(counts.frames)))
        if data.rows == 0:
            raise EmptyTable("The source has no rows.", fix="There is nobody in it to protect.")
        refuse_overlap(schema, data)
        frames = [frame for model in models if (frame := model.population_frame(data)) is not None]
        table = compressed(counts, frames[0] if frames else None)
        position = list(steps).index(general)
        context = Context(rng=rng.child(position, general.part_name()), models=tuple(models), progress=progress)
        space, best, public, private = general.decide(table, context)
        whole, partly = general.fates(space, best)
        identifiers = _identifiers(schema, others)
        plan, tables = laid_out(
            found.columns, data, general, table, best.levels, whole, partly, identifiers, order=order
        )
        for name, frame in tables.items():
            opened.put(name, frame)
        opened.put("secret", _secret(rng, table.rows, identifiers))
        opened.write(statements.transformed(found.base, plan, order=opened.order), written, place.suffix.lower())
        suppressed = int(table.sizes[whole].sum())
        gone = suppressed if plan.drop else 0
    verdicts = check_file(
        place, schema=schema, models=models, engine=engine, memory=memory, threads=threads, temporary=temporary,
        session=session, progress=progress,
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
    engine: str = "duckdb",
    memory: str = MEMORY,
    threads: int | None = None,
    temporary: Path | None = None,
    session: Any = None,
    progress: Progress = SILENT,
) -> tuple[Verdict, ...]:
    """Judge a file of any size by a plain GROUP BY over what it shows; nothing of the search is used."""
    with open_engine(
        engine, path, writes=None, memory=memory, threads=threads, temporary=temporary, progress=progress,
        session=session,
    ) as opened:  # fmt: skip
        found = _Source.of(opened, schema, complete=False)
        quasi = tuple(name for name in schema.names(Role.QUASI) if name in found.columns)
        if not quasi:
            reason = "The table has no quasi-identifier column."
            return tuple(Verdict(model=m.part_name(), state=State.NOT_CHECKED, reason=reason) for m in models)
        sensitive = [name for name in schema.names(Role.SENSITIVE) if name in found.columns]
        track = [name for name in tracked_columns(models, sensitive, None) if name in found.columns]
        counts = found.count(schema, quasi, track)
    data = counts.data(next(iter(counts.frames)))
    verdicts = []
    for model in models:
        try:
            table = shown(counts, model.population_frame(data))
        except NotApplicable as refusal:
            verdicts.append(Verdict(model=model.part_name(), state=State.NOT_CHECKED, reason=str(refusal)))
            continue
        verdicts.append(judge_classes(model, table, data))
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
        asked = f"SELECT COUNT(*) AS n FROM ({source.base}) AS b WHERE c{i} IS NULL OR NOT (c{i} > 0)"
        if source.engine.query(asked, "checking the weights").item():
            raise BadParameter(f"Weight column `{name}` must hold positive numbers and no gaps.", column=name)
